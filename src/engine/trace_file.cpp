#include "engine/trace_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/digest.h"
#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int kFormat = 1;
constexpr int kMostTokens = 1 << 30;
constexpr size_t kLeastTop = 2;  // the gap needs the best two

template <typename Value>
std::string_view bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

[[noreturn]] void refuse(const JsonSource& source, std::string_view found, std::string_view want) {
  throw Error(source.fault, source.where, "got {}, expected {}; make the trace again", found, want);
}

std::string get_sha256(const Json& object, std::string_view key, const JsonSource& source) {
  std::string text = get_string(object, key, source);
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 64 || !std::ranges::all_of(text, is_hex)) {
    refuse(source, fmt::format("{} \"{}\"", key, text.substr(0, 80)), "64 hex digits");
  }
  return text;
}

std::string get_name(const Json& object, std::string_view key, const JsonSource& source) {
  std::string text = get_string(object, key, source);
  if (text.empty()) {
    refuse(source, fmt::format("an empty {}", key), "a name");
  }
  return text;
}

Json get_build(const Json& object, const JsonSource& source) {
  const Json& build = get_object_or_empty(object, "build", source);
  get_name(build, "build_id", source);
  return build;
}

int get_count(const Json& object, std::string_view key, const JsonSource& source, int least) {
  return static_cast<int>(get_int(object, key, source, least, kMostTokens));
}

void require_object(const Json& json, const JsonSource& source) {
  if (!json.is_object()) {
    refuse(source, json.type_name(), "an object");
  }
}

TraceHeader read_header(const Json& json, const JsonSource& source) {
  require_object(json, source);
  if (get_int(json, "whimbrel_trace", source) != kFormat) {
    refuse(source, "another format", fmt::format("whimbrel_trace {}", kFormat));
  }
  return {
      .build = get_build(json, source),
      .model = get_sha256(json, "model", source),
      .input = get_sha256(json, "input", source),
      .ops = get_name(json, "ops", source),
      .dtype = get_name(json, "dtype", source),
      .depth = get_count(json, "depth", source, 0),
      .width = get_count(json, "width", source, 1),
      .positions = get_count(json, "positions", source, 1),
      .prefill_int8 = get_bool_or(json, "prefill_int8", false, source),
  };
}

std::vector<int32_t> get_top_ids(const Json& json, const JsonSource& source) {
  const std::vector<int64_t> read = get_ints(json, "top_ids", source);
  const bool distinct = std::set(read.begin(), read.end()).size() == read.size();
  if (!distinct || read.size() < kLeastTop || std::ranges::max(read) > kMostTokens) {
    refuse(
        source, "top_ids " + json.value("top_ids", Json()).dump(), "at least two ids, each once"
    );
  }
  return {read.begin(), read.end()};
}

std::vector<float> get_top_logits(const Json& json, const JsonSource& source) {
  const Json list = json.value("top_logits", Json());
  const auto is_finite = [](const Json& value) {
    return value.is_number() && std::isfinite(value.get<float>());
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_finite)) {
    refuse(source, "top_logits " + list.dump(), "a list of finite numbers");
  }
  auto logits = list.get<std::vector<float>>();
  if (!std::ranges::is_sorted(logits, std::greater{})) {
    refuse(source, "top_logits " + list.dump(), "the best first");
  }
  return logits;
}

double get_nll(const Json& json, const JsonSource& source) {
  const double nll = get_number(json, "nll", source);
  if (nll < 0) {
    refuse(source, fmt::format("nll {}", nll), "-ln of a probability");
  }
  return nll;
}

TraceRow read_row(const Json& json, const JsonSource& source) {
  require_object(json, source);
  TraceRow row{
      .pos = get_count(json, "pos", source, 0),
      .id = get_count(json, "id", source, 0),
      .target = get_count(json, "target", source, 0),
      .nll = get_nll(json, source),
      .top_ids = get_top_ids(json, source),
      .top_logits = get_top_logits(json, source),
  };
  if (row.top_ids.size() != row.top_logits.size()) {
    refuse(
        source,
        fmt::format("{} top_ids and {} top_logits", row.top_ids.size(), row.top_logits.size()),
        "as many of both"
    );
  }
  return row;
}

/// Rows are consecutive, and each one's target is what the next one feeds.
void require_follows(const Trace& trace, const TraceRow& row, const JsonSource& source) {
  const int expected = trace.header.depth + static_cast<int>(trace.rows.size());
  if (row.pos != expected) {
    refuse(source, fmt::format("pos {}", row.pos), fmt::format("{}", expected));
  }
  if (!trace.rows.empty() && trace.rows.back().target != row.id) {
    refuse(
        source,
        fmt::format("id {}", row.id),
        fmt::format("the target before it, {}", trace.rows.back().target)
    );
  }
}

void require_whole(const Trace& trace, std::string_view where) {
  const JsonSource source{std::string(where), Fault::usage};
  if (trace.header.positions == 0) {
    refuse(source, "an empty file", "a trace");
  }
  if (std::ssize(trace.rows) != trace.header.positions) {
    refuse(
        source,
        fmt::format("{} rows", trace.rows.size()),
        fmt::format("the header's {}: a file that was cut off or added to", trace.header.positions)
    );
  }
}

}  // namespace

std::string input_sha256(const Prompt& prompt, const std::vector<MediaInput>& media) {
  Digest sum;
  sum.update(fmt::format("ids {}\n", prompt.ids.size())).update(bytes_of(prompt.ids));
  for (const MediaInput& input : media) {
    sum.update(fmt::format("media {} {}\n", input.bytes.size(), input.frames.size()));
    sum.update(input.bytes);
    for (const EncodedPicture& frame : input.frames) {
      sum.update(fmt::format("frame {}\n", frame.bytes.size())).update(frame.bytes);
    }
    sum.update(fmt::format("fps {}\n", input.fps.value_or(0)));
  }
  return sum.hex();
}

std::string trace_line(const TraceHeader& header) {
  Json json = {
      {"whimbrel_trace", kFormat},
      {"build", header.build},
      {"model", header.model},
      {"input", header.input},
      {"ops", header.ops},
      {"dtype", header.dtype},
      {"depth", header.depth},
      {"width", header.width},
      {"positions", header.positions}
  };
  if (header.prefill_int8) {
    json["prefill_int8"] = true;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string trace_line(const TraceRow& row) {
  const Json json = {
      {"pos", row.pos},
      {"id", row.id},
      {"target", row.target},
      {"nll", row.nll},
      {"top_ids", row.top_ids},
      {"top_logits", row.top_logits}
  };
  return json.dump();
}

Trace parse_trace(std::string_view text, std::string_view where) {
  Trace trace;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const JsonSource source{fmt::format("{} line {}", where, number), Fault::usage};
    const Json json = parse_json(text.substr(0, end), source.where, source.fault);
    if (number == 1) {
      trace.header = read_header(json, source);
    } else {
      TraceRow row = read_row(json, source);
      require_follows(trace, row, source);
      trace.rows.push_back(std::move(row));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  require_whole(trace, where);
  return trace;
}

}  // namespace whimbrel
