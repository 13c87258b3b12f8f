#include "engine/bench_session.h"

#include <mlx/mlx.h>

#include <algorithm>

#include "base/clock.h"
#include "engine/bench_prompt.h"
#include "generate/forward.h"
#include "generate/sampler.h"
#include "models/prompt_chunk.h"

namespace whimbrel {

namespace {

constexpr uint64_t kSeed = 1;  // of prompts

nn::KVCache with_room(nn::KVCache cache, int rows) {
  for (int layer = 0; layer < static_cast<int>(cache.layers().size()); ++layer) {
    nn::reserve(cache.layer(layer), rows);
  }
  mx::eval(cache.arrays());
  return cache;
}

mx::array last_row(const mx::array& hidden) {
  const mx::Shape start = {hidden.shape(0) - 1, 0};
  return mx::slice(hidden, start, hidden.shape());
}

/// Runs a prompt's tokens from the cache's length on; the hidden states of the last chunk.
mx::array run_prompt(
    const Model& model,
    const Prompt& prompt,
    std::span<const nn::Features> features,
    int chunk,
    nn::KVCache& cache
) {
  for (;;) {
    const int first = cache.tokens();
    const int end = std::min(first + chunk, prompt.tokens());
    mx::array hidden = model.forward(prompt_chunk(prompt, features, first, end), cache);
    if (end == prompt.tokens()) {
      return hidden;
    }
    mx::eval(cache.arrays());
  }
}

SamplingOptions greedy() {
  SamplingOptions options;
  options.temperature = 0;
  options.seed = kSeed;
  return options;
}

class PrefillRun : public BenchRun {
 public:
  PrefillRun(const Model& model, Prompt prompt, nn::KVCache cache, int depth, int chunk)
      : model_(model),
        prompt_(std::move(prompt)),
        cache_(with_room(std::move(cache), prompt_.tokens() - depth)),
        depth_(depth),
        chunk_(chunk) {
    repeat();
  }

  std::vector<double> repeat() override {
    cache_.truncate(depth_);
    const Stopwatch watch;
    evaluated_logits(model_, last_row(run_prompt(model_, prompt_, {}, chunk_, cache_)));
    return {watch.milliseconds()};
  }

 private:
  const Model& model_;
  Prompt prompt_;
  nn::KVCache cache_;
  int depth_;
  int chunk_;
};

/// Decodes rows of equal length in one step, greedily; end tokens count as any other.
class DecodeRun : public BenchRun {
 public:
  DecodeRun(
      const Model& model,
      Prompt prompt,
      const nn::KVCache& filled,
      const BenchCell& cell,
      int warmup
  )
      : model_(model), prompt_(std::move(prompt)), cell_(cell) {
    for (int row = 0; row < cell.rows; ++row) {
      caches_.push_back(with_room(filled, std::max(cell.tokens, warmup) + 1));
    }
    run(warmup);
  }

  std::vector<double> repeat() override { return run(cell_.tokens); }

 private:
  std::vector<double> run(int steps) {
    begin();
    std::vector<double> times;
    for (int step = 0; step < steps; ++step) {
      const Stopwatch watch;
      if (cell_.doubled) {
        forward();
        for (nn::KVCache& cache : caches_) {
          cache.truncate(cache.length() - 1);
        }
      }
      draw(forward());
      times.push_back(watch.milliseconds());
    }
    return times;
  }

  void begin() {
    ids_.clear();
    samplers_.clear();
    for (int row = 0; row < cell_.rows; ++row) {
      caches_[static_cast<size_t>(row)].truncate(cell_.depth);
      ids_.push_back(row);
      samplers_.emplace_back(greedy(), prompt_.ids, model_.config().vocab_size);
    }
  }

  NextLogits forward() {
    std::vector<nn::Chunk> chunks;
    std::vector<nn::KVCache*> caches;
    for (size_t row = 0; row < caches_.size(); ++row) {
      chunks.push_back(next_chunk(prompt_, caches_[row].tokens(), ids_[row]));
      caches.push_back(&caches_[row]);
    }
    return NextLogits(model_, model_.forward(chunks, caches));
  }

  void draw(NextLogits logits) {
    for (size_t row = 0; row < ids_.size(); ++row) {
      ids_[row] = samplers_[row].draw(logits.row(static_cast<int>(row)));
    }
  }

  const Model& model_;
  Prompt prompt_;
  BenchCell cell_;
  std::vector<nn::KVCache> caches_;
  std::vector<int32_t> ids_;
  std::vector<Sampler> samplers_;
};

class TowerRun : public BenchRun {
 public:
  TowerRun(const Model& model, const Prompt& prompt) : model_(model), prompt_(prompt) { repeat(); }

  std::vector<double> repeat() override {
    const Stopwatch watch;
    encode_media(model_, prompt_, 1, [] {});
    return {watch.milliseconds()};
  }

 private:
  const Model& model_;
  const Prompt& prompt_;
};

class FirstTokenRun : public BenchRun {
 public:
  FirstTokenRun(const Model& model, const Prompt& prompt, int chunk, int kv_bits)
      : model_(model),
        prompt_(prompt),
        chunk_(chunk),
        cache_(with_room(model.make_cache(kv_bits), prompt.tokens())) {
    repeat();
  }

  std::vector<double> repeat() override {
    cache_.truncate(0);
    const Stopwatch watch;
    const std::vector<nn::Features> features = encode_media(model_, prompt_, 1, [] {});
    evaluated_logits(model_, last_row(run_prompt(model_, prompt_, features, chunk_, cache_)));
    return {watch.milliseconds()};
  }

 private:
  const Model& model_;
  const Prompt& prompt_;
  int chunk_;
  nn::KVCache cache_;
};

}  // namespace

BenchSession::BenchSession(
    const Model& model, const BenchOptions& options, std::optional<Prompt> picture
)
    : model_(model), options_(options), picture_(std::move(picture)) {}

std::unique_ptr<BenchRun> BenchSession::prepare(const BenchCell& cell) {
  switch (cell.kind) {
    case BenchKind::prefill: {
      Prompt prompt = random_text(cell.depth + cell.tokens, model_.config().vocab_size, kSeed);
      return std::make_unique<PrefillRun>(
          model_, std::move(prompt), text(cell.depth).cache, cell.depth, options_.prefill_chunk
      );
    }
    case BenchKind::decode: {
      const Filled& filled = cell.behind_image ? behind_picture() : text(cell.depth);
      return std::make_unique<DecodeRun>(
          model_, filled.prompt, filled.cache, cell, options_.warmup
      );
    }
    case BenchKind::tower:
      return std::make_unique<TowerRun>(model_, picture_.value());
    case BenchKind::first_token:
      return std::make_unique<FirstTokenRun>(
          model_, picture_.value(), options_.prefill_chunk, options_.kv_bits
      );
  }
  return nullptr;
}

const BenchSession::Filled& BenchSession::text(int depth) {
  const auto place = std::ranges::lower_bound(texts_, depth, {}, [](const Filled& filled) {
    return filled.cache.length();
  });
  if (place != texts_.end() && place->cache.length() == depth) {
    return *place;
  }
  // The ids of a longer text begin with those of a shorter one.
  Filled filled{
      random_text(depth, model_.config().vocab_size, kSeed),
      place == texts_.begin() ? model_.make_cache(options_.kv_bits) : std::prev(place)->cache
  };
  if (filled.cache.length() < depth) {
    run_prompt(model_, filled.prompt, {}, options_.prefill_chunk, filled.cache);
    mx::eval(filled.cache.arrays());
  }
  return *texts_.insert(place, std::move(filled));
}

const BenchSession::Filled& BenchSession::behind_picture() {
  if (!behind_picture_) {
    Filled filled{picture_.value(), model_.make_cache(options_.kv_bits)};
    const std::vector<nn::Features> features = encode_media(model_, filled.prompt, 1, [] {});
    run_prompt(model_, filled.prompt, features, options_.prefill_chunk, filled.cache);
    mx::eval(filled.cache.arrays());
    behind_picture_.emplace(std::move(filled));
  }
  return *behind_picture_;
}

}  // namespace whimbrel
