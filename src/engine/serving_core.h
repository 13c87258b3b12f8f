#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/feature_cache.h"
#include "engine/memory_ledger.h"
#include "engine/prefix_cache.h"
#include "engine/sequence.h"
#include "engine/serving_options.h"
#include "generate/forward.h"
#include "models/family.h"

namespace whimbrel {

/// What a request is told of an error. Texts of other libraries are not for clients.
RequestFailed failure_of(const std::exception& exception);

/// Answers many requests on one thread, a step at a time: admits what fits, plans, runs the plan
/// and tells what came of it. What goes wrong in a row's draw ends that row's request and no other;
/// what goes wrong in a forward ends the requests that are in it, in a tower its own, and outside
/// of both all of them: it is not known whose it is.
class ServingCore {
 public:
  ServingCore(
      const Model& model,
      const ModelShape& shape,
      const Tokenizer& tokenizer,
      const ServingOptions& options
  );

  /// Bytes that a request needs at most while it is computed.
  uint64_t bytes_of(const Request& request) const;

  /// Puts a request behind those that wait.
  void add(std::shared_ptr<RunningRequest> request);

  /// Ends a request, wherever it is. Its last event says that it was interrupted.
  void cancel(uint64_t id);

  /// Ends every request so.
  void end_all(const RequestFailed& failure);

  /// Requests that have not begun, and the tokens and bytes of their prompts.
  struct Queue {
    int requests = 0;
    int64_t tokens = 0;
    uint64_t bytes = 0;

    void add(const Prompt& prompt);
  };
  Queue queue() const;

  /// Whether a step would do something.
  bool busy() const { return !sequences_.empty() || !waiting_.empty(); }

  /// Lets in what fits, as a step does first: how long the queue is shows before it ends.
  void admit();

  /// Called within a step that takes long; may add and cancel requests.
  using Breath = std::function<void()>;

  /// One step; its events are sent before it returns. Between the blocks of a tower others go on.
  void step(const Breath& breath = {});

  ServingStatus status() const;

 private:
  /// Of the logits that a step draws from, those of one sequence.
  struct LogitsRows {
    int first = 0;
    int count = 1;  // the answer's last token, and guesses behind it
  };

  void run_step(const Breath& breath);
  StepPlan next_plan(bool in_tower);
  void update_requests();
  void admit_waiting();
  uint64_t bytes_of(const Request& request, int answers, int answer_tokens) const;
  uint64_t cache_bytes(int tokens) const;
  int answered(const RunningRequest& request) const;
  int answer_room(const RunningRequest& request) const;
  uint64_t missing_bytes(const RunningRequest& request, int answers, int room) const;
  bool fits(uint64_t bytes) const;
  void take_memory(RunningRequest& request, int answers, int room);
  void start(const std::shared_ptr<RunningRequest>& request, PrefixCache::Found found);
  void grow_answers();
  void preempt(RunningRequest& request);
  void resume(const RunningRequest& request, PrefixCache::Found found);
  void resume_others(uint64_t id);
  int open_answers() const;
  std::vector<RunningRequest*> running() const;
  StepState step_state(bool in_tower) const;
  Sequence& sequence(uint64_t id);

  void run_tower(RunningRequest& request, size_t medium, const Breath& breath);
  nn::Features encode(RunningRequest& request, size_t medium, const Breath& breath);
  void run_others(const Breath& breath);
  void run_forward(const StepPlan& plan);
  void advance(const StepPlan& plan);
  mx::array forward(const StepPlan& plan);
  void draw_all(const StepPlan& plan, const mx::array& hidden);
  void draw_first(uint64_t id, const RankedLogits& logits);
  void draw(Sequence& sequence, NextLogits& logits, LogitsRows rows);
  void count_guesses(Sequence& sequence, int guessed, int right);
  void guess(Sequence& sequence, std::span<const int32_t> added);
  std::optional<AnswerEnd> take(Sequence& sequence, AnswerToken token);
  void finish(Sequence& sequence, AnswerEnd reason);
  void keep_prefix(Sequence& sequence);

  void interrupt(Sequence& sequence, const RequestFailed& failure);
  void fail(RunningRequest& request, RequestFailed failure);
  void fail_all(const StepPlan& plan, const RequestFailed& failure);
  void end_overdue();
  void remove_finished();

  const Model& model_;
  ModelShape shape_;
  const Tokenizer& tokenizer_;
  ServingOptions options_;
  bool keeps_answers_;  // an answer's rows are those that a prompt of the same tokens would have
  MemoryLedger ledger_;
  PrefixCache prefixes_;
  FeatureCache pictures_;
  std::deque<std::shared_ptr<RunningRequest>> waiting_;
  std::vector<Sequence> sequences_;  // in the order of their ids
  std::vector<Sequence> paused_;     // of requests that wait again, and of those that resume
  std::vector<uint64_t> finished_;   // sequences that ended in this step
  uint64_t next_sequence_ = 1;
  uint64_t last_prefilled_ = 0;
  uint64_t last_encoded_ = 0;
  bool tower_ran_ = false;
  Stopwatch since_forward_;          // since the end of the last one
  double forward_milliseconds_ = 0;  // that it took
  ServingStatus counts_;
};

}  // namespace whimbrel
