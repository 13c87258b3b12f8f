// What a step of the serving core runs, and what comes of it. Who takes part is serving_core.cpp.

#include <mlx/mlx.h>

#include <algorithm>
#include <utility>

#include "engine/draw_token.h"
#include "engine/serving_core.h"

namespace whimbrel {

namespace {

mx::array rows_at(const mx::array& hidden, const std::vector<int32_t>& rows) {
  const mx::array indices(rows.begin(), {static_cast<int>(rows.size())});
  return mx::take(hidden, indices, 0);
}

/// A tower works for a request that ended.
struct NobodyWaits : std::exception {};

/// What went wrong while a tower paused, which is not its fault.
struct OthersFailed : std::exception {
  explicit OthersFailed(std::exception_ptr error) : cause(std::move(error)) {}
  std::exception_ptr cause;
};

}  // namespace

/// What is kept of a picture counts as its tower's turn too: it takes no time.
void ServingCore::run_tower(RunningRequest& request, size_t medium, const Breath& breath) {
  const std::string& content = request.key.media[medium].content;
  std::optional<nn::Features> features = pictures_.find(request.request.scope, content);
  try {
    if (features) {
      ++counts_.pictures_cached;
      if (request.told <= request.request.prompt.media[medium].first_token()) {
        request.reuse[medium] = MediumReuse::features;  // and not where it is read again
      }
    } else {
      features = encode(request, medium, breath);
      ++counts_.pictures_encoded;
      pictures_.put(request.request.scope, content, *features);
    }
    request.features[medium] = std::move(*features);
    request.encoded[medium] = true;
  } catch (const NobodyWaits&) {
    return;
  } catch (const OthersFailed& failed) {
    std::rethrow_exception(failed.cause);
  } catch (const std::exception& error) {
    fail(request, failure_of(error));
  }
}

/// Others go on between the tower's blocks and between parts of a long attention. Throws
/// NobodyWaits where the request ends meanwhile.
nn::Features ServingCore::encode(RunningRequest& request, size_t medium, const Breath& breath) {
  double others = 0;
  const Stopwatch watch;
  const auto on_block = [&](std::string_view, const mx::array& output) {
    mx::eval(output);
    ++counts_.steps;
    const Stopwatch pause;
    run_others(breath);
    others += pause.milliseconds();
    if (request.ended) {
      throw NobodyWaits();
    }
  };
  nn::Features features = model_.encode(request.request.prompt.media[medium].patches, on_block);
  mx::eval(features.arrays());
  request.timings.tower += watch.milliseconds() - others;
  return features;
}

/// A forward, unless the tower had less time since the last one than that took: each has half.
void ServingCore::run_others(const Breath& breath) {
  try {
    if (breath) {
      breath();
    }
    if (since_forward_.milliseconds() < forward_milliseconds_) {
      return;
    }
    const StepPlan plan = next_plan(true);
    if (!plan.empty()) {
      run_forward(plan);
    }
  } catch (...) {
    throw OthersFailed(std::current_exception());
  }
}

void ServingCore::run_forward(const StepPlan& plan) {
  ++counts_.steps;
  const Stopwatch watch;
  try {
    advance(plan);
  } catch (const std::exception& error) {
    fail_all(plan, failure_of(error));
  }
  remove_finished();
  forward_milliseconds_ = watch.milliseconds();
  since_forward_ = Stopwatch();
}

void ServingCore::advance(const StepPlan& plan) {
  const mx::array hidden = forward(plan);
  for (const StepRows& rows : plan.prefill) {
    const Sequence& s = sequence(rows.id);
    mx::eval(s.cache.arrays());
    last_prefilled_ = rows.id;
    if (rows.end > s.request->told) {  // not again, where it is read again
      s.request->told = rows.end;
      s.request->sink(PromptProgress{rows.end, s.prompt().tokens()});
    }
    if (s.answer.empty()) {
      continue;
    }
    if (rows.end == s.prompt().tokens()) {
      resume_others(rows.id);
    }
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

/// Of each row behind which a token is to be drawn: the last of a prompt or of an answer, and those
/// of guesses.
void ServingCore::draw_all(const StepPlan& plan, const mx::array& hidden) {
  std::vector<int32_t> rows;
  std::vector<std::pair<uint64_t, LogitsRows>> drawn;
  int32_t behind = 0;
  for (const std::vector<StepRows>& part : {plan.prefill, plan.decode}) {
    for (const StepRows& run : part) {
      behind += run.end - run.first;
      const Sequence& s = sequence(run.id);
      const int count = run.end - (s.prompt().tokens() + s.answered()) + 1;
      if (count < 1) {
        continue;  // there is more to read
      }
      drawn.push_back({run.id, {static_cast<int>(rows.size()), count}});
      for (int32_t row = behind - count; row < behind; ++row) {
        rows.push_back(row);
      }
    }
  }
  if (rows.empty()) {
    return;
  }
  NextLogits logits(model_, rows_at(hidden, rows));
  for (const auto& [id, of_sequence] : drawn) {
    if (std::ranges::count(finished_, id) != 0) {
      continue;  // an answer beside it failed
    }
    try {
      sequence(id).answer.empty() ? draw_first(id, logits.row(of_sequence.first))
                                  : draw(sequence(id), logits, of_sequence);
    } catch (const std::exception& error) {
      fail(*sequence(id).request, failure_of(error));
    }
  }
}

/// Behind a prompt: each further answer begins with a fork of the first one's cache.
void ServingCore::draw_first(uint64_t id, const RankedLogits& logits) {
  const std::shared_ptr<RunningRequest> request = sequence(id).request;
  request->timings.prefill = request->since_admitted.milliseconds() - request->timings.tower;
  request->since_first_token = Stopwatch();
  const Request& asked = request->request;
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
  std::vector<float> kept;
  if (answers.size() > 1) {
    kept.assign(logits.logits.begin(), logits.logits.end());
  }
  for (const uint64_t answer : answers) {
    if (answer != id) {
      std::ranges::copy(kept, logits.logits.begin());  // a sampler overwrites them
    }
    Sequence& s = sequence(answer);
    if (const std::optional<AnswerEnd> end = take(s, draw_token(s, logits, tokenizer_.size()))) {
      finish(s, *end);
    } else {
      guess(s, asked.prompt.ids);
    }
  }
}

/// A token, and behind it one more for each guess that is what was drawn.
void ServingCore::draw(Sequence& sequence, NextLogits& logits, LogitsRows rows) {
  const int before = sequence.answered();
  std::optional<AnswerEnd> end;
  int cached = 0;  // tokens of the answer whose rows in the cache are right
  int right = -1;
  bool goes_on = true;
  while (goes_on) {
    ++right;
    cached = sequence.answered();
    end = take(sequence, draw_token(sequence, logits.row(rows.first + right), tokenizer_.size()));
    goes_on = !end && right + 1 < rows.count &&
              sequence.answer.back() == sequence.draft[static_cast<size_t>(right) + 1];
  }
  if (rows.count > 1) {
    sequence.cache.truncate(sequence.prompt().tokens() + cached);
    count_guesses(sequence, rows.count - 1, right);
  }
  if (end) {
    return finish(sequence, *end);
  }
  guess(sequence, std::span(sequence.answer).subspan(static_cast<size_t>(before)));
}

void ServingCore::count_guesses(Sequence& sequence, int guessed, int right) {
  sequence.lookup->learn(guessed, right);
  sequence.guessed += guessed;
  sequence.guessed_right += right;
  counts_.guessed_tokens += static_cast<uint64_t>(guessed);
  counts_.guessed_right += static_cast<uint64_t>(right);
}

/// How the answer goes on, where that is wanted; `added` is what was not looked through before.
void ServingCore::guess(Sequence& sequence, std::span<const int32_t> added) {
  if (options_.prompt_lookup == 0) {
    return;
  }
  if (!sequence.lookup) {
    sequence.lookup.emplace(options_.prompt_lookup);
    sequence.lookup->append(added);
    added = sequence.answer;
  }
  sequence.lookup->append(added);
  const int room = sequence.request->request.max_tokens - sequence.answered() - 1;
  sequence.draft = sequence.lookup->guess(room);
  sequence.draft.insert(sequence.draft.begin(), sequence.answer.back());
}

/// Gives a drawn token out; why the answer ends with it, where it does.
std::optional<AnswerEnd> ServingCore::take(Sequence& sequence, AnswerToken token) {
  const Request& asked = sequence.request->request;
  if (std::ranges::count(asked.stop_ids, token.id) != 0) {
    return AnswerEnd::stop;
  }
  sequence.answer.push_back(token.id);
  ++counts_.answer_tokens;
  token.text = sequence.text.push(token.id);
  sequence.request->sink(std::move(token));
  if (sequence.text.stopped()) {
    return AnswerEnd::stop;
  }
  return sequence.answered() == asked.max_tokens ? std::optional(AnswerEnd::length) : std::nullopt;
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
          .tokens = sequence.answered(),
          .guessed = sequence.guessed,
          .guessed_right = sequence.guessed_right,
      }
  );
  if (--request.open_answers == 0) {
    request.timings.decode = request.since_first_token.milliseconds();
    keep_prefix(sequence);
    request.ended = true;
    ++counts_.finished;
    request.sink(RequestFinished{request.timings, request.reuse});
  }
}

/// An answer's rows are kept only where they have the arithmetic of a prompt's: else a prompt that
/// goes on from them would not give what it gives alone.
void ServingCore::keep_prefix(Sequence& sequence) {
  RunningRequest& request = *sequence.request;
  request.shares.clear();
  PrefixKey key = request.key;
  if (keeps_answers_) {
    key.ids.insert(key.ids.end(), sequence.answer.begin(), sequence.answer.end());
  }
  const auto cached = static_cast<size_t>(sequence.cache.tokens());
  key.ids.resize(std::min(key.ids.size(), cached));
  if (key.ids.empty()) {
    return;
  }
  try {
    prefixes_.put(request.request.scope, std::move(key), std::move(sequence.cache));
  } catch (const std::exception&) {
    ++counts_.prefixes_lost;  // the answer is complete without it
  }
}

}  // namespace whimbrel
