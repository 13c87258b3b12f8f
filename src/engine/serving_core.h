#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/feature_cache.h"
#include "engine/memory_ledger.h"
#include "engine/prefix_cache.h"
#include "engine/sequence.h"
#include "engine/serving_options.h"
#include "models/family.h"

namespace whimbrel {

/// Answers many requests on one thread, a step at a time: admits what fits, plans, runs the plan
/// and tells what came of it. What goes wrong in a row's draw ends that row's request and no other;
/// what goes wrong in a forward ends the requests that are in it.
class ServingCore {
 public:
  ServingCore(
      const Model& model,
      const ModelShape& shape,
      const Tokenizer& tokenizer,
      const ServingOptions& options
  );

  /// Bytes that a request needs while it is computed.
  uint64_t bytes_of(const Request& request) const;

  /// Puts a request behind those that wait.
  void add(std::shared_ptr<RunningRequest> request);

  /// Ends a request, wherever it is. Its last event says that it was interrupted.
  void cancel(uint64_t id);

  /// Ends every request so.
  void end_all(const RequestFailed& failure);

  /// Requests that wait, and the tokens of their prompts.
  struct Queue {
    int requests = 0;
    int64_t tokens = 0;
  };
  Queue queue() const;

  /// Whether a step would do something.
  bool busy() const { return !sequences_.empty() || !waiting_.empty(); }

  /// One step; its events are sent before it returns.
  void step();

  ServingStatus status() const;

 private:
  void run_step();
  void admit();
  MemoryLedger::Share take_memory(uint64_t bytes);
  void start(const std::shared_ptr<RunningRequest>& request, PrefixCache::Found found);
  int open_answers() const;
  std::vector<const RunningRequest*> running() const;
  StepState step_state() const;
  Sequence& sequence(uint64_t id);

  void run_tower(Sequence& sequence);
  void run_forward(const StepPlan& plan);
  mx::array forward(const StepPlan& plan);
  void draw_all(const StepPlan& plan, const mx::array& hidden);
  void draw_first(uint64_t id, RankedLogits logits);
  void draw(Sequence& sequence, RankedLogits logits);
  int32_t draw_id(Sequence& sequence, RankedLogits logits);
  void take(Sequence& sequence, AnswerToken token);
  void finish(Sequence& sequence, AnswerEnd reason);
  void keep_prefix(Sequence& sequence);
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
  std::vector<Sequence> sequences_;  // in the order in which they were admitted
  std::vector<uint64_t> finished_;   // sequences that ended in this step
  uint64_t next_sequence_ = 1;
  uint64_t last_prefilled_ = 0;
  uint64_t last_encoded_ = 0;
  bool tower_ran_ = false;
  ServingStatus counts_;
};

}  // namespace whimbrel
