#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/trace_compare.h"

namespace whimbrel {

namespace {

struct CompareFlags {
  std::string reference;
  std::string candidate;
  CompareOptions options;
  bool json = false;
};

constexpr uint64_t kLargestTrace = uint64_t{4} << 30;

Json maker_json(const TraceHeader& header) {
  return {
      {"model", header.model},
      {"ops", header.ops},
      {"dtype", header.dtype},
      {"width", header.width},
      {"prefill_int8", header.prefill_int8},
      {"build", header.build}
  };
}

Json largest_json(const Comparison& comparison) {
  if (!comparison.largest) {
    return nullptr;
  }
  const LogitDifference& largest = *comparison.largest;
  return {
      {"difference", largest.size()},
      {"pos", largest.pos},
      {"id", largest.id},
      {"reference", largest.reference},
      {"candidate", largest.candidate}
  };
}

Json comparison_json(
    const Trace& reference, const Trace& candidate, const Comparison& comparison, double decided
) {
  Json buckets = Json::array();
  for (const GapBucket& bucket : comparison.buckets) {
    buckets.push_back(
        {{"gap", bucket.gap},
         {"positions", bucket.positions},
         {"disagreements", bucket.disagreements}}
    );
  }
  return {
      {"depth", reference.header.depth},
      {"positions", comparison.positions},
      {"disagreements", comparison.disagreements},
      {"decided_gap", decided},
      {"decided", comparison.decided},
      {"decided_disagreements", comparison.decided_disagreements.size()},
      {"decided_disagreements_at", comparison.decided_disagreements},
      {"buckets", buckets},
      {"largest_difference", largest_json(comparison)},
      {"perplexity",
       {{"reference", comparison.reference_perplexity},
        {"candidate", comparison.candidate_perplexity}}},
      {"same_model", comparison.same_model},
      {"reference", maker_json(reference.header)},
      {"candidate", maker_json(candidate.header)}
  };
}

double percent(int part, int whole) {
  return whole == 0 ? 0 : 100.0 * part / whole;
}

std::string maker_text(std::string_view name, const TraceHeader& header) {
  return fmt::format(
      "{:<10} {} operations, {}{}, width {}, build {}\n",
      name,
      header.ops,
      header.dtype,
      header.prefill_int8 ? ", int8 prefill" : "",
      header.width,
      header.build["build_id"].get<std::string>().substr(0, 12)
  );
}

std::string buckets_text(const Comparison& comparison) {
  std::string text = fmt::format("\n{:<12}{:>10}{:>10}\n", "gap", "positions", "differ");
  const std::vector<GapBucket>& buckets = comparison.buckets;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const std::string range = i + 1 < buckets.size()
                                  ? fmt::format("{} to {}", buckets[i].gap, buckets[i + 1].gap)
                                  : fmt::format("{} and over", buckets[i].gap);
    text +=
        fmt::format("{:<12}{:>10}{:>10}\n", range, buckets[i].positions, buckets[i].disagreements);
  }
  return text;
}

std::string largest_text(const Comparison& comparison) {
  if (!comparison.largest) {
    return "largest logit difference: no token is in both lists of any position\n";
  }
  const LogitDifference& largest = *comparison.largest;
  return fmt::format(
      "largest logit difference {:.6g} at position {}, token {} ({:.6g} and {:.6g})\n",
      largest.size(),
      largest.pos,
      largest.id,
      largest.reference,
      largest.candidate
  );
}

std::string comparison_text(
    const Trace& reference, const Trace& candidate, const Comparison& comparison, double decided
) {
  const auto wrong = static_cast<int>(comparison.decided_disagreements.size());
  return maker_text("reference", reference.header) + maker_text("candidate", candidate.header) +
         fmt::format(
             "\n{} positions behind {} tokens: {} differ ({:.2f} %)\n"
             "{} of them decided (gap at least {}): {} differ ({:.2f} %)\n",
             comparison.positions,
             reference.header.depth,
             comparison.disagreements,
             percent(comparison.disagreements, comparison.positions),
             comparison.decided,
             decided,
             wrong,
             percent(wrong, comparison.decided)
         ) +
         buckets_text(comparison) + "\n" + largest_text(comparison) +
         fmt::format(
             "perplexity {:.6g} and {:.6g}\n",
             comparison.reference_perplexity,
             comparison.candidate_perplexity
         );
}

void require_two_files(const CompareFlags& flags) {
  std::error_code missing;
  if (!flags.options.self &&
      std::filesystem::equivalent(flags.reference, flags.candidate, missing)) {
    throw Error(
        Fault::usage,
        flags.candidate,
        "got the same file twice, expected two traces; --self compares a trace with itself"
    );
  }
}

Trace read_trace(const std::string& file) {
  return parse_trace(read_file(file, Fault::usage, kLargestTrace), file);
}

void run_compare(const CompareFlags& flags) {
  const double decided = flags.options.decided;
  if (!std::isfinite(decided) || decided < 0) {
    throw Error(Fault::usage, "--decided", "got {}, expected a number of at least 0", decided);
  }
  require_two_files(flags);
  const Trace reference = read_trace(flags.reference);
  const Trace candidate = read_trace(flags.candidate);
  require_comparable(reference, candidate, flags.options);
  const Comparison comparison = compare_traces(reference, candidate, decided);
  write_stdout(
      flags.json ? json_line(comparison_json(reference, candidate, comparison, decided))
                 : comparison_text(reference, candidate, comparison, decided)
  );
  require_agreement(comparison, flags.options);
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "Say whether two traces of one input agree where it counts");
  const auto flags = std::make_shared<CompareFlags>();
  command->add_option("reference", flags->reference, "Trace to compare with")->required();
  command->add_option("candidate", flags->candidate, "Trace to judge")->required();
  command->add_option("--decided", flags->options.decided, "Lead in logits that decides a position")
      ->capture_default_str();
  command->add_flag("--self", flags->options.self, "Compare a build, or a trace, with itself");
  command->add_flag(
      "--other-model", flags->options.other_model, "Two different checkpoints may agree"
  );
  command->add_flag("--json", flags->json, "One line of JSON");
  command->footer(
      "Exit codes: 0 agree, 1 a decided position differs, 2 nothing can be said.\n"
      "Example:\n"
      "  whimbrel compare reference.jsonl candidate.jsonl"
  );
  command->callback([flags] { run_compare(*flags); });
}

}  // namespace whimbrel
