// What each defect that this design rules out would cost: bench/README.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "ablations/measure.h"
#include "ablations/report.h"
#include "base/error.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "engine/engine.h"
#include "models/published.h"

namespace whimbrel::ablations {

namespace {

struct Flags {
  std::string dims = "qwen2.5-vl-3b";
  std::string model;
  std::vector<int> contexts = {64, 2048};
  std::vector<std::string> defects;
  int rounds = 9;
  bool json = false;
};

std::vector<Defect> chosen_defects(const std::vector<std::string>& names) {
  std::vector<Defect> chosen;
  for (const DefectInfo& info : defects()) {
    if (names.empty() || std::ranges::count(names, info.name) != 0) {
      chosen.push_back(info.defect);
    }
  }
  return chosen;
}

std::vector<std::string> defect_names() {
  std::vector<std::string> names;
  for (const DefectInfo& info : defects()) {
    names.emplace_back(info.name);
  }
  return names;
}

Subject load(const Flags& flags) {
  if (flags.model.empty()) {
    const RandomModel random = random_model(flags.dims);
    Checkpoint checkpoint = random.checkpoint();
    return load_subject(
        random.config, checkpoint, choose_ops(requested_ops(), checkpoint.summary())
    );
  }
  const ModelConfig config = read_model_config(flags.model);
  Checkpoint checkpoint(config);
  return load_subject(config, checkpoint, choose_ops(requested_ops(), checkpoint.summary()));
}

std::vector<Figure> measure_all(const Flags& flags, const Subject& subject) {
  std::vector<Figure> all;
  for (const int tokens : flags.contexts) {
    for (const bool behind_picture : {false, true}) {
      if (behind_picture && !subject.media) {
        continue;
      }
      const std::vector<Defect> chosen = chosen_defects(flags.defects);
      for (Figure& figure : measure(subject, {tokens, behind_picture}, chosen, flags.rounds)) {
        all.push_back(std::move(figure));
      }
    }
  }
  return all;
}

void run(const Flags& flags) {
  const Subject subject = load(flags);
  const Json build = build_json(subject.backend->name());
  const std::vector<Figure> figures = measure_all(flags, subject);
  const std::string model = flags.model.empty() ? flags.dims : flags.model;
  if (!flags.json) {
    fmt::print("{}\n\n{}\n{}", model, table(figures), json_line(build));
    return;
  }
  for (const Figure& figure : figures) {
    Json row = figure_json(figure);
    row["model"] = model;
    row["build"] = build;
    fmt::print("{}", json_line(row));
  }
}

int run_program(int argc, char** argv) {
  CLI::App app("Decode steps with one defect of other runtimes at a time, beside steps without");
  Flags flags;
  app.add_option("--dims", flags.dims, "Random weights: NAME[:4bit|8bit|bf16]")
      ->capture_default_str();
  app.add_option("-m,--model", flags.model, "Checkpoint folder in place of --dims");
  app.add_option("--contexts", flags.contexts, "Tokens that a step is decoded behind")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--defects", flags.defects, "Some of them (all)")
      ->delimiter(',')
      ->check(CLI::IsMember(defect_names()));
  app.add_option("--rounds", flags.rounds, "Rounds that are kept")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", flags.json, "JSON Lines with all samples");
  CLI11_PARSE(app, argc, argv);
  run(flags);
  return 0;
}

}  // namespace

}  // namespace whimbrel::ablations

int main(int argc, char** argv) {
  try {
    return whimbrel::ablations::run_program(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "whimbrel-ablations: {}\n", error.what());
    return 1;
  }
}
