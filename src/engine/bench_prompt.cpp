#include "engine/bench_prompt.h"

#include <random>

#include "engine/placeholders.h"

namespace whimbrel {

namespace {

/// Ids below the vocabulary's size, without the two that stand for media.
std::vector<int32_t> random_ids(int count, int vocab_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

}  // namespace

Prompt random_text(int tokens, int vocab_size, uint64_t seed) {
  Prompt prompt{.ids = random_ids(tokens, vocab_size, seed), .media = {}, .positions = {}};
  prompt.positions = nn::mrope_positions(tokens, {});
  return prompt;
}

ImageProcessor default_processor(const MediaRules& rules) {
  return {
      .patch_size = rules.layout.patch_size,
      .merge_size = rules.layout.merge_size,
      .temporal_patch_size = rules.layout.temporal_patch_size,
      .min_pixels = rules.image_bounds.min_pixels,
      .max_pixels = rules.image_bounds.max_pixels,
      .image_mean = {0.5F, 0.5F, 0.5F},
      .image_std = {0.5F, 0.5F, 0.5F},
  };
}

Patches random_picture(Size size, const ImageProcessor& processor) {
  Image image{.height = size.height, .width = size.width, .pixels = {}};
  const size_t values =
      size_t{3} * static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
  std::mt19937 random(1);
  for (size_t i = 0; i < values; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(random()));
  }
  return preprocess_image(image, processor, "--image");
}

Prompt random_picture_prompt(Patches patches, const MediaRules& rules, int vocab_size) {
  std::vector<int32_t> ids = {
      rules.vision_start_token_id, rules.image_token_id, rules.vision_end_token_id
  };
  for (int32_t id : random_ids(kBenchQuestion, vocab_size, 2)) {
    const bool stands_for_media = id == rules.image_token_id || id == rules.video_token_id;
    ids.push_back(stands_for_media ? 0 : id);
  }
  std::vector<CutMedium> media(1);
  media[0].kind = MediaKind::image;
  media[0].source = "noise";
  media[0].frame_times = {0};
  media[0].patches = std::move(patches);
  return expand_placeholders(ids, std::move(media), rules);
}

int picture_prompt_tokens(const Patches& patches, const MediaRules& rules) {
  const int merged = rules.layout.merge_size * rules.layout.merge_size;
  return static_cast<int>(patches.count) / merged + 2 + kBenchQuestion;
}

}  // namespace whimbrel
