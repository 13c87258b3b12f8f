#include "weights/quantization.h"

#include <algorithm>
#include <array>

#include "weights/names.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

constexpr std::array<int64_t, 6> kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array<int64_t, 3> kGroupSizes = {32, 64, 128};

std::optional<int> read_choice(
    const Json& block,
    std::string_view key,
    bool (*allowed)(int64_t),
    std::string_view choices,
    const JsonSource& source
) {
  if (!has_value(block, key)) {
    return std::nullopt;
  }
  const int64_t value = get_int(block, key, source);
  if (!allowed(value)) {
    throw Error(
        source.fault, source.where, "got \"{}\": {}, expected one of {}", key, value, choices
    );
  }
  return static_cast<int>(value);
}

QuantizationConfig read_setting(const Json& block, const JsonSource& source) {
  if (has_value(block, "mode")) {
    const std::string mode = get_string(block, "mode", source);
    if (mode != "affine") {
      throw Error(
          source.fault,
          source.where,
          "got weights quantised in mode {}, expected \"affine\", the only mode supported; take "
          "another conversion of this model",
          quote(mode)
      );
    }
  }
  return {
      .bits = read_choice(block, "bits", is_affine_bits, "2, 3, 4, 5, 6, 8", source),
      .group_size = read_choice(block, "group_size", is_affine_group_size, "32, 64, 128", source),
  };
}

bool is_setting_key(std::string_view key) {
  return key == "bits" || key == "group_size" || key == "mode";
}

const Json& quantization_block(const Json& root, const JsonSource& source) {
  const Json& block = get_object_or_empty(root, "quantization", source);
  const Json& twin = get_object_or_empty(root, "quantization_config", source);
  if (!block.empty() && !twin.empty() && block != twin) {
    throw Error(
        source.fault,
        source.where,
        "got \"quantization\" and \"quantization_config\" that differ, expected them equal"
    );
  }
  return block.empty() ? twin : block;
}

}  // namespace

bool is_affine_bits(int64_t bits) {
  return std::find(kBits.begin(), kBits.end(), bits) != kBits.end();
}

bool is_affine_group_size(int64_t group_size) {
  return std::find(kGroupSizes.begin(), kGroupSizes.end(), group_size) != kGroupSizes.end();
}

QuantizationTable::QuantizationTable(const Json& root, const JsonSource& source) {
  const Json& block = quantization_block(root, source);
  if (block.empty()) {
    return;
  }
  global_ = read_setting(block, source);
  for (const auto& [key, value] : block.items()) {
    if (!is_setting_key(key)) {
      add_override(key, value, source);
    }
  }
}

void QuantizationTable::add_override(
    const std::string& path, const Json& value, const JsonSource& source
) {
  const JsonSource place{
      fmt::format("{}: quantization of {}", source.where, quote(path)), source.fault
  };
  std::optional<QuantizationConfig> setting;
  if (value.is_object()) {
    for (const auto& [key, unused] : value.items()) {
      if (!is_setting_key(key)) {
        throw Error(
            place.fault, place.where, "got the key {}, expected bits, group_size, mode", quote(key)
        );
      }
    }
    setting = read_setting(value, place);
  } else if (value.is_boolean()) {
    setting = value.get<bool>() ? global_ : std::nullopt;
  } else {
    throw Error(
        place.fault,
        place.where,
        "got {}, expected an object of bits, group_size and mode, or false",
        short_json(value)
    );
  }
  const auto [found, is_new] = modules_.try_emplace(canonical_name(path), setting);
  if (!is_new && found->second != setting) {
    throw Error(
        place.fault,
        place.where,
        "got a second, different setting under another name of this module, expected one"
    );
  }
}

std::optional<QuantizationConfig> QuantizationTable::find(std::string_view canonical_module) const {
  const auto found = modules_.find(std::string(canonical_module));
  return found == modules_.end() ? global_ : found->second;
}

}  // namespace whimbrel
