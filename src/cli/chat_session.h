#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/chat_answer.h"
#include "cli/conversation.h"
#include "cli/sampling_flags.h"
#include "engine/frontend.h"
#include "engine/prepare.h"
#include "text/chat_template.h"

namespace whimbrel {

/// What a chat needs of a model beside its weights.
struct ChatModel {
  const Frontend& frontend;
  const ChatTemplate& chat_template;
  MediaOptions media = {};
  int context = 0;  // tokens of the conversation and the answer to come
};

/// Milliseconds and tokens of an answer, for /stats.
struct ChatFigures {
  ChatAnswer answer = {};
  double media = 0;  // decoding and resizing what is looked at
};

/// A chat as it stands. Functions over it say on stderr what they did; stdout is for answers.
struct ChatSession {
  ChatModel model;
  SamplingFlags sampling = {};
  Json template_kwargs = Json::object();
  Conversation conversation = {};
  std::optional<ChatFigures> last = {};            // of the last answer
  std::set<std::filesystem::path> own_files = {};  // that were saved or loaded, and may be replaced
  size_t reductions_said = 0;  // pictures of which it was said that they are looked at smaller
  bool leaving = false;
};

/// How an answer is shown.
struct ChatDisplay {
  bool interactive = false;  // line ends behind answers, and notes
  bool show_reasoning = false;
  bool progress = false;  // a bar while the prompt is read
  std::function<Interrupt()> interrupt = {};
};

/// Attaches a picture or video to the next question, once it is certain that it can be looked at,
/// and says what becomes of it. Throws Error(Fault::input) and then changes nothing.
void attach(ChatSession& session, const std::filesystem::path& path, MediaKind kind);

/// Runs a line that is a command, or that names files as a terminal types them where they are
/// dropped. False where it is neither. Throws Error where that fails; the chat is then as before.
bool run_command_line(ChatSession& session, std::string_view line);

/// Asks a question and makes the prompt. Throws Error(Fault::input) where that can't be had, with
/// the question taken back.
Prepared ask_question(ChatSession& session, const std::string& text);

/// Has the question answered that ask_question prepared, and shows the answer as it comes. What
/// comes before an interrupt stays; where nothing came, or on an Error, the question is taken back.
/// Returns what interrupted it.
Interrupt answer_question(
    ChatSession& session, ServingEngine& serving, Prepared prepared, const ChatDisplay& display
);

}  // namespace whimbrel
