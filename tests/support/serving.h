#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/serving_core.h"
#include "tests/support/loaded_model.h"

namespace whimbrel::test {

/// What became of a request.
struct Outcome {
  std::map<int, std::string> texts;  // by choice
  std::map<int, std::vector<int32_t>> ids;
  std::map<int, AnswerFinished> ends;
  std::vector<AnswerToken> tokens;
  std::vector<int> progress;
  Admitted admitted;
  int last_events = 0;  // RequestFinished or RequestFailed
  std::optional<RequestFailed> failed;

  void operator()(const Event& event) {
    ASSERT_EQ(last_events, 0) << "an event behind the last one";
    if (const auto* token = std::get_if<AnswerToken>(&event)) {
      texts[token->choice] += token->text;
      ids[token->choice].push_back(token->id);
      tokens.push_back(*token);
    } else if (const auto* end = std::get_if<AnswerFinished>(&event)) {
      texts[end->choice] += end->text;
      ends[end->choice] = *end;
    } else if (const auto* progress_event = std::get_if<PromptProgress>(&event)) {
      progress.push_back(progress_event->done);
    } else if (const auto* admitted_event = std::get_if<Admitted>(&event)) {
      admitted = *admitted_event;
    } else {
      ++last_events;
      if (const auto* failure = std::get_if<RequestFailed>(&event)) {
        failed = *failure;
      }
    }
  }
};

/// Steps until nobody waits.
inline void run(ServingCore& core) {
  while (core.busy()) {
    core.step();
  }
}

/// A loaded model, cores that serve it, and requests for them.
class ServedModel {
 public:
  template <typename... Ops>
  explicit ServedModel(const std::filesystem::path& folder, Ops&&... ops)
      : loaded_(folder, std::forward<Ops>(ops)...) {}

  ServingOptions options() const {
    return {
        .context = 2048,
        .prefill_chunk = 64,
        .memory = 256 << 20,
        .prefix_memory = 64 << 20,
        .feature_memory = 16 << 20
    };
  }

  ServingCore core(const ServingOptions& options) const {
    return {loaded_.model(), loaded_.frontend.shape, loaded_.frontend.tokenizer, options};
  }
  ServingCore core() const { return core(options()); }

  Request greedy(Prompt prompt, int max_tokens = 24) const {
    Request request{.prompt = std::move(prompt)};
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.stop_ids = loaded_.frontend.stop_ids;
    return request;
  }

  Request asking(const std::string& text, int max_tokens = 24) const {
    return greedy(loaded_.prompt({}, text), max_tokens);
  }

  Request picture(
      const std::string& text = "Describe this image.",
      const std::string& file = "examples/shapes.png"
  ) const {
    return greedy(loaded_.prompt({file}, text));
  }

  /// Puts a request into a core's queue; the outcome fills as the core goes on.
  std::shared_ptr<Outcome> add(ServingCore& core, Request request) {
    auto outcome = std::make_shared<Outcome>();
    auto running = std::make_shared<RunningRequest>();
    running->id = ++last_id_;
    running->key = prefix_key(request.prompt);
    running->request = std::move(request);
    running->sink = [outcome](const Event& event) { (*outcome)(event); };
    core.add(std::move(running));
    return outcome;
  }

  Outcome alone(Request request, int kv_bits = 0) {
    ServingOptions plain = options();
    plain.kv_bits = kv_bits;
    ServingCore fresh = core(plain);
    const std::shared_ptr<Outcome> outcome = add(fresh, std::move(request));
    run(fresh);
    return *outcome;
  }

 protected:
  LoadedModel loaded_;
  uint64_t last_id_ = 0;
};

}  // namespace whimbrel::test
