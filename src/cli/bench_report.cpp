#include "cli/bench_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/memory.h"
#include "cli/report.h"
#include "engine/memory_estimate.h"
#include "ops/device.h"

namespace whimbrel {

namespace {

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json machine_json() {
  return {
      {"cpu", ops::device_name()},
      {"isa", ops::cpu::isa_name(ops::chosen_isa())},
      {"threads", ops::threads()},
      {"memory", optional_json(total_memory())}
  };
}

Json probe_json(const BenchProbe& probe) {
  Json reads = Json::array();
  for (const ops::ReadBandwidth& read : probe.reads) {
    reads.push_back(read.gb_s);
  }
  Json all = Json::object();
  Json one = Json::object();
  for (const ops::ArithmeticPeak& peak : probe.median_peaks()) {
    all[std::string(peak.kind)] = peak.all_threads;
    one[std::string(peak.kind)] = peak.one_thread;
  }
  return {
      {"read_gb_s", reads},
      {"read_pattern", probe.reads.front().pattern},
      {"read_threads", probe.reads.front().threads},
      {"peak_gmac_s", all},
      {"peak_gmac_s_one_thread", one}
  };
}

Json row_json(const BenchRow& row) {
  return {
      {"test", row.test},
      {"depth", row.cell.depth},
      {"rows", row.cell.rows},
      {"behind_image", row.cell.behind_image},
      {"ms", row.ms},
      {"ms_min", row.ms_min},
      {"ms_max", row.ms_max},
      {"ms_mean", row.ms_mean},
      {"ms_stddev", row.ms_stddev},
      {"samples", row.samples},
      {"repetitions", row.repetitions},
      {"tok_s", optional_json(row.tok_s)},
      {"tok_s_mean", optional_json(row.tok_s_mean)},
      {"tok_s_stddev", optional_json(row.tok_s_stddev)},
      {"bytes_per_token", optional_json(row.bytes_per_token)},
      {"bandwidth_fraction", optional_json(row.bandwidth_fraction)},
      {"peak_fraction", optional_json(row.peak_fraction)},
      {"delta_ms", optional_json(row.delta_ms)},
      {"delta_floor_ms", optional_json(row.delta_floor_ms)},
      {"peak_memory_bytes", optional_json(row.peak_memory)}
  };
}

/// What all rows of a run share.
Json run_json(
    const BenchModel& model,
    const BenchOptions& options,
    const BenchProbe& probe,
    std::string_view ops
) {
  return {
      {"build", build_json(ops)},
      {"ops", ops},
      {"isa", ops::cpu::isa_name(ops::chosen_isa())},
      {"threads", ops::threads()},
      {"model", model.name},
      {"weights", model.weights},
      {"note", model.note},
      {"parameters", model.checkpoint.summary().parameters},
      {"weight_bytes", model.checkpoint.total_bytes()},
      {"kv_bits", options.kv_bits},
      {"prefill_int8", options.ops.prefill_int8},
      {"prefill_chunk", options.prefill_chunk},
      {"warmup_steps", options.warmup},
      {"read_gb_s", probe.read_gb_s()},
      {"peak_kind", ops::fastest_floating(probe.median_peaks()).kind}
  };
}

// ---- text forms

std::string text_of(const Json& value) {
  if (value.is_null()) {
    return "";
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A number with some digits, or nothing for null.
std::string figure(const Json& value, int digits, double scale = 1) {
  return value.is_null() ? "" : fmt::format("{:.{}f}", value.get<double>() * scale, digits);
}

std::string test_text(const Json& row) {
  std::string text = row["test"].get<std::string>();
  if (row["rows"] != 1) {
    text += fmt::format(" x {} rows", row["rows"].get<int>());
  }
  if (row["depth"] != 0) {
    text += fmt::format(" @ d{}", row["depth"].get<int>());
  }
  return row["behind_image"].get<bool>() ? text + " behind a picture" : text;
}

std::string rate_text(const Json& row) {
  if (row["tok_s_mean"].is_null()) {
    return "";
  }
  return fmt::format(
      "{:.2f} ± {:.2f}", row["tok_s_mean"].get<double>(), row["tok_s_stddev"].get<double>()
  );
}

std::string ops_text(const Json& row) {
  return fmt::format(
      "{}, {}{}",
      row["ops"].get<std::string>(),
      row["isa"].get<std::string>(),
      row["prefill_int8"].get<bool>() ? ", int8 prefill" : ""
  );
}

std::string md_row(const Json& row) {
  const std::array cells = {
      row["model"].get<std::string>() + " " + row["weights"].get<std::string>(),
      size_text(row["weight_bytes"].get<uint64_t>()),
      fmt::format("{:.2f} B", row["parameters"].get<double>() / 1e9),
      ops_text(row),
      row["threads"].dump(),
      test_text(row),
      rate_text(row),
      figure(row["ms"], 3),
      figure(row["bytes_per_token"], 1, 1e-6),
      figure(row["bandwidth_fraction"], 1, 100),
      figure(row["peak_fraction"], 1, 100),
      figure(row["delta_ms"], 3),
      figure(row["delta_floor_ms"], 3),
  };
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string probe_text(const Json& bench) {
  const Json& probe = bench["probe"];
  std::vector<std::string> reads;
  for (const Json& read : probe["read_gb_s"]) {
    reads.push_back(figure(read, 2));
  }
  std::vector<std::string> peaks;
  for (const auto& [kind, value] : probe["peak_gmac_s"].items()) {
    peaks.push_back(fmt::format("{} {}", kind, figure(value, 1)));
  }
  return fmt::format(
      "read {} GB/s ({}, {} threads); 10^9 multiply-adds a second: {}\n",
      fmt::join(reads, ", "),
      probe["read_pattern"].get<std::string>(),
      probe["read_threads"].dump(),
      fmt::join(peaks, ", ")
  );
}

std::string md_text(const Json& bench) {
  const Json& build = bench["build"];
  const Json& first = bench["rows"].front();
  std::string text = fmt::format(
      "build {} {}{}, id {}, {} {}, MLX {}, {}\n",
      build["version"].get<std::string>(),
      build["commit"].get<std::string>(),
      build["dirty"].get<bool>() ? " (changed)" : "",
      build["build_id"].get<std::string>(),
      build["compiler"].get<std::string>(),
      build["flags"].get<std::string>(),
      build["mlx"].get<std::string>(),
      bench["machine"]["cpu"].get<std::string>()
  );
  text += probe_text(bench);
  const auto note = first["note"].get<std::string>();
  text += fmt::format(
      "{} steps of warm-up before each decode, one run before each other test{}\n\n",
      first["warmup_steps"].dump(),
      note.empty() ? "" : "; " + note
  );
  text +=
      "| model | size | params | ops | threads | test | t/s | ms | MB/token | % of bandwidth | % "
      "of peak | ms more | floor of that |\n"
      "|---|--:|--:|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const Json& row : bench["rows"]) {
    text += md_row(row);
  }
  return text;
}

/// A field of a CSV file (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char character : text) {
    quoted += character == '"' ? "\"\"" : std::string(1, character);
  }
  return quoted + "\"";
}

/// Columns and values of a row: an object's keys are spelled `build.ops`, a list's items stand
/// behind spaces.
std::vector<std::pair<std::string, std::string>> csv_fields(const Json& row) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [key, value] : row.items()) {
    if (value.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) {
        fields.emplace_back(fmt::format("{}.{}", key, inner), text_of(inner_value));
      }
    } else if (value.is_array()) {
      std::vector<std::string> items;
      for (const Json& item : value) {
        items.push_back(text_of(item));
      }
      fields.emplace_back(key, fmt::format("{}", fmt::join(items, " ")));
    } else {
      fields.emplace_back(key, text_of(value));
    }
  }
  return fields;
}

std::string csv_text(const Json& bench) {
  std::string text;
  for (const Json& row : bench["rows"]) {
    std::vector<std::string> names;
    std::vector<std::string> values;
    for (const auto& [name, value] : csv_fields(row)) {
      names.push_back(csv_field(name));
      values.push_back(csv_field(value));
    }
    if (text.empty()) {
      text += fmt::format("{}\n", fmt::join(names, ","));
    }
    text += fmt::format("{}\n", fmt::join(values, ","));
  }
  return text;
}

std::string jsonl_text(const Json& bench) {
  std::string text;
  for (const Json& row : bench["rows"]) {
    text += json_line(row);
  }
  return text;
}

/// The Go benchmark format, a line for each repetition: its mean time of a sample, and its rate.
std::string benchstat_text(const Json& bench) {
  std::string text = fmt::format(
      "build: {}\ncommit: {}\nops: {}\nisa: {}\ncpu: {}\nthreads: {}\n",
      bench["build"]["build_id"].get<std::string>(),
      bench["build"]["commit"].get<std::string>(),
      bench["build"]["ops"].get<std::string>(),
      bench["machine"]["isa"].get<std::string>(),
      bench["machine"]["cpu"].get<std::string>(),
      bench["machine"]["threads"].dump()
  );
  for (const Json& row : bench["rows"]) {
    const std::string name = fmt::format(
        "Benchmark/model={}/weights={}/test={}/depth={}/rows={}/image={}/kv_bits={}/prefill={}",
        row["model"].get<std::string>(),
        row["weights"].get<std::string>(),
        row["test"].get<std::string>(),
        row["depth"].dump(),
        row["rows"].dump(),
        row["behind_image"].get<bool>() ? "yes" : "no",
        row["kv_bits"].dump(),
        row["prefill_int8"].get<bool>() ? "int8" : "default"
    );
    const auto samples = row["samples"].get<std::vector<double>>();
    const size_t count = samples.size() / row["repetitions"].get<size_t>();
    for (size_t first = 0; first < samples.size(); first += count) {
      double total = 0;
      for (size_t i = first; i < first + count; ++i) {
        total += samples[i];
      }
      const double ms = total / static_cast<double>(count);
      text += fmt::format("{} {} {:.0f} ns/op", name, count, ms * 1e6);
      if (!row["tok_s"].is_null()) {
        // The same tokens as the median's rate is of.
        const double tokens = row["tok_s"].get<double>() * row["ms"].get<double>();
        text += fmt::format(" {:.3f} tok/s", tokens / ms);
      }
      text += "\n";
    }
  }
  return text;
}

struct FormatName {
  std::string_view name;
  BenchFormat format;
};

constexpr std::array<FormatName, 5> kFormats = {{
    {"md", BenchFormat::md},
    {"csv", BenchFormat::csv},
    {"json", BenchFormat::json},
    {"jsonl", BenchFormat::jsonl},
    {"benchstat", BenchFormat::benchstat},
}};

}  // namespace

BenchFormat parse_bench_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &FormatName::name);
  if (found == kFormats.end()) {
    throw Error(
        Fault::usage, "-o", "got \"{}\", expected one of md, csv, json, jsonl, benchstat", name
    );
  }
  return found->format;
}

Json bench_json(
    const BenchModel& model,
    const BenchOptions& options,
    const BenchMeasurement& measured,
    const std::vector<BenchRow>& rows,
    std::string_view ops
) {
  const Json run = run_json(model, options, measured.probe, ops);
  Json list = Json::array();
  for (const BenchRow& row : rows) {
    Json whole = run;
    whole.update(row_json(row));
    list.push_back(std::move(whole));
  }
  return {
      {"build", run["build"]},
      {"machine", machine_json()},
      {"probe", probe_json(measured.probe)},
      {"rows", std::move(list)}
  };
}

std::string bench_text(const Json& bench, BenchFormat format) {
  switch (format) {
    case BenchFormat::md:
      return md_text(bench);
    case BenchFormat::csv:
      return csv_text(bench);
    case BenchFormat::json:
      return json_line(bench);
    case BenchFormat::jsonl:
      return jsonl_text(bench);
    case BenchFormat::benchstat:
      return benchstat_text(bench);
  }
  return "";
}

}  // namespace whimbrel
