#include "generate/generate.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "generate/answer_text.h"
#include "generate/forward.h"
#include "models/prompt_chunk.h"

namespace whimbrel {

namespace {

/// One answer being made. Its parts stand in the order in which they are used.
class Answer {
 public:
  Answer(
      const Model& model,
      const Tokenizer& tokenizer,
      const Prompt& prompt,
      const GenerateOptions& options,
      const GenerateEvents& events
  )
      : model_(model),
        prompt_(prompt),
        options_(options),
        events_(events),
        cache_(model.make_cache(options.kv_bits)),
        window_(options.kv_limit, prompt),
        sampler_(options.sampling, prompt.ids, tokenizer.size()),
        text_(tokenizer, options.stops) {}

  Generation make() {
    run_towers();
    decode(prefill());
    emit(text_.finish());
    if (text_.stopped()) {
      generation_.finish_reason = FinishReason::stop;
    }
    generation_.dropped = window_.dropped();
    return std::move(generation_);
  }

 private:
  void run_towers() {
    const Stopwatch watch;
    features_ =
        encode_media(model_, prompt_, prompt_.media.size(), [this] { require_not_cancelled(); });
    generation_.timings.tower = watch.milliseconds();
  }

  /// Runs the prompt; returns the logits behind its last token.
  NextLogits prefill() {
    since_prefill_ = Stopwatch();
    std::optional<NextLogits> logits;
    for (int first = 0; first < prompt_.tokens();) {
      require_not_cancelled();
      const int end = make_room(std::min(first + options_.prefill_chunk, prompt_.tokens()));
      const mx::array hidden = model_.forward(prompt_chunk(prompt_, features_, first, end), cache_);
      if (end == prompt_.tokens()) {
        logits.emplace(last_logits(hidden));
      } else {
        mx::eval(cache_.arrays());
      }
      first = end;
      if (events_.on_prefill) {
        events_.on_prefill(end, prompt_.tokens());
      }
    }
    generation_.timings.prefill = since_prefill_.milliseconds();
    return std::move(logits.value());
  }

  void decode(NextLogits logits) {
    int32_t id = sampler_.draw(logits.row(0));
    generation_.timings.first_token = since_prefill_.milliseconds();
    const Stopwatch decoding;
    while (take(id)) {
      require_not_cancelled();
      const Stopwatch step;
      make_room(cache_.tokens() + 1);
      const nn::Chunk chunk = next_chunk(prompt_, cache_.tokens(), id);
      id = sampler_.draw(last_logits(model_.forward(chunk, cache_)).row(0));
      generation_.timings.per_token.push_back(step.milliseconds());
    }
    generation_.timings.decode = decoding.milliseconds();
  }

  /// Adds a token to the answer; false where the answer ends with or before it.
  bool take(int32_t id) {
    if (std::ranges::count(options_.stop_ids, id) != 0) {
      generation_.finish_reason = FinishReason::stop;
      return false;
    }
    generation_.ids.push_back(id);
    emit(text_.push(id));
    if (text_.stopped()) {
      return false;
    }
    return static_cast<int>(generation_.ids.size()) < options_.max_tokens;
  }

  /// Makes room for the tokens up to `wanted`; returns up to which there is some.
  int make_room(int wanted) {
    const KVWindow::Step step = window_.make_room(cache_.tokens(), wanted);
    if (step.drop) {
      cache_.drop(window_.keep(), step.drop->end - step.drop->first);
    }
    return step.end;
  }

  NextLogits last_logits(const mx::array& hidden) const {
    const int rows = hidden.shape(0);
    return NextLogits(model_, mx::slice(hidden, {rows - 1, 0}, {rows, hidden.shape(1)}));
  }

  void emit(const std::string& text) {
    if (text.empty()) {
      return;
    }
    generation_.text += text;
    if (events_.on_text) {
      events_.on_text(text);
    }
  }

  void require_not_cancelled() const {
    if (events_.cancelled && events_.cancelled()) {
      throw Error(Fault::interrupted, "generate", "interrupted");
    }
  }

  const Model& model_;
  const Prompt& prompt_;
  const GenerateOptions& options_;
  const GenerateEvents& events_;
  std::vector<nn::Features> features_;
  nn::KVCache cache_;
  KVWindow window_;
  Sampler sampler_;
  AnswerText text_;
  Stopwatch since_prefill_;
  Generation generation_;
};

}  // namespace

Generation generate(
    const Model& model,
    const Tokenizer& tokenizer,
    const Prompt& prompt,
    const GenerateOptions& options,
    const GenerateEvents& events
) {
  return Answer(model, tokenizer, prompt, options, events).make();
}

}  // namespace whimbrel
