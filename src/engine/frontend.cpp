#include "engine/frontend.h"

#include <algorithm>

#include "base/error.h"
#include "weights/checkpoint.h"

namespace whimbrel {

namespace {

void require_layout(
    const ImageProcessor& processor, const PatchLayout& layout, std::string_view file
) {
  const auto require = [file](std::string_view key, int found, int expected) {
    if (found != expected) {
      throw Error(
          Fault::model,
          file,
          "got {} {}, expected {} as in config.json's vision_config",
          key,
          found,
          expected
      );
    }
  };
  require("patch_size", processor.patch_size, layout.patch_size);
  require("merge_size", processor.merge_size, layout.merge_size);
  require("temporal_patch_size", processor.temporal_patch_size, layout.temporal_patch_size);
}

std::vector<int32_t> all_stop_ids(const ModelConfig& config, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids(config.eos_token_ids.begin(), config.eos_token_ids.end());
  const std::optional<int32_t> eos = tokenizer.eos();
  if (eos && std::ranges::count(ids, *eos) == 0) {
    ids.push_back(*eos);
  }
  return ids;
}

/// A text-only conversion of a vision model keeps its config.json, but has no tower and perhaps no
/// vision_config.
std::optional<MediaRules> media_rules(const Family& family, const ModelConfig& config) {
  if (config.vision.empty() || !Checkpoint(config).has_under("visual.")) {
    return std::nullopt;
  }
  return family.media_rules(config);
}

void require_tokenizer(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (!std::filesystem::exists(folder / "tokenizer.json", unreadable)) {
    throw Error(
        Fault::model,
        folder.string(),
        "got a folder without tokenizer.json, expected a whole checkpoint; copy it from the "
        "model's repository"
    );
  }
}

}  // namespace

Frontend load_frontend(const std::filesystem::path& folder) {
  ModelConfig config = read_model_config(folder);
  const Family& family = find_family(config.model_type);
  ModelShape shape = family.shape(config);
  std::optional<MediaRules> media = media_rules(family, config);
  require_tokenizer(folder);
  Tokenizer tokenizer = Tokenizer::load(folder);
  std::optional<ImageProcessor> images;
  std::optional<VideoProcessor> videos;
  if (media) {
    images = read_image_processor(folder, media->image_bounds);
    require_layout(*images, media->layout, "preprocessor_config.json");
    videos = read_video_processor(folder, media->video);
    require_layout(videos->pixels, media->layout, "video_preprocessor_config.json");
  }
  std::vector<int32_t> stop_ids = all_stop_ids(config, tokenizer);
  return {
      std::move(config),
      &family,
      shape,
      media,
      std::move(tokenizer),
      images,
      videos,
      std::move(stop_ids)
  };
}

}  // namespace whimbrel
