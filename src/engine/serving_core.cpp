#include "engine/serving_core.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "engine/draw_token.h"

namespace whimbrel {

namespace {

ServingOptions bounded(ServingOptions options) {
  options.prefill_chunk = std::min(options.prefill_chunk, options.context);
  return options;
}

RequestFailed overdue(Timeout timeout, double seconds) {
  const char* what = timeout == Timeout::queue ? "wait" : "request";
  return {
      .fault = Fault::interrupted,
      .message = fmt::format("[time] got a {} of over {} s, expected less", what, seconds),
      .timeout = timeout
  };
}

bool is_over(double milliseconds, double seconds) {
  return seconds > 0 && milliseconds > seconds * 1000;
}

/// What a not yet encoded picture's features are until then.
nn::Features no_features() {
  return {mx::array(0.0F), {}};
}

uint64_t media_bytes(const Prompt& prompt) {
  uint64_t bytes = 0;
  for (const MediaSpan& span : prompt.media) {
    bytes += span.patches.values.size() * sizeof(float);
  }
  return bytes;
}

void forget_features(RunningRequest& request) {
  const size_t media = request.request.prompt.media.size();
  request.features.assign(media, no_features());
  request.encoded.assign(media, false);
}

}  // namespace

RequestFailed failure_of(const std::exception& exception) {
  const auto* error = dynamic_cast<const Error*>(&exception);
  if (error == nullptr) {
    return {
        .fault = Fault::model,
        .message = "[step] got an unexpected failure; try again",
        .cause = exception.what()
    };
  }
  return {.fault = error->fault(), .message = error->what()};
}

ServingCore::ServingCore(
    const Model& model,
    const ModelShape& shape,
    const Tokenizer& tokenizer,
    const ServingOptions& options
)
    : model_(model),
      shape_(shape),
      tokenizer_(tokenizer),
      options_(bounded(options)),
      keeps_answers_(model.rounding() == model.dtype()),
      ledger_(options.memory),
      prefixes_(ledger_, options.prefix_memory),
      pictures_(ledger_, options.feature_memory) {}

uint64_t ServingCore::bytes_of(const Request& request) const {
  return bytes_of(request, request.choices, request.max_tokens);
}

uint64_t ServingCore::bytes_of(const Request& request, int answers, int answer_tokens) const {
  return media_bytes(request.prompt) +
         static_cast<uint64_t>(answers) * cache_bytes(request.prompt.tokens() + answer_tokens);
}

uint64_t ServingCore::cache_bytes(int tokens) const {
  const ops::KVFormat format =
      ops::kv_format(options_.kv_bits, model_.kv_dtype(), shape_.heads.head_dim);
  return nn::kv_cache_bytes(shape_.layers, shape_.heads, format, tokens);
}

void ServingCore::add(std::shared_ptr<RunningRequest> request) {
  waiting_.push_back(std::move(request));
}

void ServingCore::cancel(uint64_t id) {
  const RequestFailed cancelled{.fault = Fault::interrupted, .message = "[request] cancelled"};
  const auto queued = std::ranges::find(waiting_, id, [](const auto& r) { return r->id; });
  if (queued != waiting_.end()) {
    const std::shared_ptr<RunningRequest> request = std::move(*queued);
    waiting_.erase(queued);
    return fail(*request, cancelled);
  }
  const auto running =
      std::ranges::find(sequences_, id, [](const Sequence& s) { return s.request->id; });
  if (running != sequences_.end()) {
    interrupt(*running, cancelled);
  }
  remove_finished();
}

/// Who comes again finds what was computed. What failed, in contrast, is not to be trusted.
void ServingCore::interrupt(Sequence& sequence, const RequestFailed& failure) {
  const std::shared_ptr<RunningRequest> request = sequence.request;
  keep_prefix(sequence);
  fail(*request, failure);
}

void ServingCore::end_all(const RequestFailed& failure) {
  for (const std::shared_ptr<RunningRequest>& request : std::exchange(waiting_, {})) {
    fail(*request, failure);
  }
  for (const Sequence& s : sequences_) {
    fail(*s.request, failure);
  }
  remove_finished();
}

void ServingCore::Queue::add(const Prompt& prompt) {
  ++requests;
  tokens += prompt.tokens();
  bytes += media_bytes(prompt);
}

ServingCore::Queue ServingCore::queue() const {
  Queue queue;
  for (const std::shared_ptr<RunningRequest>& request : waiting_) {
    if (request->open_answers == 0) {  // not who gave way
      queue.add(request->request.prompt);
    }
  }
  return queue;
}

void ServingCore::step(const Breath& breath) {
  try {
    run_step(breath);
  } catch (const std::exception& error) {
    end_all(failure_of(error));  // it is not known whose failure it is
  }
}

void ServingCore::admit() {
  try {
    update_requests();
  } catch (const std::exception& error) {
    end_all(failure_of(error));
  }
}

void ServingCore::update_requests() {
  end_overdue();
  grow_answers();  // first: who came later must not take what they need
  admit_waiting();
}

StepPlan ServingCore::next_plan(bool in_tower) {
  update_requests();
  return plan_step(step_state(in_tower));
}

void ServingCore::run_step(const Breath& breath) {
  const StepPlan plan = next_plan(false);
  if (plan.tower) {
    const std::shared_ptr<RunningRequest> request = sequence(*plan.tower).request;
    last_encoded_ = *plan.tower;
    run_tower(*request, next_medium(*request, sequence(*plan.tower).cache.tokens()), breath);
    remove_finished();
  } else if (!plan.empty()) {
    run_forward(plan);
  }
  tower_ran_ = plan.tower.has_value();
}

void ServingCore::end_overdue() {
  for (const RunningRequest* request : running()) {
    if (is_over(request->since_submitted.milliseconds(), options_.request_seconds)) {
      interrupt(
          *std::ranges::find(
              sequences_, request, [](const Sequence& s) { return s.request.get(); }
          ),
          overdue(Timeout::request, options_.request_seconds)
      );
    }
  }
  remove_finished();
  const auto timeout_of = [this](const RunningRequest& request) {
    const bool begun = request.open_answers > 0;
    const Timeout timeout = begun ? Timeout::request : Timeout::queue;
    const double seconds = begun ? options_.request_seconds : options_.queue_seconds;
    const bool over = is_over(request.since_submitted.milliseconds(), seconds);
    return over ? std::optional(overdue(timeout, seconds)) : std::nullopt;
  };
  const std::deque<std::shared_ptr<RunningRequest>> waiting = waiting_;
  for (const std::shared_ptr<RunningRequest>& request : waiting) {
    if (const std::optional<RequestFailed> failure = timeout_of(*request)) {
      fail(*request, *failure);
    }
  }
}

// ---- admission

void ServingCore::admit_waiting() {
  while (!waiting_.empty()) {
    RunningRequest& next = *waiting_.front();
    const int running = open_answers();
    const int answers = next.open_answers > 0 ? next.open_answers : next.request.choices;
    if (running > 0 && running + answers > options_.parallel) {
      return;
    }
    const int room = answer_room(next);
    // Who gave way must not do so again at once.
    const int headroom = next.open_answers > 0 ? running : 0;
    const uint64_t piece = cache_bytes(options_.answer_piece);
    if (!fits(missing_bytes(next, answers, room) + static_cast<uint64_t>(headroom) * piece)) {
      return;
    }
    // What is found outlives its entry, which may have to give way to this very request.
    PrefixCache::Found found =
        prefixes_.find(next.request.scope, next.key, next.request.prompt.tokens() - 1);
    take_memory(next, answers, room);
    const std::shared_ptr<RunningRequest> request = std::move(waiting_.front());
    waiting_.pop_front();
    try {
      request->open_answers > 0 ? resume(*request, std::move(found))
                                : start(request, std::move(found));
    } catch (const std::exception& error) {
      fail(*request, failure_of(error));
    }
  }
}

/// Tokens of a request's longest open answer.
int ServingCore::answered(const RunningRequest& request) const {
  int tokens = 0;
  for (const std::vector<Sequence>* sequences : {&sequences_, &paused_}) {
    for (const Sequence& s : *sequences) {
      tokens = s.request.get() == &request ? std::max(tokens, s.answered()) : tokens;
    }
  }
  return tokens;
}

/// Tokens of each answer that a request is to have room for.
int ServingCore::answer_room(const RunningRequest& request) const {
  const int most = request.request.max_tokens;
  const int piece = std::max(options_.answer_piece, 1 + options_.prompt_lookup);
  return options_.answer_piece > 0 ? std::min(most, answered(request) + piece) : most;
}

/// What a request lacks of the memory for so many answers of `room` tokens.
uint64_t ServingCore::missing_bytes(const RunningRequest& request, int answers, int room) const {
  const uint64_t needed = bytes_of(request.request, answers, room);
  uint64_t held = 0;
  for (const MemoryLedger::Share& share : request.shares) {
    held += share.bytes();
  }
  return needed > held ? needed - held : 0;
}

/// Prompts and pictures that are kept give way to requests.
bool ServingCore::fits(uint64_t bytes) const {
  return ledger_.left() + prefixes_.bytes() + pictures_.bytes() >= bytes;
}

/// What fits.
void ServingCore::take_memory(RunningRequest& request, int answers, int room) {
  const uint64_t bytes = missing_bytes(request, answers, room);
  if (!prefixes_.make_room(bytes)) {
    prefixes_.clear();
    pictures_.make_room(bytes);
  }
  request.shares.push_back(*ledger_.take(bytes));
  request.answer_room = room;
}

/// Before a step: room for what it adds to answers. Where memory ends, the requests that came last
/// give theirs up.
void ServingCore::grow_answers() {
  std::vector<RunningRequest*> requests = running();
  for (size_t i = 0; i < requests.size();) {
    RunningRequest& request = *requests[i];
    const int needed = answered(request) + 1 + options_.prompt_lookup;
    if (std::min(needed, request.request.max_tokens) <= request.answer_room) {
      ++i;
      continue;
    }
    const int room = answer_room(request);
    if (fits(missing_bytes(request, request.open_answers, room))) {
      take_memory(request, request.open_answers, room);
      ++i;
    } else {
      preempt(*requests.back());
      requests.pop_back();
    }
  }
}

/// The request waits again, in front of the others, with all that it has drawn.
void ServingCore::preempt(RunningRequest& request) {
  const auto others = std::ranges::stable_partition(sequences_, [&request](const Sequence& s) {
    return s.request.get() != &request;
  });
  waiting_.push_front(others.front().request);
  for (Sequence& s : others) {
    s.cache = model_.make_cache(options_.kv_bits);
    s.draft.clear();
    paused_.push_back(std::move(s));
  }
  sequences_.erase(others.begin(), others.end());
  forget_features(request);
  request.shares.clear();
  ++counts_.preempted;
}

/// One answer reads the prompt again, and then itself. The others follow it (resume_others).
void ServingCore::resume(const RunningRequest& request, PrefixCache::Found found) {
  const auto paused =
      std::ranges::find(paused_, &request, [](const Sequence& s) { return s.request.get(); });
  if (found.cache) {
    paused->cache = std::move(*found.cache);
  }
  paused->id = next_sequence_++;
  sequences_.push_back(std::move(*paused));
  paused_.erase(paused);
}

/// The prompt of one answer is read again: those beside it go on from there.
void ServingCore::resume_others(uint64_t id) {
  const RunningRequest* request = sequence(id).request.get();
  const nn::KVCache cache = sequence(id).cache;
  const auto others = std::ranges::stable_partition(paused_, [request](const Sequence& s) {
    return s.request.get() != request;
  });
  for (Sequence& s : others) {
    s.cache = cache;
    s.id = next_sequence_++;
    sequences_.push_back(std::move(s));
  }
  paused_.erase(others.begin(), others.end());
}

/// Answers of all requests that run, those included that wait for their prompt.
int ServingCore::open_answers() const {
  int answers = 0;
  for (const RunningRequest* request : running()) {
    answers += request->open_answers;
  }
  return answers;
}

/// In the order in which they came.
std::vector<RunningRequest*> ServingCore::running() const {
  std::vector<RunningRequest*> requests;
  for (const Sequence& s : sequences_) {
    if (std::ranges::count(requests, s.request.get()) == 0) {
      requests.push_back(s.request.get());
    }
  }
  std::ranges::sort(requests, {}, &RunningRequest::id);
  return requests;
}

void ServingCore::start(const std::shared_ptr<RunningRequest>& request, PrefixCache::Found found) {
  const Request& asked = request->request;
  const int tokens = asked.prompt.tokens();
  request->timings.queue = request->since_submitted.milliseconds();
  request->since_admitted = Stopwatch();
  request->open_answers = asked.choices;
  forget_features(*request);
  nn::KVCache cache = found.cache ? std::move(*found.cache) : model_.make_cache(options_.kv_bits);
  const int cached = cache.tokens();
  for (const MediaSpan& span : asked.prompt.media) {
    const bool is_cached = span.end_token() <= cached;
    request->reuse.push_back(is_cached ? MediumReuse::prefix : MediumReuse::none);
  }
  counts_.prompt_tokens += static_cast<uint64_t>(tokens);
  counts_.cached_tokens += static_cast<uint64_t>(cached);
  sequences_.push_back({
      .id = next_sequence_++,
      .request = request,
      .cache = std::move(cache),
      .sampler = Sampler(sampling_of(asked, 0), asked.prompt.ids, tokenizer_.size()),
      .text = AnswerText(tokenizer_, asked.stops),
  });
  request->sink(Admitted{tokens, cached, found.not_cached});
}

StepState ServingCore::step_state(bool in_tower) const {
  StepState state{
      .most_rows = options_.prefill_chunk,
      .tower_ran = tower_ran_,
      .in_tower = in_tower,
      .last_prefilled = last_prefilled_,
      .last_encoded = last_encoded_,
  };
  for (const Sequence& sequence : sequences_) {
    state.sequences.push_back(state_of(sequence));
  }
  return state;
}

Sequence& ServingCore::sequence(uint64_t id) {
  return *std::ranges::find(sequences_, id, &Sequence::id);
}

// ---- failures

void ServingCore::fail(RunningRequest& request, RequestFailed failure) {
  if (request.ended) {
    return;
  }
  request.ended = true;
  for (const Sequence& s : sequences_) {
    if (s.request.get() == &request) {
      finished_.push_back(s.id);
    }
  }
  std::erase_if(waiting_, [&request](const auto& waiting) { return waiting.get() == &request; });
  std::erase_if(paused_, [&request](const Sequence& s) { return s.request.get() == &request; });
  ++(failure.fault == Fault::interrupted ? counts_.cancelled : counts_.failed);
  request.sink(std::move(failure));
}

void ServingCore::fail_all(const StepPlan& plan, const RequestFailed& failure) {
  std::vector<std::shared_ptr<RunningRequest>> failed;
  const auto add = [&](uint64_t id) {
    const std::shared_ptr<RunningRequest>& request = sequence(id).request;
    if (std::ranges::count(failed, request) == 0) {
      failed.push_back(request);
    }
  };
  for (const std::vector<StepRows>& part : {plan.prefill, plan.decode}) {
    std::ranges::for_each(part, add, &StepRows::id);
  }
  for (const std::shared_ptr<RunningRequest>& request : failed) {
    fail(*request, failure);
  }
}

void ServingCore::remove_finished() {
  std::erase_if(sequences_, [this](const Sequence& s) {
    return std::ranges::count(finished_, s.id) != 0;
  });
  finished_.clear();
}

ServingStatus ServingCore::status() const {
  ServingStatus status = counts_;
  status.running = static_cast<int>(running().size());
  status.queued = queue().requests;
  status.paused = static_cast<int>(waiting_.size()) - status.queued;
  status.memory_budget = ledger_.budget();
  status.memory_used = ledger_.used();
  status.prefix_bytes = prefixes_.bytes();
  status.feature_bytes = pictures_.bytes();
  return status;
}

}  // namespace whimbrel
