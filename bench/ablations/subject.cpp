#include "ablations/subject.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "models/prompt_chunk.h"
#include "nn/loader.h"

namespace whimbrel::ablations {

namespace {

constexpr int kPrefillChunk = 512;
constexpr int kPictureColumns = 4;  // of tokens

std::vector<int32_t> random_ids(int count, int vocab_size) {
  std::mt19937 random(20);
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
  }
  return ids;
}

/// Tokens of a picture that with its two borders takes more than half of the context.
int picture_tokens(const Context& context) {
  const int tokens = context.tokens / 2 / kPictureColumns * kPictureColumns;
  if (tokens == 0) {
    throw Error(
        Fault::usage,
        "--contexts",
        "got {} tokens behind a picture, expected at least {}",
        context.tokens,
        2 * kPictureColumns
    );
  }
  return tokens;
}

void put_picture(Prompt& prompt, const MediaRules& rules, int tokens) {
  prompt.ids[0] = rules.vision_start_token_id;
  std::fill_n(prompt.ids.begin() + 1, tokens, rules.image_token_id);
  prompt.ids[static_cast<size_t>(tokens) + 1] = rules.vision_end_token_id;
  prompt.media.push_back({.source = "random", .runs = {{.first = 1, .tokens = tokens}}});
}

Prompt context_prompt(const Subject& subject, const Context& context) {
  Prompt prompt;
  prompt.ids = random_ids(context.tokens, subject.model.config().vocab_size);
  if (!context.behind_picture) {
    prompt.positions = nn::mrope_positions(context.tokens, {});
    return prompt;
  }
  if (!subject.media) {
    throw Error(Fault::usage, "ablations", "got a text model, expected one that sees pictures");
  }
  const int tokens = picture_tokens(context);
  put_picture(prompt, *subject.media, tokens);
  const nn::VisionBlock block{
      .first = 1, .height = tokens / kPictureColumns, .width = kPictureColumns, .frame_times = {0}
  };
  prompt.positions = nn::mrope_positions(context.tokens, {&block, 1});
  return prompt;
}

/// Random rows in place of what the tower makes of each of the prompt's pictures.
std::vector<nn::Features> random_features(const Subject& subject, const Prompt& prompt) {
  std::vector<nn::Features> features;
  for (const MediaSpan& span : prompt.media) {
    const mx::Shape shape = {span.tokens(), subject.model.config().hidden_size};
    const mx::array rows = mx::random::normal(shape, subject.ops->dtype(), mx::random::key(20));
    features.push_back({.rows = rows, .deepstack = {}});
  }
  return features;
}

}  // namespace

Subject load_subject(
    const ModelConfig& config, Checkpoint& checkpoint, std::unique_ptr<const ops::Ops> backend
) {
  const Family& family = find_family(config.model_type);
  auto ops = std::make_unique<DefectiveOps>(*backend);
  const nn::WeightLoader loader(checkpoint, *ops, [](uint64_t) {});
  Model model = family.load(config, loader);
  checkpoint.require_all_taken();
  return {std::move(backend), std::move(ops), std::move(model), family.media_rules(config)};
}

Prefilled prefill(const Subject& subject, const Context& context) {
  Prefilled filled{context, context_prompt(subject, context), subject.model.make_cache()};
  const std::vector<nn::Features> features = random_features(subject, filled.prompt);
  subject.ops->apply(Defect::none);
  for (int first = 0; first < context.tokens; first += kPrefillChunk) {
    const int end = std::min(first + kPrefillChunk, context.tokens);
    subject.model.forward(prompt_chunk(filled.prompt, features, first, end), filled.cache);
    mx::eval(filled.cache.arrays());
  }
  return filled;
}

}  // namespace whimbrel::ablations
