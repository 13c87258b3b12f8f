#include "cli/chat_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "cli/media_flags.h"
#include "cli/terminal.h"
#include "text/reasoning.h"

namespace whimbrel {

namespace {

/// Where a prompt ends with the beginning of an answer, these tokens show it.
constexpr size_t kPromptEnd = 16;

Prepared prepare(const ChatSession& session, const Conversation& conversation) {
  const ChatModel& model = session.model;
  ChatInput input = conversation.input();
  input.chat.kwargs = session.template_kwargs;
  return prepare_chat(model.frontend, model.chat_template, input, model.media);
}

void require_chat_room(const Prompt& prompt, int context) {
  if (prompt.tokens() >= context) {
    throw Error(
        Fault::input,
        "context",
        "got a conversation of {} tokens, expected fewer than the context of {} (-c); /clear "
        "begins a new one, and smaller pictures leave more room",
        prompt.tokens(),
        context
    );
  }
}

/// Those that were not said before: pictures stay in their order.
void say_new_reductions(ChatSession& session, const std::vector<ReducedPicture>& reduced) {
  const size_t said = std::min(session.reductions_said, reduced.size());
  say_reduced(
      {reduced.begin() + static_cast<ptrdiff_t>(said), reduced.end()}, session.model.frontend
  );
  session.reductions_said = reduced.size();
}

Request request_of(const ChatSession& session, Prompt prompt) {
  const Frontend& frontend = session.model.frontend;
  const int left = session.model.context - prompt.tokens();
  Request request{.prompt = std::move(prompt)};
  request.sampling = sampling_options(session.sampling, frontend.config);
  request.max_tokens = std::min(session.sampling.max_tokens.value_or(kDefaultMaxTokens), left);
  request.stop_ids = frontend.stop_ids;
  request.stops = session.sampling.stops;
  return request;
}

bool begins_with_reasoning(const Prompt& prompt, const Tokenizer& tokenizer) {
  const size_t count = std::min(prompt.ids.size(), kPromptEnd);
  return opens_reasoning(tokenizer.decode(std::span(prompt.ids).last(count), SpecialTokens::keep));
}

/// Shows an answer piece by piece: the bar until the first one, reasoning dimmed between its tags.
class AnswerScreen {
 public:
  explicit AnswerScreen(const ChatDisplay& display) : display_(display) {
    bar_.emplace("reading", display.progress);
  }

  void show_progress(int done, int total) {
    if (bar_) {
      bar_->update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
    }
  }

  void show_reasoning(std::string_view text) {
    bar_.reset();
    if (!display_.show_reasoning) {
      return;
    }
    if (!reasoning_) {
      write(fmt::format("{}<think>\n", style_.dim));
      reasoning_ = true;
    }
    write_text(text);
  }

  void show_text(std::string_view text) {
    bar_.reset();
    end_reasoning();
    write_text(text);
  }

  /// The cursor is then at the beginning of a line, if the answer is shown to a person.
  void finish() {
    bar_.reset();
    end_reasoning();
    if (display_.interactive && !at_line_start_) {
      write("\n");
    }
  }

 private:
  void end_reasoning() {
    if (std::exchange(reasoning_, false)) {
      write(fmt::format("{}</think>{}\n", at_line_start_ ? "" : "\n", style_.reset));
    }
  }

  void write_text(std::string_view text) {
    write_answer(text);
    at_line_start_ = text.ends_with('\n');
  }

  void write(std::string_view text) {
    write_stdout(text);
    at_line_start_ = text.ends_with('\n');
  }

  const ChatDisplay& display_;
  Style style_ = stdout_style();
  std::optional<ProgressBar> bar_;
  bool reasoning_ = false;
  bool at_line_start_ = true;
};

/// What a person should know of how an answer ended.
void say_end(const ChatSession& session, const ChatAnswer& answer) {
  if (answer.end == ChatEnd::interrupted) {
    write_stderr(
        answer.empty() ? "stopped before the answer began: the question is taken back\n"
                       : "stopped: what came stays in the conversation\n"
    );
  } else if (answer.end == ChatEnd::length) {
    const int total = answer.prompt_tokens + answer.tokens;
    write_stderr(
        total >= session.model.context
            ? fmt::format("the context of {} tokens is full; /clear begins anew\n", total)
            : fmt::format("cut at {} tokens; /set max_tokens changes that\n", answer.tokens)
    );
  }
}

ChatAnswer show_answer(
    ServingEngine& serving, Request request, bool reasoning_opened, const ChatDisplay& display
) {
  AnswerScreen screen(display);
  const ChatListener listener = {
      .on_prefill = [&](int done, int total) { screen.show_progress(done, total); },
      .on_reasoning = [&](std::string_view text) { screen.show_reasoning(text); },
      .on_text = [&](std::string_view text) { screen.show_text(text); },
      .interrupt = display.interrupt,
  };
  try {
    ChatAnswer answer = ask(serving, std::move(request), reasoning_opened, listener);
    screen.finish();
    return answer;
  } catch (const Error&) {
    screen.finish();  // the error's sentence has a line of its own
    throw;
  }
}

/// Keeps what came; a question to which nothing came is taken back.
void keep(Conversation& conversation, const ChatAnswer& answer) {
  if (answer.end == ChatEnd::interrupted && answer.empty()) {
    conversation.take_back();
  } else {
    conversation.answer(answer.text, answer.reasoning);
  }
}

}  // namespace

void attach(ChatSession& session, const std::filesystem::path& path, MediaKind kind) {
  Conversation trial;
  trial.attach(path, kind);
  trial.ask("");
  const Prepared prepared = prepare(session, trial);
  session.conversation.attach(path, kind);
  const MediaSpan& span = prepared.prompt.media.front();
  const Size& size = span.patches.original;
  write_stderr(
      fmt::format(
          "{}: {} of {} x {} pixels, {} tokens; it goes with your next message\n",
          visible(path.string()),
          kind == MediaKind::image ? "a picture" : "a video",
          size.width,
          size.height,
          span.tokens()
      )
  );
}

Prepared ask_question(ChatSession& session, const std::string& text) {
  session.conversation.ask(text);
  try {
    Prepared prepared = prepare(session, session.conversation);
    require_chat_room(prepared.prompt, session.model.context);
    say_new_reductions(session, prepared.reduced);
    return prepared;
  } catch (...) {
    session.conversation.take_back();
    throw;
  }
}

Interrupt answer_question(
    ChatSession& session, ServingEngine& serving, Prepared prepared, const ChatDisplay& display
) {
  const bool opened = begins_with_reasoning(prepared.prompt, session.model.frontend.tokenizer);
  ChatAnswer answer;
  try {
    Request request = request_of(session, std::move(prepared.prompt));
    answer = show_answer(serving, std::move(request), opened, display);
  } catch (...) {
    session.conversation.take_back();
    throw;
  }
  keep(session.conversation, answer);
  if (display.interactive) {
    say_end(session, answer);
  }
  session.last = {answer, prepared.media_decode + prepared.preprocess};
  return answer.interrupt;
}

}  // namespace whimbrel
