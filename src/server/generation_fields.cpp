#include "server/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "media/image_limits.h"
#include "media/video_sampling.h"

namespace whimbrel::wire {

namespace {

constexpr double kLeastTopP = 1e-9;
constexpr int kMostTopK = 1'000'000'000;

/// The id of a logit_bias key: decimal digits and nothing else, so that no id has two spellings.
int32_t read_token_id(const std::string& key, const std::string& where) {
  int32_t id = -1;
  const char* end = key.data() + key.size();
  const auto [last, error] = std::from_chars(key.data(), end, id);
  if (error != std::errc() || last != end || id < 0 || std::to_string(id) != key) {
    refuse(where, fmt::format("the key {}", shown(Json(key))), "a token's id in decimal digits");
  }
  return id;
}

std::vector<std::pair<int32_t, float>> read_logit_bias(
    Fields& fields, const RequestLimits& limits
) {
  std::vector<std::pair<int32_t, float>> biases;
  const std::optional<Field> field = fields.find("logit_bias");
  if (!field) {
    return biases;
  }
  if (!field->value.is_object()) {
    refuse(field->path, shown(field->value), "an object from token ids to numbers");
  }
  if (std::ssize(field->value) > limits.logit_bias) {
    refuse(
        field->path,
        fmt::format("{} tokens", field->value.size()),
        fmt::format("at most {}", limits.logit_bias)
    );
  }
  for (const auto& item : field->value.items()) {
    const int32_t id = read_token_id(item.key(), field->path);
    const double bias = to_number({item.value(), field->path + "." + item.key()}, -100, 100);
    biases.emplace_back(id, static_cast<float>(bias));
  }
  return biases;
}

std::optional<uint64_t> read_seed(Fields& fields) {
  const std::optional<int64_t> seed = fields.integer(
      "seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()
  );
  if (!seed || *seed == -1) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(*seed);
}

std::optional<int> read_top_k(Fields& fields) {
  const std::optional<int64_t> top_k = fields.integer("top_k", -1, kMostTopK);
  return top_k ? std::optional(static_cast<int>(std::max<int64_t>(*top_k, 0))) : std::nullopt;
}

/// Of two names of one field, which may not contradict each other.
std::optional<double> read_repetition_penalty(Fields& fields) {
  const std::optional<double> value = fields.number("repetition_penalty", 0.01, 100);
  const std::optional<double> alias = fields.number("repeat_penalty", 0.01, 100);
  if (value && alias && *value != *alias) {
    refuse("repeat_penalty", fmt::to_string(*alias), "the value of repetition_penalty, or none");
  }
  return value ? value : alias;
}

SamplingOverrides read_sampling(Fields& fields, const RequestLimits& limits) {
  SamplingOverrides sampling;
  sampling.temperature = fields.number("temperature", 0, 100);
  sampling.top_k = read_top_k(fields);
  sampling.top_p = read_top_p(fields);
  sampling.min_p = fields.number("min_p", 0, 1);
  sampling.repetition_penalty = read_repetition_penalty(fields);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2);
  sampling.logit_bias = read_logit_bias(fields, limits);
  sampling.seed = read_seed(fields);
  return sampling;
}

std::optional<int> read_max_tokens(Fields& fields, std::string_view key) {
  const std::optional<int64_t> tokens = fields.integer(key, -1);
  if (tokens && *tokens == 0) {
    refuse(fields.path_of(key), "0", "at least 1, or -1 for the rest of the context");
  }
  return tokens ? std::optional(static_cast<int>(*tokens)) : std::nullopt;
}

bool read_include_usage(Fields& fields) {
  const std::optional<Field> options = fields.find("stream_options");
  return options && Fields(options->value, options->path).boolean("include_usage").value_or(false);
}

std::optional<int> narrowed(std::optional<int64_t> value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

WhimbrelFields read_whimbrel(Fields& fields) {
  WhimbrelFields read;
  const std::optional<Field> field = fields.find("whimbrel");
  if (!field) {
    return read;
  }
  constexpr int64_t kMostPixels = ImageLimits{}.max_pixels;
  constexpr int64_t kMostImageTokens = 65536;
  constexpr double kLeastFps = 1e-4;
  constexpr double kMostFps = 1000;
  Fields ours(field->value, field->path);
  read.details = ours.boolean("details").value_or(false);
  read.media.min_pixels = ours.integer("min_pixels", 1, kMostPixels);
  read.media.max_pixels = ours.integer("max_pixels", 1, kMostPixels);
  read.media.image_tokens = narrowed(ours.integer("image_tokens", 1, kMostImageTokens));
  read.media.fps = ours.number("fps", kLeastFps, kMostFps);
  read.media.max_frames = narrowed(ours.integer("max_frames", 1, kMaxVideoFrames));
  for (const std::string& key : ours.unread()) {
    refuse(
        field->path,
        "the field " + shown(Json(key)),
        "details, min_pixels, max_pixels, image_tokens, fps or max_frames"
    );
  }
  return read;
}

}  // namespace

std::optional<double> read_top_p(Fields& fields) {
  const std::optional<double> top_p = fields.number("top_p", 0, 1);
  return top_p ? std::optional(std::max(*top_p, kLeastTopP)) : std::nullopt;
}

std::vector<std::string> read_stops(
    Fields& fields, std::string_view key, const RequestLimits& limits
) {
  const std::optional<Field> field = fields.find(key);
  if (!field) {
    return {};
  }
  if (!field->value.is_string() && !field->value.is_array()) {
    refuse(field->path, shown(field->value), "a string, a list of strings or null");
  }
  const Json list = field->value.is_string() ? Json::array({field->value}) : field->value;
  if (std::ssize(list) > limits.stops) {
    refuse(
        field->path, fmt::format("{} texts", list.size()), fmt::format("at most {}", limits.stops)
    );
  }
  std::vector<std::string> stops;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool is_single = field->value.is_string();
    const std::string path = is_single ? field->path : fmt::format("{}[{}]", field->path, i);
    const std::string& stop = to_text({list[i], path});
    if (stop.empty() || std::ssize(stop) > limits.stop_bytes) {
      refuse(
          path,
          fmt::format("{} bytes", stop.size()),
          fmt::format("from 1 to {} bytes", limits.stop_bytes)
      );
    }
    stops.push_back(stop);
  }
  return stops;
}

void accept_without_effect(Fields& fields, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    fields.find(key);
  }
}

GenerationFields read_generation_fields(Fields& fields, const RequestLimits& limits) {
  GenerationFields read;
  read.model = fields.text("model").value_or("");
  read.sampling = read_sampling(fields, limits);
  const std::optional<int> legacy = read_max_tokens(fields, "max_tokens");
  const std::optional<int> current = read_max_tokens(fields, "max_completion_tokens");
  const std::optional<int> tokens = current ? current : legacy;
  read.max_tokens = tokens == -1 ? std::nullopt : tokens;
  read.choices = static_cast<int>(fields.integer("n", 1, limits.choices).value_or(1));
  read.stops = read_stops(fields, "stop", limits);
  read.stream = fields.boolean("stream").value_or(false);
  read.include_usage = read_include_usage(fields);
  read.return_progress = fields.boolean("return_progress").value_or(false);
  read.whimbrel = read_whimbrel(fields);
  return read;
}

}  // namespace whimbrel::wire
