#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/interrupt.h"
#include "engine/request.h"
#include "engine/serving_engine.h"

namespace whimbrel {

/// What is told while an answer comes.
struct ChatListener {
  std::function<void(int done, int total)> on_prefill = {};  // tokens of the prompt
  std::function<void(std::string_view text)> on_reasoning = {};
  std::function<void(std::string_view text)> on_text = {};
  std::function<Interrupt()> interrupt =
      {};  // asked again and again; all but `none` end the answer
};

enum class ChatEnd { stop, length, interrupted };

/// An answer, whole or as far as it came.
struct ChatAnswer {
  ChatEnd end = ChatEnd::stop;
  Interrupt interrupt = Interrupt::none;  // what ended it
  std::string reasoning = {};
  std::string text = {};
  int prompt_tokens = 0;
  int cached_tokens = 0;  // of the prompt, not computed again
  int tokens = 0;
  std::optional<RequestTimings> timings = {};  // of an answer that was not interrupted

  bool empty() const { return text.empty() && reasoning.empty(); }
};

/// Asks for one answer and waits for it. An interrupt ends it at once, though the engine may still
/// be busy with its step. Throws Error where the request is refused or fails.
ChatAnswer ask(
    ServingEngine& serving, Request request, bool reasoning_opened, const ChatListener& listener
);

}  // namespace whimbrel
