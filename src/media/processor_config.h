#pragma once

#include <filesystem>
#include <optional>

#include "base/json.h"
#include "media/image_processor.h"

namespace whimbrel {

/// A processor's object in a checkpoint's files, and where it stands.
struct ProcessorConfig {
  Json config;
  JsonSource source;
};

/// `image_processor` of processor_config.json, otherwise preprocessor_config.json (transformers'
/// order). Throws Error(Fault::model) where there is neither.
ProcessorConfig find_image_config(const std::filesystem::path& folder);

/// `video_processor` of processor_config.json, then video_preprocessor_config.json, then what
/// find_image_config finds (transformers' order).
ProcessorConfig find_video_config(const std::filesystem::path& folder);

/// The keys that pictures and videos share. Throws Error(Fault::model) as read_image_processor
/// does.
ImageProcessor parse_processor(
    const ProcessorConfig& found, const std::optional<PixelBounds>& fallback
);

}  // namespace whimbrel
