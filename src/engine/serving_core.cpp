#include "engine/serving_core.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "generate/forward.h"
#include "generate/logprobs.h"

namespace whimbrel {

namespace {

/// Each choice has random numbers of its own, the first one those of a request for one answer.
SamplingOptions sampling_of(const Request& request, int choice) {
  SamplingOptions options = request.sampling;
  if (options.seed) {
    *options.seed += static_cast<uint64_t>(choice);
  }
  return options;
}

ServingOptions bounded(ServingOptions options) {
  options.prefill_chunk = std::min(options.prefill_chunk, options.context);
  return options;
}

/// A bit for each id (Sampler::draw).
std::vector<uint32_t> all_but(std::span<const int32_t> forbidden, int32_t vocabulary) {
  std::vector<uint32_t> mask(static_cast<size_t>(vocabulary / 32 + 1), ~uint32_t{0});
  for (const int32_t id : forbidden) {
    if (id >= 0 && id < vocabulary) {
      mask[static_cast<size_t>(id / 32)] &= ~(uint32_t{1} << (id % 32));
    }
  }
  return mask;
}

/// Texts of other libraries are not for clients.
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

bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

/// What a not yet encoded picture's features are until then.
nn::Features no_features() {
  return {mx::array(0.0F), {}};
}

mx::array rows_at(const mx::array& hidden, const std::vector<int32_t>& rows) {
  const mx::array indices(rows.begin(), {static_cast<int>(rows.size())});
  return mx::take(hidden, indices, 0);
}

}  // namespace

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
  const ops::KVFormat format =
      ops::kv_format(options_.kv_bits, model_.kv_dtype(), shape_.heads.head_dim);
  const int tokens = request.prompt.tokens() + request.max_tokens;
  uint64_t bytes = static_cast<uint64_t>(request.choices) *
                   nn::kv_cache_bytes(shape_.layers, shape_.heads, format, tokens);
  for (const MediaSpan& span : request.prompt.media) {
    bytes += span.patches.values.size() * sizeof(float);
  }
  return bytes;
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
    fail(*request, cancelled);
    return;
  }
  for (const Sequence& sequence : sequences_) {
    if (sequence.request->id == id) {
      fail(*sequence.request, cancelled);
      break;
    }
  }
  remove_finished();
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

ServingCore::Queue ServingCore::queue() const {
  Queue queue{.requests = static_cast<int>(waiting_.size())};
  for (const std::shared_ptr<RunningRequest>& request : waiting_) {
    queue.tokens += request->request.prompt.tokens();
  }
  return queue;
}

void ServingCore::step() {
  try {
    run_step();
  } catch (const std::exception& error) {
    end_all(failure_of(error));  // it is not known whose failure it is
  }
}

void ServingCore::run_step() {
  end_overdue();
  admit();
  const StepPlan plan = plan_step(step_state());
  if (plan.empty()) {
    return;
  }
  ++counts_.steps;
  try {
    if (plan.tower) {
      run_tower(sequence(*plan.tower));
    } else {
      run_forward(plan);
    }
  } catch (const std::exception& error) {
    fail_all(plan, failure_of(error));
  }
  tower_ran_ = plan.tower.has_value();
  remove_finished();
}

void ServingCore::end_overdue() {
  for (const RunningRequest* request : running()) {
    if (is_over(request->since_submitted.milliseconds(), options_.request_seconds)) {
      const auto owner =
          std::ranges::find(sequences_, request, [](const Sequence& s) { return s.request.get(); });
      fail(*owner->request, overdue(Timeout::request, options_.request_seconds));
    }
  }
  remove_finished();
  while (!waiting_.empty() &&
         is_over(waiting_.front()->since_submitted.milliseconds(), options_.queue_seconds)) {
    const std::shared_ptr<RunningRequest> request = std::move(waiting_.front());
    waiting_.pop_front();
    fail(*request, overdue(Timeout::queue, options_.queue_seconds));
  }
}

// ---- admission

void ServingCore::admit() {
  while (!waiting_.empty()) {
    const Request& next = waiting_.front()->request;
    const int running = open_answers();
    if (running > 0 && running + next.choices > options_.parallel) {
      return;
    }
    const uint64_t bytes = bytes_of(next);
    if (ledger_.left() + prefixes_.bytes() + pictures_.bytes() < bytes) {
      return;
    }
    const std::shared_ptr<RunningRequest> request = waiting_.front();
    // What is found outlives its entry, which may have to give way to this very request.
    PrefixCache::Found found = prefixes_.find(next.scope, request->key, next.prompt.tokens() - 1);
    request->share = take_memory(bytes);
    waiting_.pop_front();
    try {
      start(request, std::move(found));
    } catch (const std::exception& error) {
      fail(*request, failure_of(error));
    }
  }
}

/// Answers of all requests that run, those included that wait for their prompt.
int ServingCore::open_answers() const {
  int answers = 0;
  for (const RunningRequest* request : running()) {
    answers += request->open_answers;
  }
  return answers;
}

std::vector<const RunningRequest*> ServingCore::running() const {
  std::vector<const RunningRequest*> requests;
  for (const Sequence& s : sequences_) {
    if (std::ranges::count(requests, s.request.get()) == 0) {
      requests.push_back(s.request.get());
    }
  }
  return requests;
}

/// Prompts and pictures that are kept give way to requests.
MemoryLedger::Share ServingCore::take_memory(uint64_t bytes) {
  if (!prefixes_.make_room(bytes)) {
    prefixes_.clear();
    pictures_.make_room(bytes);
  }
  return *ledger_.take(bytes);
}

void ServingCore::start(const std::shared_ptr<RunningRequest>& request, PrefixCache::Found found) {
  const Request& asked = request->request;
  const int tokens = asked.prompt.tokens();
  request->timings.queue = request->since_submitted.milliseconds();
  request->since_admitted = Stopwatch();
  request->open_answers = asked.choices;
  request->features.assign(asked.prompt.media.size(), no_features());
  request->encoded.assign(asked.prompt.media.size(), false);
  nn::KVCache cache = found.cache ? std::move(*found.cache) : model_.make_cache(options_.kv_bits);
  const int cached = cache.tokens();
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

StepState ServingCore::step_state() const {
  StepState state{
      .most_rows = options_.prefill_chunk,
      .tower_ran = tower_ran_,
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

// ---- steps

/// What is kept of a picture counts as its tower's turn too: it takes no time.
void ServingCore::run_tower(Sequence& sequence) {
  RunningRequest& request = *sequence.request;
  const size_t i = next_medium(request, sequence.cache.tokens());
  const std::string& content = request.key.media[i].content;
  last_encoded_ = sequence.id;
  std::optional<nn::Features> features = pictures_.find(request.request.scope, content);
  if (features) {
    ++counts_.pictures_cached;
  } else {
    const Stopwatch watch;
    features = model_.encode(request.request.prompt.media[i].patches);
    mx::eval(features->arrays());
    request.timings.tower += watch.milliseconds();
    ++counts_.pictures_encoded;
    pictures_.put(request.request.scope, content, *features);
  }
  request.features[i] = std::move(*features);
  request.encoded[i] = true;
}

void ServingCore::run_forward(const StepPlan& plan) {
  const mx::array hidden = forward(plan);
  for (const StepRows& rows : plan.prefill) {
    const Sequence& s = sequence(rows.id);
    mx::eval(s.cache.arrays());
    s.request->sink(PromptProgress{rows.end, s.prompt().tokens()});
    last_prefilled_ = rows.id;
  }
  draw_all(plan, hidden);
}

mx::array ServingCore::forward(const StepPlan& plan) {
  std::vector<nn::Chunk> chunks;
  std::vector<nn::KVCache*> caches;
  for (const std::vector<StepRows>& part : {plan.prefill, plan.decode}) {
    for (const StepRows& rows : part) {
      Sequence& s = sequence(rows.id);
      chunks.push_back(chunk_of(s, rows));
      caches.push_back(&s.cache);
    }
  }
  return model_.forward(chunks, caches);
}

// ---- answers

/// Of each row behind which a token is to be drawn: the last of a prompt or of an answer.
void ServingCore::draw_all(const StepPlan& plan, const mx::array& hidden) {
  std::vector<int32_t> rows;
  std::vector<uint64_t> ids;
  int32_t row = 0;
  for (const std::vector<StepRows>& part : {plan.prefill, plan.decode}) {
    for (const StepRows& run : part) {
      row += run.end - run.first;
      const Sequence& s = sequence(run.id);
      if (run.end == s.prompt().tokens() + static_cast<int>(s.answer.size())) {
        rows.push_back(row - 1);
        ids.push_back(run.id);
      }
    }
  }
  if (rows.empty()) {
    return;
  }
  NextLogits logits(model_, rows_at(hidden, rows));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (std::ranges::count(finished_, ids[i]) != 0) {
      continue;  // an answer beside it failed
    }
    const RankedLogits ranked = logits.row(static_cast<int>(i));
    try {
      sequence(ids[i]).answer.empty() ? draw_first(ids[i], ranked) : draw(sequence(ids[i]), ranked);
    } catch (const std::exception& error) {
      fail(*sequence(ids[i]).request, failure_of(error));
    }
  }
}

/// Behind a prompt: each further answer begins with a fork of the first one's cache.
void ServingCore::draw_first(uint64_t id, RankedLogits logits) {
  const std::shared_ptr<RunningRequest> request = sequence(id).request;
  request->timings.prefill = request->since_admitted.milliseconds() - request->timings.tower;
  request->since_first_token = Stopwatch();
  const Request& asked = request->request;
  if (asked.choices == 1) {
    return draw(sequence(id), logits);
  }
  std::vector<uint64_t> answers = {id};
  for (int choice = 1; choice < asked.choices; ++choice) {
    answers.push_back(next_sequence_++);
    sequences_.push_back({
        .id = answers.back(),
        .request = request,
        .choice = choice,
        .cache = sequence(id).cache,
        .sampler = Sampler(sampling_of(asked, choice), asked.prompt.ids, tokenizer_.size()),
        .text = AnswerText(tokenizer_, asked.stops),
    });
  }
  const std::vector<float> kept(logits.logits.begin(), logits.logits.end());
  const std::vector<float> peaks(logits.peaks.begin(), logits.peaks.end());
  for (const uint64_t answer : answers) {
    std::ranges::copy(kept, logits.logits.begin());  // a sampler overwrites them
    draw(sequence(answer), {logits.logits, peaks});
  }
}

void ServingCore::draw(Sequence& sequence, RankedLogits logits) {
  AnswerToken token{.choice = sequence.choice};
  const std::optional<int>& top = sequence.request->request.top_logprobs;
  if (!top || !are_finite(logits.peaks)) {  // what isn't finite the sampler refuses
    token.id = draw_id(sequence, logits);
  } else {
    const auto known = std::min(logits.logits.size(), static_cast<size_t>(tokenizer_.size()));
    const LogProbabilities probabilities(logits.logits.first(known), *top);
    token.id = draw_id(sequence, logits);
    token.logprob = probabilities.of(token.id);
    token.top_logprobs = probabilities.top();
  }
  take(sequence, std::move(token));
}

int32_t ServingCore::draw_id(Sequence& sequence, RankedLogits logits) {
  const Request& asked = sequence.request->request;
  const bool begins = sequence.answer.empty() && !asked.reasoning_end;
  if (asked.grammar && begins) {
    sequence.grammar.emplace(*asked.grammar);
  }
  if (!asked.grammar) {
    return sequence.sampler.draw(logits);
  }
  if (!sequence.grammar) {
    // An end inside of the reasoning would be an answer that keeps no grammar.
    const int32_t id = sequence.sampler.draw(logits, all_but(asked.stop_ids, tokenizer_.size()));
    if (id == asked.reasoning_end) {
      sequence.grammar.emplace(*asked.grammar);
    }
    return id;
  }
  const int32_t id = sequence.sampler.draw(logits, sequence.grammar->allowed());
  sequence.grammar->accept(id);
  return id;
}

void ServingCore::take(Sequence& sequence, AnswerToken token) {
  const Request& asked = sequence.request->request;
  if (std::ranges::count(asked.stop_ids, token.id) != 0) {
    finish(sequence, AnswerEnd::stop);
    return;
  }
  sequence.answer.push_back(token.id);
  ++counts_.answer_tokens;
  token.text = sequence.text.push(token.id);
  sequence.request->sink(std::move(token));
  if (sequence.text.stopped()) {
    finish(sequence, AnswerEnd::stop);
  } else if (static_cast<int>(sequence.answer.size()) == asked.max_tokens) {
    finish(sequence, AnswerEnd::length);
  }
}

void ServingCore::finish(Sequence& sequence, AnswerEnd reason) {
  RunningRequest& request = *sequence.request;
  const std::string rest = sequence.text.finish();
  finished_.push_back(sequence.id);
  request.sink(
      AnswerFinished{
          .choice = sequence.choice,
          .reason = sequence.text.stopped() ? AnswerEnd::stop : reason,
          .text = rest,
          .stop_text = sequence.text.stop(),
          .tokens = static_cast<int>(sequence.answer.size()),
      }
  );
  if (--request.open_answers == 0) {
    request.timings.decode = request.since_first_token.milliseconds();
    keep_prefix(sequence);
    request.ended = true;
    ++counts_.finished;
    request.sink(RequestFinished{request.timings});
  }
}

/// An answer's rows are kept only where they have the arithmetic of a prompt's: else a prompt that
/// goes on from them would not give what it gives alone.
void ServingCore::keep_prefix(Sequence& sequence) {
  RunningRequest& request = *sequence.request;
  PrefixKey key = request.key;
  if (keeps_answers_) {
    const int answered = sequence.cache.tokens() - sequence.prompt().tokens();
    key.ids.insert(key.ids.end(), sequence.answer.begin(), sequence.answer.begin() + answered);
  }
  request.share = {};
  prefixes_.put(request.request.scope, std::move(key), std::move(sequence.cache));
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
  if (plan.tower) {
    add(*plan.tower);
  }
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
  status.queued = static_cast<int>(waiting_.size());
  status.memory_budget = ledger_.budget();
  status.memory_used = ledger_.used();
  status.prefix_bytes = prefixes_.bytes();
  status.feature_bytes = pictures_.bytes();
  return status;
}

}  // namespace whimbrel
