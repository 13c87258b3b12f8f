#include "ablations/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace whimbrel::ablations {

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", median(values), least, most);
}

std::string_view name_of(Defect defect) {
  const auto found = std::ranges::find(defects(), defect, &DefectInfo::defect);
  return found == defects().end() ? "none" : found->name;
}

/// Operations that stand more often in the step with the defect.
std::map<std::string, int> more_nodes(const Figure& figure) {
  std::map<std::string, int> more;
  for (const auto& [name, count] : figure.cost.nodes) {
    const auto without = figure.cost_without.nodes.find(name);
    const int before = without == figure.cost_without.nodes.end() ? 0 : without->second;
    if (count > before) {
      more[name] = count - before;
    }
  }
  return more;
}

uint64_t more_bytes(const Figure& figure) {
  return figure.cost.bytes - std::min(figure.cost.bytes, figure.cost_without.bytes);
}

std::string nodes_text(const Figure& figure) {
  std::string text;
  for (const auto& [name, count] : more_nodes(figure)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string line(const Figure& figure) {
  return fmt::format(
      "| {} | {} | {} | {} | {} | {:.1f} % | {:.3f} | {:.3f} | {} |\n",
      figure.context.tokens,
      figure.context.behind_picture ? "picture" : "text",
      name_of(figure.defect),
      spread(figure.ms),
      spread(figure.delta),
      100 * median(figure.delta) / median(figure.ms),
      static_cast<double>(figure.expected_bytes) / 1e6,
      static_cast<double>(more_bytes(figure)) / 1e6,
      nodes_text(figure)
  );
}

}  // namespace

Json figure_json(const Figure& figure) {
  return {
      {"context", figure.context.tokens},
      {"behind_image", figure.context.behind_picture},
      {"defect", name_of(figure.defect)},
      {"ms", median(figure.ms)},
      {"delta_ms", median(figure.delta)},
      {"samples", figure.ms},
      {"delta_samples", figure.delta},
      {"expected_bytes", figure.expected_bytes},
      {"graph_bytes", more_bytes(figure)},
      {"graph_nodes", more_nodes(figure)}
  };
}

std::string table(std::span<const Figure> figures) {
  std::string text =
      "| context | behind | defect | ms a token | ms more | share of the step | "
      "expected MB more | MB more written | nodes more |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const Figure& figure : figures) {
    text += line(figure);
  }
  return text;
}

}  // namespace whimbrel::ablations
