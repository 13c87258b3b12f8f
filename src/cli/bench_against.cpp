#include "cli/bench_against.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/executable.h"
#include "base/run_program.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "engine/bench_compare.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

/// The last line that a program wrote to stderr.
std::string last_line(const std::string& err) {
  const size_t end = err.find_last_not_of('\n');
  if (end == std::string::npos) {
    return "nothing on stderr";
  }
  const size_t begin = err.find_last_of('\n', end);
  return err.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

Json run_whimbrel(const fs::path& program, const std::vector<std::string>& arguments) {
  if (interrupted()) {
    throw Error(Fault::interrupted, "bench", "interrupted");
  }
  const ProgramResult result = run_program(program, arguments);
  if (result.exit_code != 0) {
    throw Error(
        Fault::usage,
        program.string(),
        "`{}` ended with {}, expected 0: {}",
        arguments.front(),
        result.exit_code,
        last_line(result.err)
    );
  }
  return parse_json(result.out, program.string(), Fault::usage, {.depth = 16});
}

/// What `version --json` says of a build.
Json build_of(const fs::path& program) {
  Json build = run_whimbrel(program, {"version", "--json"});
  if (!build.is_object() || !build.contains("build_id")) {
    throw Error(
        Fault::usage, program.string(), "got a program that states no build_id, expected whimbrel"
    );
  }
  return build;
}

void require_two_builds(const Json& a, const Json& b, bool self) {
  const std::string id = get_string(a, "build_id", {"version", Fault::usage});
  if (id == get_string(b, "build_id", {"version", Fault::usage}) && !self) {
    throw Error(
        Fault::usage,
        "--against",
        "got two binaries of one build (build_id {}), expected two builds: they can only be "
        "equally fast; rebuild, or say --self to see what differs by chance",
        id
    );
  }
}

/// Milliseconds of each cell in each of some runs, by the cell's name, in the order of the first
/// run.
class Runs {
 public:
  void add(const Json& bench, const fs::path& program) {
    try {
      for (const Json& row : bench.at("rows")) {
        add_value(cell_name(row), row.at("ms").get<double>());
      }
      reads_.push_back(bench.at("rows").at(0).at("read_gb_s").get<double>());
    } catch (const Json::exception& error) {
      throw Error(
          Fault::usage,
          program.string(),
          "got an answer to bench that can't be read ({}), expected that of a whimbrel like this",
          error.what()
      );
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<double>& reads() const { return reads_; }

  const std::vector<double>& values(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      throw Error(
          Fault::usage,
          "--against",
          "got no cell {} from one of the builds, expected the same cells from both",
          name
      );
    }
    return found->second;
  }

  static std::string cell_name(const Json& row) {
    const int rows = row.at("rows").get<int>();
    const int depth = row.at("depth").get<int>();
    std::string name = row.at("test").get<std::string>();
    name += rows == 1 ? "" : fmt::format(" x {} rows", rows);
    name += depth == 0 ? "" : fmt::format(" @ d{}", depth);
    return name + (row.at("behind_image").get<bool>() ? " behind a picture" : "");
  }

 private:
  void add_value(const std::string& name, double ms) {
    if (!values_.contains(name)) {
      names_.push_back(name);
    }
    values_[name].push_back(ms);
  }

  std::vector<std::string> names_;
  std::map<std::string, std::vector<double>> values_;
  std::vector<double> reads_;
};

/// The processes of a comparison, one at a time.
class Rounds {
 public:
  Rounds(const AgainstOptions& options, const fs::path& a) : a_(a), b_(options.binary) {
    arguments_ = {"bench", "--control", "-o", "json"};
    arguments_.insert(arguments_.end(), options.arguments.begin(), options.arguments.end());
    total_ = 2 + 4 * (options.rounds + 1);
  }

  void run_a(Runs& runs) { run(a_, runs); }
  void run_b(Runs& runs) { run(b_, runs); }

 private:
  void run(const fs::path& program, Runs& runs) {
    bar_.update(static_cast<uint64_t>(done_++), static_cast<uint64_t>(total_));
    runs.add(run_whimbrel(program, arguments_), program);
  }

  fs::path a_;
  fs::path b_;
  std::vector<std::string> arguments_;
  ProgressBar bar_{"comparing", true};
  int done_ = 0;
  int total_ = 0;
};

Json statistics_json(const Statistics& values) {
  return {{"median", values.median}, {"min", values.min}, {"max", values.max}};
}

Json comparison_json(const std::string& name, const CellComparison& cell) {
  return {
      {"cell", name},
      {"a", statistics_json(cell.a)},
      {"b", statistics_json(cell.b)},
      {"ratio", cell.ratio},
      {"resolution", cell.resolution},
      {"verdict", verdict_text(cell.verdict)}
  };
}

/// `tg128x2`, with or without a depth behind it.
bool is_doubled(const std::string& name) {
  return name.starts_with("tg") && name.substr(0, name.find(' ')).ends_with("x2");
}

/// The cell with each step computed once.
std::string single(std::string name) {
  const size_t at = name.find("x2");
  return name.erase(at, 2);
}

/// Memory is equally fast for both, so this must not move; doubled work must.
Json controls_json(const Runs& same, const Runs& a, const Runs& b) {
  Json controls = Json::array();
  const CellComparison read = compare_cell(a.reads(), b.reads(), same.reads());
  Json still = comparison_json("read bandwidth, GB/s", read);
  still["must"] = "not move";
  still["held"] = read.verdict == BenchVerdict::no_difference;
  controls.push_back(std::move(still));
  for (const std::string& name : a.names()) {
    if (is_doubled(name)) {
      const std::string once = single(name);
      const CellComparison doubled =
          compare_cell(a.values(once), a.values(name), same.values(once));
      Json moved = comparison_json(fmt::format("{} against {}", name, once), doubled);
      moved["must"] = "be slower";
      moved["held"] = doubled.verdict == BenchVerdict::slower;
      controls.push_back(std::move(moved));
    }
  }
  return controls;
}

std::string line_of(const Json& cell) {
  const auto range = [](const Json& values) {
    return fmt::format(
        "{:.3f} [{:.3f}, {:.3f}]",
        values["median"].get<double>(),
        values["min"].get<double>(),
        values["max"].get<double>()
    );
  };
  return fmt::format(
      "| {} | {} | {} | {:.3f} | {:.1f} % | ",
      cell["cell"].get<std::string>(),
      range(cell["a"]),
      range(cell["b"]),
      cell["ratio"].get<double>(),
      cell["resolution"].get<double>() * 100
  );
}

}  // namespace

Json bench_against(const AgainstOptions& options) {
  const fs::path self = executable_path();
  const Json build = build_of(self);
  const Json other = build_of(options.binary);
  require_two_builds(build, other, options.self);
  Rounds rounds(options, self);
  Runs thrown_away;
  rounds.run_b(thrown_away);
  rounds.run_a(thrown_away);
  Runs same;
  for (int i = 0; i < 4; ++i) {
    rounds.run_a(same);
  }
  Runs a;
  Runs b;
  for (int round = 0; round < options.rounds; ++round) {
    rounds.run_a(a);
    rounds.run_b(b);
    rounds.run_b(b);
    rounds.run_a(a);
  }
  Json cells = Json::array();
  for (const std::string& name : a.names()) {
    if (!is_doubled(name)) {
      cells.push_back(
          comparison_json(name, compare_cell(a.values(name), b.values(name), same.values(name)))
      );
    }
  }
  return {
      {"a", build},
      {"b", other},
      {"rounds", options.rounds},
      {"cells", std::move(cells)},
      {"controls", controls_json(same, a, b)}
  };
}

std::string against_text(const Json& comparison) {
  std::string text;
  for (const char* arm : {"a", "b"}) {
    const Json& build = comparison[arm];
    text += fmt::format(
        "{}: build {}, commit {}\n",
        arm,
        build["build_id"].get<std::string>(),
        build["commit"].get<std::string>()
    );
  }
  text += fmt::format(
      "{} rounds a b b a, one process each; ms: median [smallest, largest]; resolution: a against "
      "itself\n\n",
      comparison["rounds"].dump()
  );
  text += "| cell | a | b | b / a | resolution | b is |\n|---|--:|--:|--:|--:|---|\n";
  for (const Json& cell : comparison["cells"]) {
    text += fmt::format("{}{} |\n", line_of(cell), cell["verdict"].get<std::string>());
  }
  text +=
      "\n| control | a | b | b / a | resolution | must | does |\n|---|--:|--:|--:|--:|---|---|\n";
  for (const Json& control : comparison["controls"]) {
    text += fmt::format(
        "{}{} | {} |\n",
        line_of(control),
        control["must"].get<std::string>(),
        control["held"].get<bool>() ? "yes" : "NO"
    );
  }
  return text;
}

void require_controls(const Json& comparison) {
  for (const Json& control : comparison["controls"]) {
    if (!control["held"].get<bool>()) {
      throw Error(
          Fault::check,
          "bench",
          "got the control \"{}\", which must {}, at a ratio of {:.3f}, so that no verdict counts; "
          "run again on a quieter machine, with more --rounds",
          control["cell"].get<std::string>(),
          control["must"].get<std::string>(),
          control["ratio"].get<double>()
      );
    }
  }
}

}  // namespace whimbrel
