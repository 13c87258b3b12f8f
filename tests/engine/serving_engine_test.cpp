// The engine's thread: requests from many threads, a full queue, leaving, the end.

#include "engine/serving_engine.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/error.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

class ServingEngineTest : public testing::Test {
 protected:
  ServingEngineTest() : loaded_(bundled_model("tiny-qwen2-5-vl-4bit")) {}

  static ServingOptions options() {
    return {
        .context = 2048, .memory = 256 << 20, .prefix_memory = 64 << 20, .feature_memory = 16 << 20
    };
  }

  std::unique_ptr<ServingEngine> engine(const ServingOptions& options) const {
    return std::make_unique<ServingEngine>(
        loaded_.model(), loaded_.frontend.shape, loaded_.frontend.tokenizer, options
    );
  }

  Request request(const std::string& text, int max_tokens = 16) const {
    Request request{.prompt = loaded_.prompt({}, text)};
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.stop_ids = loaded_.frontend.stop_ids;
    return request;
  }

  /// What never ends by itself.
  Request endless() const {
    Request request = this->request("Count from 1 on.", 1900);
    request.stop_ids.clear();
    return request;
  }

  /// What began is told before the queue is known to be shorter.
  static void wait_for_empty_queue(const ServingEngine& engine) {
    while (engine.status().queued > 0) {
      std::this_thread::yield();
    }
  }

  /// The text, or the failure's fault; known once the last event came.
  struct Promise {
    std::promise<std::string> text;
    std::promise<void> begun;
    std::string so_far;
    bool has_begun = false;

    void take(const Event& event) {
      if (const auto* token = std::get_if<AnswerToken>(&event)) {
        so_far += token->text;
        if (!has_begun) {
          has_begun = true;
          begun.set_value();
        }
      } else if (const auto* end = std::get_if<AnswerFinished>(&event)) {
        so_far += end->text;
      } else if (std::holds_alternative<RequestFinished>(event)) {
        text.set_value(so_far);
      } else if (const auto* failed = std::get_if<RequestFailed>(&event)) {
        text.set_value("failed " + std::to_string(static_cast<int>(failed->fault)));
      }
    }
  };

  struct Submitted {
    std::optional<uint64_t> id;
    std::shared_ptr<Promise> promise = std::make_shared<Promise>();
    std::string text() { return promise->text.get_future().get(); }
  };

  static Submitted submit(ServingEngine& engine, Request request) {
    Submitted submitted;
    submitted.id =
        engine.submit(std::move(request), [promise = submitted.promise](const Event& event) {
          promise->take(event);
        });
    return submitted;
  }

  LoadedModel loaded_;
};

const std::string kInterrupted = "failed 130";

TEST_F(ServingEngineTest, threads_get_their_own_answers) {
  const std::unique_ptr<ServingEngine> engine = this->engine(options());
  const std::vector<std::string> texts = {"What is 53 minus 44?", "Hello.", "Name a colour."};
  std::vector<std::string> expected;
  for (const std::string& text : texts) {
    expected.push_back(submit(*engine, request(text)).text());
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      const size_t kind = i % texts.size();
      EXPECT_EQ(submit(*engine, request(texts[kind])).text(), expected[kind]);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(ServingEngineTest, a_full_queue_takes_no_more) {
  ServingOptions small = options();
  small.queue = 2;
  small.parallel = 1;
  const std::unique_ptr<ServingEngine> engine = this->engine(small);
  Submitted running = submit(*engine, endless());
  running.promise->begun.get_future().wait();
  wait_for_empty_queue(*engine);
  Submitted first = submit(*engine, request("Hello."));
  Submitted second = submit(*engine, request("Hello."));
  EXPECT_TRUE(first.id && second.id);
  EXPECT_FALSE(submit(*engine, request("Hello.")).id);
  EXPECT_EQ(engine->status().queued, 2);
  engine->cancel(*running.id);
  EXPECT_EQ(running.text(), kInterrupted);
  EXPECT_EQ(first.text(), second.text());
  EXPECT_TRUE(submit(*engine, request("Hello.")).id);
}

TEST_F(ServingEngineTest, pictures_that_wait_are_bounded) {
  ServingOptions small = options();
  small.parallel = 1;
  small.queue_memory = 1000;
  const std::unique_ptr<ServingEngine> engine = this->engine(small);
  const Submitted running = submit(*engine, endless());
  running.promise->begun.get_future().wait();
  wait_for_empty_queue(*engine);
  Request looking = request("Hello.");
  looking.prompt = loaded_.prompt({"examples/shapes.png"}, "What is this?");
  EXPECT_TRUE(submit(*engine, looking).id) << "one may wait, however large it is";
  EXPECT_FALSE(submit(*engine, looking).id);
  EXPECT_TRUE(submit(*engine, request("Hello.")).id) << "a text adds nothing to them";
}

TEST_F(ServingEngineTest, what_never_fits_is_refused) {
  ServingOptions small = options();
  small.memory = 1 << 20;
  const std::unique_ptr<ServingEngine> engine = this->engine(small);
  const auto fault_of = [&](Request request) {
    try {
      submit(*engine, std::move(request));
    } catch (const Error& error) {
      return error.fault();
    }
    return Fault::check;
  };
  EXPECT_EQ(fault_of(request("Hello.", 2048)), Fault::input) << "longer than the context";
  EXPECT_EQ(fault_of(request("Hello.", 0)), Fault::input);
  EXPECT_EQ(fault_of(request("Hello.", 1900)), Fault::input) << "more than its memory";
  const auto fault_with = [&](const auto& change) {
    Request wrong = request("Hello.");
    change(wrong);
    return fault_of(std::move(wrong));
  };
  EXPECT_EQ(fault_with([](Request& r) { r.sampling.top_p = 2; }), Fault::usage);
  EXPECT_EQ(fault_with([](Request& r) { r.stops = {""}; }), Fault::usage);
  EXPECT_EQ(fault_with([](Request& r) { r.choices = 0; }), Fault::usage);
  EXPECT_EQ(fault_with([](Request& r) { r.top_logprobs = -1; }), Fault::usage);
  EXPECT_EQ(fault_with([](Request& r) { r.sampling.logit_bias = {{-1, 1.0F}}; }), Fault::usage);
  EXPECT_EQ(fault_with([](Request& r) { r.max_tokens = 2147483647; }), Fault::input);
}

TEST_F(ServingEngineTest, its_end_is_the_end_of_all_requests) {
  Submitted running;
  Submitted waiting;
  {
    ServingOptions one = options();
    one.parallel = 1;
    const std::unique_ptr<ServingEngine> engine = this->engine(one);
    running = submit(*engine, endless());
    waiting = submit(*engine, request("Hello."));
  }
  EXPECT_EQ(running.text(), kInterrupted);
  EXPECT_EQ(waiting.text(), kInterrupted);
}

TEST_F(ServingEngineTest, who_is_gone_can_be_cancelled) {
  const std::unique_ptr<ServingEngine> engine = this->engine(options());
  Submitted done = submit(*engine, request("Hello."));
  done.text();
  engine->cancel(*done.id);
  engine->cancel(12345);
  EXPECT_NE(submit(*engine, request("Hello.")).text(), kInterrupted);
}

}  // namespace
}  // namespace whimbrel::test
