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
#include "tests/support/serving.h"

namespace whimbrel::test {
namespace {

class ServingTest : public testing::Test, protected ServedModel {
 protected:
  explicit ServingTest(const char* model = "tiny-qwen2-5-vl-4bit")
      : ServedModel(bundled_model(model)) {}

  /// Nothing ends its answer, so that it comes to say the same again and again.
  Request repeating(int max_tokens) const {
    Request request = asking("What is seven plus eight? Count from 3 to 40.", max_tokens);
    request.stop_ids.clear();
    return request;
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

  /// Memory for two requests with a first piece of their answers.
  uint64_t two_pieces(Request request) const {
    request.max_tokens = 256;
    return 2 * core().bytes_of(request) + 1000;
  }
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
class RandomMixes : public ServingTest {
 protected:
  RandomMixes() {
    for (const Request& kind : mixed_requests()) {
      add_kind(kind);
    }
    add_kind(repeating(250));
    add_kind(two_answers(40));
    add_kind(guarded());
    Request fussy = repeating(60);
    fussy.sampling.repetition_penalty = 1.1;
    fussy.sampling.frequency_penalty = 0.3;
    fussy.stops = {"never", "seven seven seven seven"};
    add_kind(fussy);
  }

  /// What a grammar holds.
  Request guarded() const {
    const GrammarCompiler compiler(
        loaded_.frontend.tokenizer,
        static_cast<size_t>(loaded_.model().config().vocab_size),
        loaded_.frontend.stop_ids
    );
    Request request = asking("Describe a cat.", 60);
    const char* schema =
        R"({"type": "array", "items": {"enum": ["black", "white"]}, "minItems": 4})";
    request.grammar = compiler.json_schema(Json::parse(schema));
    return request;
  }

  void add_kind(const Request& kind) {
    kinds_.push_back(kind);
    expected_.push_back(alone(kind, kv_bits_).ids);
  }

  Request two_answers(int max_tokens) const {
    Request request = repeating(max_tokens);
    request.sampling.temperature = 0.8;
    request.sampling.seed = 7;
    request.choices = 2;
    return request;
  }

  struct Arrival {
    size_t kind;
    uint64_t id;
    std::shared_ptr<Outcome> outcome;
    bool cancelled = false;
  };

  Arrival arrive(ServingCore& core, std::mt19937& random) {
    const size_t kind = random() % kinds_.size();
    Request request = kinds_[kind];
    request.scope = random() % 2 == 0 ? "one" : "other";
    std::shared_ptr<Outcome> outcome = add(core, std::move(request));
    return {kind, last_id_, outcome};
  }

  void run_mix(ServingCore& core, std::mt19937& random) {
    std::vector<Arrival> arrivals;
    const size_t count = 2 + random() % 5;
    while (core.busy() || arrivals.size() < count) {
      if (arrivals.size() < count && (!core.busy() || random() % 4 == 0)) {
        arrivals.push_back(arrive(core, random));
      }
      core.step();
      if (random() % 40 == 0) {
        Arrival& leaving = arrivals[random() % arrivals.size()];
        leaving.cancelled = leaving.cancelled || leaving.outcome->last_events == 0;
        core.cancel(leaving.id);
      }
    }
    for (const Arrival& each : arrivals) {
      EXPECT_EQ(each.outcome->last_events, 1);
      EXPECT_EQ(each.outcome->failed.has_value(), each.cancelled);
      if (!each.cancelled) {
        EXPECT_EQ(each.outcome->ids, expected_[each.kind]) << "kind " << each.kind;
      }
    }
  }

  /// What one mix leaves, the next one finds.
  ServingStatus run_mixes(const ServingOptions& options) {
    std::mt19937 random(1);
    ServingCore shared = core(options);
    for (int mix = 0; mix < 200; ++mix) {
      SCOPED_TRACE("mix " + std::to_string(mix));
      run_mix(shared, random);
    }
    ServingStatus status = shared.status();
    EXPECT_EQ(status.running + status.queued, 0);
    EXPECT_EQ(status.memory_used, status.prefix_bytes + status.feature_bytes);
    EXPECT_GT(status.cached_tokens, 0U);
    EXPECT_GT(status.cancelled, 0U);
    return status;
  }

  int kv_bits_ = 0;
  std::vector<Request> kinds_;
  std::vector<std::map<int, std::vector<int32_t>>> expected_;  // of each kind, by choice
};

TEST_F(RandomMixes, answer_as_each_alone) {
  const ServingStatus status = run_mixes(options());
  EXPECT_GT(status.pictures_cached, 0U);
  EXPECT_EQ(status.guessed_tokens + status.preempted, 0U);
}

TEST_F(RandomMixes, with_guesses_answer_as_each_alone) {
  ServingOptions guessing = options();
  guessing.prompt_lookup = 5;
  const ServingStatus status = run_mixes(guessing);
  EXPECT_GT(status.guessed_right, 100U);
  EXPECT_GT(status.guessed_tokens, status.guessed_right);
}

TEST_F(RandomMixes, with_caches_of_8_bits_answer_as_each_alone) {
  kv_bits_ = 8;
  const std::vector<Request> kinds = std::exchange(kinds_, {});
  expected_.clear();
  std::ranges::for_each(kinds, [this](const Request& kind) { add_kind(kind); });
  ServingOptions packed = options();
  packed.kv_bits = kv_bits_;
  packed.prompt_lookup = 4;
  EXPECT_GT(run_mixes(packed).guessed_right, 100U);
}

TEST_F(RandomMixes, that_give_way_answer_as_each_alone) {
  ServingOptions little = options();
  little.prompt_lookup = 3;
  little.answer_piece = 16;
  little.memory = 0;
  kinds_.resize(4);  // texts and one picture: what fits into little
  expected_.resize(4);
  add_kind(repeating(250));
  for (const int tokens : {250, 270, 290}) {
    add_kind(two_answers(tokens));
  }
  add_kind(guarded());
  for (const Request& kind : kinds_) {
    little.memory = std::max(little.memory, core().bytes_of(kind));
  }
  little.prefix_memory = little.memory / 4;
  little.feature_memory = little.memory / 4;
  EXPECT_GT(run_mixes(little).preempted, 10U);
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

/// Old requests go on, the last one waits again, and it has the text that it would have alone.
TEST_F(ServingTest, where_memory_ends_the_last_request_gives_way) {
  Request request = repeating(600);
  request.sampling.temperature = 1;
  request.sampling.seed = 3;
  ServingOptions little = options();
  little.answer_piece = 256;
  little.memory = two_pieces(request);
  ServingCore server = core(little);
  const std::vector<int32_t> expected = alone(request).ids.at(0);
  ASSERT_EQ(expected.size(), 600U);
  const std::shared_ptr<Outcome> first = add(server, request);
  const std::shared_ptr<Outcome> second = add(server, request);
  server.step();
  EXPECT_EQ(server.status().running, 2) << "the whole answers of both wouldn't fit";
  while (server.status().preempted == 0) {
    server.step();
    ASSERT_TRUE(server.busy());
  }
  EXPECT_EQ(server.status().running, 1);
  EXPECT_EQ(server.status().paused, 1);
  EXPECT_EQ(server.status().queued, 0);
  EXPECT_EQ(server.queue().requests, 0) << "its place in the queue is another's";
  EXPECT_EQ(first->last_events, 0) << "it goes on";
  run(server);
  EXPECT_EQ(first->ids.at(0), expected);
  EXPECT_EQ(second->ids.at(0), expected);
  EXPECT_EQ(second->progress.back(), request.prompt.tokens());
  EXPECT_EQ(std::ranges::count(second->progress, request.prompt.tokens()), 1) << "told once";
  EXPECT_EQ(server.status().finished, 2U);
}

TEST_F(ServingTest, who_gave_way_is_in_no_queue_and_can_be_cancelled) {
  const Request request = repeating(600);
  ServingOptions little = options();
  little.answer_piece = 256;
  little.queue_seconds = 0.3;
  little.memory = two_pieces(request);
  ServingCore server = core(little);
  const std::shared_ptr<Outcome> first = add(server, request);
  const std::shared_ptr<Outcome> second = add(server, request);
  while (server.status().preempted == 0) {
    server.step();
    ASSERT_TRUE(server.busy());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  server.step();
  EXPECT_EQ(second->last_events, 0) << "it left the queue in time";
  server.cancel(last_id_);
  EXPECT_EQ(second->failed->fault, Fault::interrupted);
  run(server);
  EXPECT_EQ(first->ids.at(0).size(), 600U);
  EXPECT_EQ(server.status().memory_used, server.status().prefix_bytes);
}

/// Who was interrupted and asks again does not wait for the same rows twice.
TEST_F(ServingTest, what_an_interrupted_request_read_is_kept) {
  ServingCore server = core();
  const Request request = picture();
  add(server, request);
  server.step();
  server.step();
  server.step();
  server.cancel(last_id_);
  const std::shared_ptr<Outcome> again = add(server, request);
  run(server);
  EXPECT_GT(again->admitted.cached_tokens, 0);
  EXPECT_EQ(again->ids.at(0), alone(request).ids.at(0));
}

class EveryFamily : public ServingTest, public testing::WithParamInterface<const char*> {
 protected:
  EveryFamily() : ServingTest(GetParam()) {}
};

/// Guesses change how many steps there are, and not a bit of a logit.
TEST_P(EveryFamily, right_guesses_save_steps) {
  std::string much;
  for (int i = 0; i < 300; ++i) {
    much += " and " + std::to_string(i % 7);
  }
  Request request = greedy(loaded_.prompt({"examples/shapes.png"}, "Count" + much), 200);
  request.stop_ids.clear();
  request.top_logprobs = 2;
  ServingCore plain = core();
  const std::shared_ptr<Outcome> expected = add(plain, request);
  run(plain);
  ServingOptions guessing = options();
  guessing.prompt_lookup = 8;
  ServingCore server = core(guessing);
  const std::shared_ptr<Outcome> found = add(server, request);
  run(server);
  EXPECT_EQ(found->ids, expected->ids);
  for (size_t i = 0; i < found->tokens.size(); ++i) {
    const AnswerToken& token = found->tokens[i];
    EXPECT_EQ(token.logprob->logprob, expected->tokens[i].logprob->logprob) << i;
    EXPECT_EQ(token.top_logprobs[1].logprob, expected->tokens[i].top_logprobs[1].logprob) << i;
  }
  const ServingStatus status = server.status();
  EXPECT_GT(status.guessed_right, 20U);
  EXPECT_EQ(status.steps + status.guessed_right, plain.status().steps);
  EXPECT_EQ(found->ends.at(0).guessed_right, static_cast<int>(status.guessed_right));
  EXPECT_EQ(found->ends.at(0).guessed, static_cast<int>(status.guessed_tokens));
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    EveryFamily,
    testing::Values(
        "tiny-qwen2-vl-4bit",
        "tiny-qwen2-5-vl",
        "tiny-qwen2-5-vl-4bit",
        "tiny-qwen3-vl-4bit",
        "tiny-qwen3-vl-moe-4bit"
    )
);

/// The one that came first goes on, though its last answer began last.
TEST_F(ServingTest, who_came_last_gives_way_whoever_began_an_answer_last) {
  Request two = repeating(600);
  two.choices = 2;
  ServingOptions little = options();
  little.answer_piece = 256;
  little.memory = (two_pieces(two) + two_pieces(repeating(600))) / 2;
  ServingCore server = core(little);
  const std::shared_ptr<Outcome> first = add(server, two);
  server.step();
  const std::shared_ptr<Outcome> second = add(server, repeating(600));
  while (server.status().preempted == 0) {
    server.step();
    ASSERT_TRUE(server.busy());
  }
  EXPECT_EQ(first->ids.at(1).size(), first->ids.at(0).size());
  const size_t before = second->tokens.size();
  for (int i = 0; i < 20; ++i) {
    server.step();
  }
  EXPECT_EQ(second->tokens.size(), before);
  EXPECT_EQ(server.status().preempted, 1U);
  run(server);
  EXPECT_EQ(second->ids.at(0), first->ids.at(0));
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
  EXPECT_EQ(
      server.status().memory_used, server.status().feature_bytes + server.status().prefix_bytes
  );
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
