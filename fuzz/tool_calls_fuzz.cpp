// Any bytes as an answer with calls of tools, read whole and in pieces: the events are the same,
// arguments of a call that ended are JSON, and nothing of the answer goes missing.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls.h"

namespace {

using whimbrel::Json;
using whimbrel::ToolEvent;
using Kind = whimbrel::ToolEvent::Kind;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

std::vector<whimbrel::Tool> tools() {
  static const Json parameters = Json::parse(R"({"properties": {
    "a": {"type": "string"}, "b": {"type": ["integer", "null"]}, "c": {"type": "object"}
  }})");
  return {{.name = "f", .parameters = parameters}};
}

std::vector<ToolEvent> events_of(
    whimbrel::ToolFormat format, std::string_view answer, size_t piece_size
) {
  whimbrel::ToolCallStream stream(format, tools());
  std::vector<ToolEvent> all;
  const auto add = [&](const std::vector<ToolEvent>& events) {
    for (const ToolEvent& event : events) {
      const bool is_piece = event.kind == Kind::text || event.kind == Kind::arguments;
      if (is_piece && !all.empty() && all.back().kind == event.kind) {
        all.back().text += event.text;
      } else {
        all.push_back(event);
      }
    }
  };
  for (size_t begin = 0; begin < answer.size(); begin += piece_size) {
    add(stream.push(answer.substr(begin, piece_size)));
  }
  add(stream.finish());
  return all;
}

bool same(const std::vector<ToolEvent>& one, const std::vector<ToolEvent>& other) {
  return std::ranges::equal(one, other, [](const ToolEvent& a, const ToolEvent& b) {
    return a.kind == b.kind && a.index == b.index && a.text == b.text;
  });
}

/// Calls are begun in order, and end or break once.
void check_order(const std::vector<ToolEvent>& events) {
  bool is_open = false;
  int calls = 0;
  std::string arguments;
  for (const ToolEvent& event : events) {
    require(event.kind == Kind::text || event.index == calls);
    require(is_open == (event.kind != Kind::text && event.kind != Kind::call_begun));
    if (event.kind == Kind::call_begun) {
      require(!event.text.empty());
      is_open = true;
      arguments.clear();
    } else if (event.kind == Kind::arguments) {
      arguments += event.text;
    } else if (event.kind != Kind::text) {
      is_open = false;
      ++calls;
    }
  }
  require(!is_open);
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(Json(std::string(text)).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

void check_arguments(const std::vector<ToolEvent>& events) {
  for (size_t i = 1; i < events.size(); ++i) {
    if (events[i].kind == Kind::call_ended) {
      require(events[i - 1].kind == Kind::arguments);
      require(Json::accept(events[i - 1].text));
    }
  }
}

void check(whimbrel::ToolFormat format, std::string_view answer) {
  const std::vector<ToolEvent> whole = events_of(format, answer, answer.size());
  check_order(whole);
  // The detokenizer hands out nothing else.
  if (is_utf8(answer)) {
    check_arguments(whole);
  }
  for (const size_t size : {size_t{1}, size_t{3}, size_t{7}}) {
    require(same(events_of(format, answer, size), whole));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  check(whimbrel::ToolFormat::hermes, answer);
  check(whimbrel::ToolFormat::xml, answer);
  return 0;
}
