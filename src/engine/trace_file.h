#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/prepare.h"
#include "generate/trace.h"

namespace whimbrel {

/// What a trace was made from and by: the first line of its file (docs/contract.md).
struct TraceHeader {
  Json build = Json::object();  // the object of `whimbrel version --json`
  std::string model = {};       // checkpoint_sha256
  std::string input = {};       // input_sha256
  std::string ops = {};
  std::string dtype = {};  // of activations, such as float32
  int depth = 0;
  int width = 0;
  int positions = 0;
  bool prefill_int8 = false;
};

/// One trace: the header and `positions` rows.
struct Trace {
  TraceHeader header = {};
  std::vector<TraceRow> rows = {};
};

/// SHA-256, as hex digits, over the ids and the encoded media in prompt order.
std::string input_sha256(const Prompt& prompt, const std::vector<MediaInput>& media);

/// One line each, without line end.
std::string trace_line(const TraceHeader& header);
std::string trace_line(const TraceRow& row);

/// Reads the JSON Lines of a trace. Throws Error(Fault::usage) that names `where` and the line
/// where it is no whole trace: fewer or more rows than the header says, a row that doesn't follow
/// the one before it, a value that is missing, not finite or out of order, fewer than two logits.
Trace parse_trace(std::string_view text, std::string_view where);

}  // namespace whimbrel
