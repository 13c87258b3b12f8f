#include "cli/chat_answer.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "text/reasoning.h"

namespace whimbrel {

namespace {

/// How often an interrupt is looked for.
constexpr std::chrono::milliseconds kLook(20);

/// Events on their way from the engine's thread. Both sides own it: an answer that was interrupted
/// may have events after nobody waits for them.
class EventQueue {
 public:
  void push(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    came_.notify_one();
  }

  /// The next event, or nothing where none came for a moment.
  std::optional<Event> pop() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, kLook, [this] { return !events_.empty(); })) {
      return std::nullopt;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Event> events_;
};

/// The sentence is an Error's: `[where] what`.
Error error_of(const RequestFailed& failed) {
  const std::string_view sentence = failed.message;
  const size_t end = sentence.find("] ");
  if (!sentence.starts_with('[') || end == std::string_view::npos) {
    return {failed.fault, "request", "{}", sentence};
  }
  return {failed.fault, sentence.substr(1, end - 1), "{}", sentence.substr(end + 2)};
}

/// Puts an answer together from its events.
class AnswerReader {
 public:
  AnswerReader(bool reasoning_opened, const ChatListener& listener)
      : reasoning_(reasoning_opened), listener_(listener) {}

  /// Whether more is to come.
  bool take(const Event& event) {
    std::visit([this](const auto& one) { on(one); }, event);
    return !answer_.timings;
  }

  /// The answer as far as it came, what was held back included.
  ChatAnswer finish() {
    pass_on(reasoning_.finish());
    return std::move(answer_);
  }

 private:
  void on(const Admitted& admitted) {
    answer_.prompt_tokens = admitted.prompt_tokens;
    answer_.cached_tokens = admitted.cached_tokens;
  }
  void on(const PromptProgress& progress) { listener_.on_prefill(progress.done, progress.total); }
  void on(const AnswerToken& token) {
    ++answer_.tokens;
    pass_on(reasoning_.push(token.text));
  }
  void on(const AnswerFinished& finished) {
    answer_.end = finished.reason == AnswerEnd::stop ? ChatEnd::stop : ChatEnd::length;
    pass_on(reasoning_.push(finished.text));
  }
  void on(const RequestFinished& finished) { answer_.timings = finished.timings; }
  [[noreturn]] void on(const RequestFailed& failed) { throw error_of(failed); }

  void pass_on(const ReasoningPiece& piece) {
    if (!piece.reasoning.empty()) {
      answer_.reasoning += piece.reasoning;
      listener_.on_reasoning(piece.reasoning);
    }
    if (!piece.text.empty()) {
      answer_.text += piece.text;
      listener_.on_text(piece.text);
    }
  }

  ReasoningStream reasoning_;
  const ChatListener& listener_;
  ChatAnswer answer_;
};

}  // namespace

ChatAnswer ask(
    ServingEngine& serving, Request request, bool reasoning_opened, const ChatListener& listener
) {
  const auto events = std::make_shared<EventQueue>();
  const std::optional<uint64_t> id =
      serving.submit(std::move(request), [events](Event event) { events->push(std::move(event)); });
  if (!id) {
    throw Error(Fault::input, "run", "got too many questions at a time; try again in a moment");
  }
  AnswerReader reader(reasoning_opened, listener);
  for (bool more = true; more;) {
    const Interrupt interrupt = listener.interrupt();
    if (interrupt != Interrupt::none) {
      serving.cancel(*id);
      ChatAnswer answer = reader.finish();
      answer.end = ChatEnd::interrupted;
      answer.interrupt = interrupt;
      return answer;
    }
    const std::optional<Event> event = events->pop();
    more = !event || reader.take(*event);
  }
  return reader.finish();
}

}  // namespace whimbrel
