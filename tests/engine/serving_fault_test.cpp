// What goes wrong in one request or one step: whose end it is, and what the others see of it.

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "engine/serving_core.h"
#include "ops/device.h"
#include "tests/support/faulty_ops.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"
#include "tests/support/serving.h"

namespace whimbrel::test {
namespace {

constexpr const char* kModel = "tiny-qwen2-5-vl-4bit";

/// Text, pictures and draws of every kind.
std::vector<Request> good_requests(const ServedModel& served, int count) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    const std::string text = "What is " + std::to_string(40 + i) + " minus 7?";
    Request request = i % 4 == 1 ? served.picture(text) : served.asking(text);
    if (i % 3 == 0) {
      request.sampling.temperature = 0.9;
      request.sampling.seed = static_cast<uint64_t>(i);
    }
    request.top_logprobs = 1;
    requests.push_back(request);
  }
  return requests;
}

/// F52, F20: 31 requests do not see, in any bit, that the one among them is poisoned.
TEST(ServingFaults, one_poisoned_request_changes_nothing_for_31_others) {
  ServedModel served(bundled_model(kModel));
  ServingOptions options = served.options();
  options.parallel = 32;
  const std::vector<Request> good = good_requests(served, 31);
  Request poisoned = served.picture("What is 7 minus 4?");
  poisoned.prompt.media[0].patches.values[7] = std::numeric_limits<float>::quiet_NaN();

  const auto run_all = [&](bool with_poison) {
    ServingCore core = served.core(options);
    std::vector<std::shared_ptr<Outcome>> outcomes;
    std::shared_ptr<Outcome> bad;
    for (size_t i = 0; i < good.size(); ++i) {
      if (with_poison && i == 13) {
        bad = served.add(core, poisoned);
      }
      outcomes.push_back(served.add(core, good[i]));
    }
    run(core);
    EXPECT_EQ(core.status().failed, with_poison ? 1U : 0U);
    EXPECT_TRUE(!bad || bad->failed);
    return outcomes;
  };
  const std::vector<std::shared_ptr<Outcome>> clean = run_all(false);
  const std::vector<std::shared_ptr<Outcome>> beside = run_all(true);
  for (size_t i = 0; i < good.size(); ++i) {
    ASSERT_EQ(beside[i]->ids, clean[i]->ids) << i;
    for (size_t t = 0; t < clean[i]->tokens.size(); ++t) {
      EXPECT_EQ(beside[i]->tokens[t].logprob->logprob, clean[i]->tokens[t].logprob->logprob);
    }
  }
}

/// F6: memory that ends in the k-th operation ends the requests that were in that step. Nothing
/// is lost or kept of them, and the next ones are answered.
TEST(ServingFaults, an_operation_that_fails_ends_the_requests_of_its_step) {
  auto ops = std::make_unique<const FaultyOps>(ops::make_ops("", ops::mx::float32));
  const FaultyOps& faulty = *ops;
  ServedModel served(bundled_model(kModel), std::move(ops));
  const Request text = served.asking("What is 53 minus 44?");
  const Request picture = served.picture();
  const std::vector<int32_t> expected = served.alone(text).ids.at(0);
  int failures = 0;
  bool passed = false;
  for (int k = 0; !passed; k += 5) {
    SCOPED_TRACE("operation " + std::to_string(k));
    ServingCore core = served.core();
    faulty.fail_behind(k);
    const std::vector<std::shared_ptr<Outcome>> outcomes = {
        served.add(core, text), served.add(core, picture), served.add(core, text)
    };
    run(core);
    passed = faulty.is_armed();
    faulty.fail_behind(-1);
    for (const std::shared_ptr<Outcome>& outcome : outcomes) {
      ASSERT_EQ(outcome->last_events, 1);
      failures += outcome->failed ? 1 : 0;
      EXPECT_EQ(
          outcome->failed.has_value(), outcome->failed && outcome->failed->fault == Fault::model
      );
    }
    const ServingStatus status = core.status();
    EXPECT_EQ(status.memory_used, status.prefix_bytes + status.feature_bytes);
    EXPECT_EQ(status.finished + status.failed, 3U);
    const std::shared_ptr<Outcome> next = served.add(core, text);
    run(core);
    ASSERT_FALSE(next->failed);
    EXPECT_EQ(next->ids.at(0), expected);
  }
  EXPECT_GT(failures, 20);
}

/// A request may give way between the blocks of its own tower, which fails behind that: nothing of
/// it is left.
TEST(ServingFaults, a_tower_that_fails_for_a_request_that_gave_way) {
  auto ops = std::make_unique<const FaultyOps>(ops::make_ops("", ops::mx::float32));
  const FaultyOps& faulty = *ops;
  ServedModel served(bundled_model(kModel), std::move(ops));
  Request endless = served.asking("What is 53 minus 44?", 400);
  endless.stop_ids.clear();
  const Request picture = served.picture();
  ServingOptions options = served.options();
  options.answer_piece = 16;
  options.memory = served.core().bytes_of(picture) + served.core().bytes_of(endless) / 2;
  int gave_way = 0;
  // Somewhere here the first answer crosses into a piece that there is no memory for.
  for (size_t answered = 200; answered < 230; ++answered) {
    ServingCore core = served.core(options);
    const std::shared_ptr<Outcome> first = served.add(core, endless);
    while (first->tokens.size() < answered) {
      core.step();
    }
    const std::shared_ptr<Outcome> second = served.add(core, picture);
    bool failing = false;
    while (core.busy()) {
      core.step([&] {
        if (core.status().preempted > 0 && !std::exchange(failing, true)) {
          faulty.fail_behind(static_cast<int>(answered % 5));
        }
      });
    }
    faulty.fail_behind(-1);
    gave_way += failing && second->failed ? 1 : 0;
    EXPECT_EQ(first->last_events, 1);
    EXPECT_EQ(second->last_events, 1);
    const ServingStatus status = core.status();
    EXPECT_EQ(status.running + status.queued + status.paused, 0);
    EXPECT_EQ(status.memory_used, status.prefix_bytes + status.feature_bytes);
  }
  EXPECT_GT(gave_way, 0) << "and its tower failed";
}

/// What goes wrong between two blocks is not the fault of the tower's request alone: it is not
/// known whose it is.
TEST(ServingFaults, a_failure_between_blocks_ends_all_requests) {
  ServedModel served(bundled_model(kModel));
  ServingCore core = served.core();
  const std::shared_ptr<Outcome> looking = served.add(core, served.picture());
  const std::shared_ptr<Outcome> other = served.add(core, served.asking("Hello."));
  while (core.busy()) {
    core.step([] { throw std::bad_alloc(); });
  }
  ASSERT_TRUE(looking->failed);
  EXPECT_EQ(looking->failed->fault, Fault::model);
  EXPECT_EQ(other->last_events, 1);
}

}  // namespace
}  // namespace whimbrel::test
