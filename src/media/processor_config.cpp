#include "media/processor_config.h"

#include <string>

#include "base/file.h"

namespace whimbrel {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;
constexpr int kBicubic = 3;  // Pillow's number, which configs use

std::optional<Json> read_json(const fs::path& path) {
  const std::optional<std::string> text = read_file_if_present(path, Fault::model, kMaxConfigBytes);
  if (!text) {
    return std::nullopt;
  }
  Json json = parse_json(*text, path.string(), Fault::model);
  if (!json.is_object()) {
    throw Error(Fault::model, path.string(), "got JSON that is no object, expected an object");
  }
  return json;
}

std::optional<ProcessorConfig> find_nested(const fs::path& folder, std::string_view key) {
  const fs::path file = folder / "processor_config.json";
  const std::optional<Json> json = read_json(file);
  if (!json || !has_value(*json, key)) {
    return std::nullopt;
  }
  const JsonSource source{file.string()};
  return ProcessorConfig{get_object_or_empty(*json, key, source), source};
}

std::optional<ProcessorConfig> find_plain(const fs::path& folder, std::string_view name) {
  const fs::path file = folder / name;
  std::optional<Json> json = read_json(file);
  if (!json) {
    return std::nullopt;
  }
  return ProcessorConfig{std::move(*json), {file.string()}};
}

void refuse_other_steps(const Json& config, const JsonSource& source) {
  for (const std::string_view step : {"do_resize", "do_rescale", "do_normalize"}) {
    if (!get_bool_or(config, step, true, source)) {
      throw Error(
          source.fault,
          source.where,
          "got \"{}\": false, expected true: pictures are always resized, rescaled and normalised",
          step
      );
    }
  }
  const int64_t filter = get_int_or(config, "resample", kBicubic, source, 0);
  if (filter != kBicubic) {
    throw Error(
        source.fault,
        source.where,
        "got \"resample\": {}, expected {} (bicubic), the only filter there is",
        filter,
        kBicubic
    );
  }
}

int get_size(const Json& config, std::string_view key, const JsonSource& source, int64_t max) {
  return static_cast<int>(get_int(config, key, source, 1, max));
}

std::array<float, 3> get_channels(
    const Json& config, std::string_view key, const JsonSource& source
) {
  const Json list = has_value(config, key) ? config.at(std::string(key)) : Json();
  std::array<float, 3> channels{};
  if (!list.is_array() || list.size() != channels.size()) {
    throw Error(
        source.fault, source.where, "got \"{}\": {}, expected three numbers", key, list.dump()
    );
  }
  for (size_t i = 0; i < channels.size(); ++i) {
    channels[i] = static_cast<float>(get_number(Json{{key, list[i]}}, key, source));
  }
  return channels;
}

// One bound: its own key, then its entry in "size", then the family's value.
int64_t get_bound(
    const Json& config,
    std::string_view key,
    std::string_view edge,
    const std::optional<int64_t>& fallback,
    const JsonSource& source
) {
  if (has_value(config, key)) {
    return get_int(config, key, source);
  }
  if (has_value(config, "size")) {
    return get_int(get_object_or_empty(config, "size", source), edge, source);
  }
  if (!fallback) {
    throw Error(
        source.fault, source.where, "got neither \"{}\" nor \"size\", expected one of them", key
    );
  }
  return *fallback;
}

void check_scale(const ImageProcessor& processor, const JsonSource& source) {
  for (const float deviation : processor.image_std) {
    if (!(deviation > 0)) {
      throw Error(
          source.fault, source.where, "got {} in \"image_std\", expected over 0", deviation
      );
    }
  }
  if (!(processor.rescale_factor > 0)) {
    throw Error(
        source.fault,
        source.where,
        "got \"rescale_factor\": {}, expected over 0",
        processor.rescale_factor
    );
  }
}

void check_bounds(const ImageProcessor& processor, const JsonSource& source) {
  if (processor.min_pixels > processor.max_pixels) {
    throw Error(
        source.fault,
        source.where,
        "got min_pixels {} over max_pixels {}, expected it at or below",
        processor.min_pixels,
        processor.max_pixels
    );
  }
}

}  // namespace

ProcessorConfig find_image_config(const fs::path& folder) {
  if (std::optional<ProcessorConfig> nested = find_nested(folder, "image_processor")) {
    return *nested;
  }
  if (std::optional<ProcessorConfig> plain = find_plain(folder, "preprocessor_config.json")) {
    return *plain;
  }
  throw Error(
      Fault::model,
      folder.string(),
      "got no preprocessor_config.json and no processor_config.json with an image_processor, "
      "expected one; copy it from the model's repository"
  );
}

ProcessorConfig find_video_config(const fs::path& folder) {
  if (std::optional<ProcessorConfig> nested = find_nested(folder, "video_processor")) {
    return *nested;
  }
  if (std::optional<ProcessorConfig> plain = find_plain(folder, "video_preprocessor_config.json")) {
    return *plain;
  }
  return find_image_config(folder);
}

ImageProcessor parse_processor(
    const ProcessorConfig& found, const std::optional<PixelBounds>& fallback
) {
  const Json& config = found.config;
  const JsonSource& source = found.source;
  refuse_other_steps(config, source);
  std::optional<int64_t> fallback_min;
  std::optional<int64_t> fallback_max;
  if (fallback) {
    fallback_min = fallback->min_pixels;
    fallback_max = fallback->max_pixels;
  }
  const ImageProcessor processor{
      .patch_size = get_size(config, "patch_size", source, 1024),
      .merge_size = get_size(config, "merge_size", source, 64),
      .temporal_patch_size = get_size(config, "temporal_patch_size", source, 64),
      .min_pixels = get_bound(config, "min_pixels", "shortest_edge", fallback_min, source),
      .max_pixels = get_bound(config, "max_pixels", "longest_edge", fallback_max, source),
      .image_mean = get_channels(config, "image_mean", source),
      .image_std = get_channels(config, "image_std", source),
      .rescale_factor = get_number_or(config, "rescale_factor", 1.0 / 255.0, source),
  };
  check_scale(processor, source);
  check_bounds(processor, source);
  return processor;
}

}  // namespace whimbrel
