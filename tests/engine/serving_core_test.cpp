// Many requests in one batch on a real model: each answer is what it is alone.

#include "engine/serving_core.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "generate/generate.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

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

class ServingTest : public testing::Test {
 protected:
  ServingTest() : loaded_(bundled_model("tiny-qwen2-5-vl-4bit")) {}

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

  /// Text, one picture and two, greedy and sampled.
  std::vector<Request> mixed_requests() const {
    Request sampled = asking("Tell me something.");
    sampled.sampling.temperature = 0.8;
    sampled.sampling.seed = 5;
    return {
        asking("What is 53 minus 44?"),
        asking("What is seven plus eight? Count from 3 to 40."),
        asking("Hello."),
        picture(),
        picture("Which colours are there?"),
        picture("Describe this image.", "tests/golden/reference/media/wide.png"),
        greedy(loaded_.prompt(
            {"examples/shapes.png", "tests/golden/reference/media/wide.png"}, "Compare them."
        )),
        sampled,
    };
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

  static void run(ServingCore& core) {
    while (core.busy()) {
      core.step();
    }
  }

  Outcome alone(Request request) {
    ServingCore fresh = core();
    const std::shared_ptr<Outcome> outcome = add(fresh, std::move(request));
    run(fresh);
    return *outcome;
  }

  LoadedModel loaded_;
  uint64_t last_id_ = 0;
};

TEST_F(ServingTest, an_answer_is_that_of_generate) {
  for (const Request& request : {asking("What is 53 minus 44?"), picture()}) {
    GenerateOptions options{.sampling = request.sampling, .max_tokens = request.max_tokens};
    options.stop_ids = request.stop_ids;
    const Generation expected = generate(
        loaded_.model(), loaded_.frontend.tokenizer, request.prompt, options, GenerateEvents{}
    );
    const Outcome found = alone(request);
    EXPECT_EQ(found.ids.at(0), expected.ids);
    EXPECT_EQ(found.texts.at(0), expected.text);
    EXPECT_EQ(
        found.ends.at(0).reason == AnswerEnd::stop, expected.finish_reason == FinishReason::stop
    );
    EXPECT_EQ(found.last_events, 1);
  }
}

TEST_F(ServingTest, a_limit_and_a_stop_text_end_an_answer) {
  Request request = picture();
  request.max_tokens = 3;
  EXPECT_EQ(alone(request).ends.at(0).reason, AnswerEnd::length);
  EXPECT_EQ(alone(request).ends.at(0).tokens, 3);
  request = picture();
  request.stops = {"never", "cross at"};
  const Outcome found = alone(request);
  EXPECT_EQ(found.texts.at(0), "A large orange ");
  EXPECT_EQ(found.ends.at(0).reason, AnswerEnd::stop);
  EXPECT_EQ(found.ends.at(0).stop_text, "cross at");
}

/// The same tokens whoever shares the batch, whatever is kept of prompts before, and whoever
/// leaves in between.
TEST_F(ServingTest, random_mixes_answer_as_each_alone) {
  const std::vector<Request> kinds = mixed_requests();
  std::vector<std::vector<int32_t>> expected;
  for (const Request& kind : kinds) {
    expected.push_back(alone(kind).ids.at(0));
  }
  std::mt19937 random(1);
  ServingCore shared = core();  // what one mix leaves, the next one finds
  for (int mix = 0; mix < 200; ++mix) {
    SCOPED_TRACE("mix " + std::to_string(mix));
    struct Waiting {
      size_t kind;
      uint64_t id;
      std::shared_ptr<Outcome> outcome;
      bool cancelled = false;
    };
    std::vector<Waiting> waiting;
    const size_t arrivals = 2 + random() % 5;
    while (shared.busy() || waiting.size() < arrivals) {
      if (waiting.size() < arrivals && (!shared.busy() || random() % 4 == 0)) {
        const size_t kind = random() % kinds.size();
        Request request = kinds[kind];
        request.scope = random() % 2 == 0 ? "one" : "other";
        std::shared_ptr<Outcome> outcome = add(shared, request);
        waiting.push_back({kind, last_id_, outcome});
      }
      shared.step();
      if (random() % 40 == 0) {
        Waiting& leaving = waiting[random() % waiting.size()];
        leaving.cancelled = leaving.cancelled || leaving.outcome->last_events == 0;
        shared.cancel(leaving.id);
      }
    }
    for (const Waiting& each : waiting) {
      EXPECT_EQ(each.outcome->last_events, 1);
      EXPECT_EQ(each.outcome->failed.has_value(), each.cancelled);
      if (!each.cancelled) {
        EXPECT_EQ(each.outcome->ids.at(0), expected[each.kind]) << "kind " << each.kind;
      }
    }
  }
  const ServingStatus status = shared.status();
  EXPECT_EQ(status.running + status.queued, 0);
  EXPECT_EQ(status.memory_used, status.prefix_bytes + status.feature_bytes);
  EXPECT_GT(status.cached_tokens, 0U);
  EXPECT_GT(status.pictures_cached, 0U);
  EXPECT_GT(status.cancelled, 0U);
}

TEST_F(ServingTest, a_second_turn_reads_what_is_new) {
  ServingCore server = core();
  const Request first = picture();
  const std::shared_ptr<Outcome> before = add(server, first);
  run(server);
  EXPECT_EQ(before->admitted.cached_tokens, 0);
  EXPECT_NE(before->admitted.not_cached, "");
  const Request second = picture("Describe this image. In one word.");
  const std::shared_ptr<Outcome> found = add(server, second);
  run(server);
  EXPECT_EQ(server.status().pictures_encoded, 1U) << "the tower ran once";
  EXPECT_GT(found->admitted.cached_tokens, first.prompt.media[0].end_token() - 1);
  EXPECT_EQ(found->ids.at(0), alone(second).ids.at(0));
}

TEST_F(ServingTest, a_prefix_is_never_another_key_s) {
  ServingCore server = core();
  Request request = picture();
  request.scope = "one";
  add(server, request);
  run(server);
  request.scope = "other";
  const std::shared_ptr<Outcome> found = add(server, request);
  run(server);
  EXPECT_EQ(found->admitted.cached_tokens, 0);
  EXPECT_EQ(server.status().pictures_encoded, 2U);
}

TEST_F(ServingTest, the_whole_prompt_again_computes_its_last_token) {
  ServingCore server = core();
  const Request request = asking("Hello.");
  const std::shared_ptr<Outcome> first = add(server, request);
  run(server);
  const std::shared_ptr<Outcome> again = add(server, request);
  run(server);
  EXPECT_EQ(again->admitted.cached_tokens, request.prompt.tokens() - 1);
  EXPECT_EQ(again->ids.at(0), first->ids.at(0));
}

TEST_F(ServingTest, choices_share_a_prompt) {
  Request request = picture();
  request.sampling.temperature = 1.5;
  request.sampling.seed = 11;
  request.choices = 3;
  ServingCore server = core();
  const std::shared_ptr<Outcome> found = add(server, request);
  run(server);
  EXPECT_EQ(server.status().pictures_encoded, 1U);
  EXPECT_EQ(found->progress.back(), request.prompt.tokens());
  request.choices = 1;
  for (int choice = 0; choice < 3; ++choice) {
    Request one = request;
    one.sampling.seed = 11 + static_cast<uint64_t>(choice);
    EXPECT_EQ(found->ids.at(choice), alone(one).ids.at(0)) << choice;
  }
  EXPECT_NE(found->ids.at(0), found->ids.at(1));
}

TEST_F(ServingTest, one_row_that_is_not_finite_ends_one_request) {
  Request poisoned = picture();
  poisoned.prompt.media[0].patches.values[7] = std::numeric_limits<float>::quiet_NaN();
  const Request good = asking("What is 53 minus 44?");
  const std::vector<int32_t> expected = alone(good).ids.at(0);
  ServingCore server = core();
  const std::shared_ptr<Outcome> before = add(server, good);
  const std::shared_ptr<Outcome> bad = add(server, poisoned);
  const std::shared_ptr<Outcome> behind = add(server, good);
  run(server);
  ASSERT_TRUE(bad->failed);
  EXPECT_EQ(bad->failed->fault, Fault::model);
  EXPECT_EQ(before->ids.at(0), expected);
  EXPECT_EQ(behind->ids.at(0), expected);
}

TEST_F(ServingTest, requests_wait_for_memory_and_all_are_answered) {
  const Request request = asking("What is 53 minus 44?");
  ServingOptions little = options();
  little.memory = 2 * core().bytes_of(request) + 1000;
  little.prefix_memory = little.memory;
  ServingCore server = core(little);
  const std::vector<int32_t> expected = alone(request).ids.at(0);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 7; ++i) {
    outcomes.push_back(add(server, request));
  }
  server.step();
  EXPECT_EQ(server.status().running, 2);
  EXPECT_EQ(server.status().queued, 5);
  run(server);
  for (const std::shared_ptr<Outcome>& outcome : outcomes) {
    EXPECT_EQ(outcome->ids.at(0), expected);
  }
  EXPECT_EQ(server.status().memory_used, server.status().prefix_bytes);
}

TEST_F(ServingTest, log_probabilities_are_the_model_s) {
  Request request = asking("What is 53 minus 44?");
  request.top_logprobs = 3;
  request.sampling.logit_bias = {{5, 100.0F}};  // changes what is drawn, not what is reported
  const Outcome biased = alone(request);
  request.sampling.logit_bias.clear();
  const Outcome found = alone(request);
  for (const AnswerToken& token : found.tokens) {
    ASSERT_EQ(token.top_logprobs.size(), 3U);
    EXPECT_EQ(token.top_logprobs[0].id, token.id);
    EXPECT_EQ(token.top_logprobs[0].logprob, token.logprob->logprob);
    EXPECT_GE(token.top_logprobs[0].logprob, token.top_logprobs[1].logprob);
    EXPECT_LE(token.logprob->logprob, 0);
  }
  EXPECT_EQ(biased.tokens[0].id, 5);
  EXPECT_EQ(biased.tokens[0].top_logprobs[0].id, found.tokens[0].id);
  EXPECT_EQ(biased.tokens[0].top_logprobs[0].logprob, found.tokens[0].logprob->logprob);
}

TEST_F(ServingTest, a_grammar_is_kept) {
  Request request = asking("Describe a cat.", 60);
  const GrammarCompiler compiler(
      loaded_.frontend.tokenizer,
      static_cast<size_t>(loaded_.model().config().vocab_size),
      loaded_.frontend.stop_ids
  );
  request.grammar = compiler.json_schema(Json::parse(R"({"enum": ["black", "white"]})"));
  const Outcome found = alone(request);
  EXPECT_TRUE(found.texts.at(0) == R"("black")" || found.texts.at(0) == R"("white")")
      << found.texts.at(0);
  EXPECT_EQ(found.ends.at(0).reason, AnswerEnd::stop);
}

TEST_F(ServingTest, a_cancelled_request_gives_its_memory_back) {
  ServingCore server = core();
  const std::shared_ptr<Outcome> running = add(server, picture());
  const uint64_t running_id = last_id_;
  const std::shared_ptr<Outcome> queued = add(server, asking("Hello."));
  server.cancel(last_id_);
  EXPECT_EQ(queued->failed->fault, Fault::interrupted);
  server.step();
  server.step();
  server.cancel(running_id);
  EXPECT_EQ(running->failed->fault, Fault::interrupted);
  EXPECT_FALSE(server.busy());
  EXPECT_EQ(server.status().memory_used, server.status().feature_bytes);
  server.cancel(running_id);  // nothing is left of it
  EXPECT_EQ(server.status().cancelled, 2U);
}

TEST_F(ServingTest, who_waits_too_long_is_told_and_the_others_go_on) {
  ServingOptions hasty = options();
  hasty.parallel = 1;
  hasty.queue_seconds = 0.02;
  ServingCore server = core(hasty);
  const std::shared_ptr<Outcome> running = add(server, asking("What is 53 minus 44?"));
  server.step();
  const std::shared_ptr<Outcome> waiting = add(server, asking("Hello."));
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  server.step();
  EXPECT_EQ(waiting->failed->timeout, Timeout::queue);
  EXPECT_EQ(server.status().queued, 0);
  run(server);
  EXPECT_EQ(running->ids.at(0), alone(asking("What is 53 minus 44?")).ids.at(0));
}

TEST_F(ServingTest, a_request_that_takes_too_long_ends_and_gives_its_memory_back) {
  ServingOptions hasty = options();
  hasty.request_seconds = 0.02;
  hasty.prefix_memory = 0;
  ServingCore server = core(hasty);
  const std::shared_ptr<Outcome> running = add(server, asking("Hello.", 1000));
  server.step();
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  server.step();
  EXPECT_EQ(running->failed->timeout, Timeout::request);
  EXPECT_FALSE(server.busy());
  EXPECT_EQ(server.status().memory_used, 0U);
}

}  // namespace
}  // namespace whimbrel::test
