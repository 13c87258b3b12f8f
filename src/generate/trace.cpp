#include "generate/trace.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "generate/forward.h"
#include "models/prompt_chunk.h"

namespace whimbrel {

namespace {

void require_range(std::string_view flag, int value, int min, int max, std::string_view why) {
  if (value < min || value > max) {
    throw Error(Fault::usage, flag, "got {}, expected {} to {}{}", value, min, max, why);
  }
}

void require_finite(std::span<const float> logits, int pos) {
  const auto finite = [](float logit) { return std::isfinite(logit); };
  if (!std::ranges::all_of(logits, finite)) {
    throw Error(
        Fault::model,
        "trace",
        "got logits that are not finite at position {}, expected numbers; the weights or the "
        "operations are broken: run whimbrel verify -m DIR",
        pos
    );
  }
}

/// -ln softmax(logits)[target], summed in float64.
double negative_log_likelihood(std::span<const float> logits, int32_t target) {
  const double largest = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(logit - largest);
  }
  return std::log(total) - (logits[static_cast<size_t>(target)] - largest);
}

std::vector<int32_t> best_ids(std::span<const float> logits, int count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto better = [logits](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), better);
  ids.resize(static_cast<size_t>(count));
  return ids;
}

/// One trace being made.
class Tracer {
 public:
  Tracer(
      const Model& model,
      const Prompt& prompt,
      const TraceOptions& options,
      const TraceEvents& events
  )
      : model_(model),
        prompt_(prompt),
        options_(options),
        events_(events),
        cache_(model.make_cache()) {}

  std::vector<TraceRow> make() {
    features_ = encode_media(model_, prompt_, media_fed(), [this] { require_not_cancelled(); });
    feed(0, options_.depth, options_.prefill_chunk, [this](int, const mx::array&) {
      mx::eval(cache_.arrays());
    });
    feed(
        options_.depth, options_.fed(), options_.width, [this](int first, const mx::array& hidden) {
          add_rows(first, hidden);
        }
    );
    return std::move(rows_);
  }

 private:
  /// Media that have a token among those that are fed.
  size_t media_fed() const {
    const auto fed = [this](const MediaSpan& span) { return span.first_token() < options_.fed(); };
    return static_cast<size_t>(std::ranges::count_if(prompt_.media, fed));
  }

  template <typename OnHidden>
  void feed(int first, int end, int width, const OnHidden& on_hidden) {
    while (first < end) {
      require_not_cancelled();
      const int next = std::min(first + width, end);
      nn::Chunk chunk = prompt_chunk(prompt_, features_, first, next);
      chunk.prefill = width > 1;
      on_hidden(first, model_.forward(chunk, cache_));
      first = next;
      if (events_.on_tokens) {
        events_.on_tokens(next, options_.fed());
      }
    }
  }

  void add_rows(int first, const mx::array& hidden) {
    const std::vector<float> logits = evaluated_logits(model_, hidden);
    const size_t vocab_size = logits.size() / static_cast<size_t>(hidden.shape(0));
    for (int i = 0; i < hidden.shape(0); ++i) {
      const std::span<const float> row =
          std::span(logits).subspan(static_cast<size_t>(i) * vocab_size, vocab_size);
      rows_.push_back(trace_row(prompt_, first + i, row, options_.top));
    }
  }

  void require_not_cancelled() const {
    if (events_.cancelled && events_.cancelled()) {
      throw Error(Fault::interrupted, "trace", "interrupted");
    }
  }

  const Model& model_;
  const Prompt& prompt_;
  const TraceOptions& options_;
  const TraceEvents& events_;
  std::vector<nn::Features> features_;
  nn::KVCache cache_;
  std::vector<TraceRow> rows_;
};

}  // namespace

void require_valid(const TraceOptions& options, int vocab_size) {
  constexpr int kMost = 1 << 30;  // so that depth + positions + 1 is an int
  require_range("--depth", options.depth, 0, kMost, "");
  require_range("--positions", options.positions, 1, kMost - 1, "");
  require_range("--width", options.width, 1, options.positions, ", the number of positions");
  require_range("--top", options.top, 2, vocab_size, ", the size of the vocabulary");
}

void require_trace_room(const Prompt& prompt, const TraceOptions& options, int context) {
  if (prompt.tokens() < options.fed() + 1) {
    throw Error(
        Fault::input,
        "trace",
        "got an input of {} tokens, expected at least {} (depth {} + positions {} + 1); use a "
        "longer input or fewer positions",
        prompt.tokens(),
        options.fed() + 1,
        options.depth,
        options.positions
    );
  }
  if (options.fed() > context) {
    throw Error(
        Fault::input,
        "trace",
        "got depth {} + positions {}, expected at most the model's context of {} tokens",
        options.depth,
        options.positions,
        context
    );
  }
}

TraceRow trace_row(const Prompt& prompt, int pos, std::span<const float> logits, int top) {
  require_finite(logits, pos);
  TraceRow row{
      .pos = pos,
      .id = prompt.ids[static_cast<size_t>(pos)],
      .target = prompt.ids[static_cast<size_t>(pos) + 1],
  };
  row.nll = negative_log_likelihood(logits, row.target);
  row.top_ids = best_ids(logits, top);
  for (const int32_t id : row.top_ids) {
    row.top_logits.push_back(logits[static_cast<size_t>(id)]);
  }
  return row;
}

std::vector<TraceRow> trace(
    const Model& model, const Prompt& prompt, const TraceOptions& options, const TraceEvents& events
) {
  return Tracer(model, prompt, options, events).make();
}

}  // namespace whimbrel
