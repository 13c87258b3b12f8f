#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"

namespace whimbrel {

/// What config.json says about the quantisation of a module. Only MLX's affine mode is read:
/// weight = scale * q + bias, with a scale and a bias for each group of columns.
struct QuantizationConfig {
  std::optional<int> bits;        // 2, 3, 4, 5, 6 or 8; nothing: the shapes decide
  std::optional<int> group_size;  // 32, 64 or 128; nothing: the shapes decide

  bool operator==(const QuantizationConfig&) const = default;
};

/// config.json's "quantization" block (or its double, "quantization_config"): one setting for all
/// modules, and overrides of single modules. Which modules are quantised is not said here but by
/// the tensors: a module is quantised if and only if it has `.scales`.
class QuantizationTable {
 public:
  /// The table of a checkpoint without such a block.
  QuantizationTable() = default;

  /// `root` is all of config.json. Overrides may name their modules as the hub or as MLX does.
  /// Throws Error(Fault::model) on modes other than affine (mxfp4, mxfp8, nvfp4 ...), on bits and
  /// group sizes that don't exist, on unknown keys, and on two names of one module that disagree.
  QuantizationTable(const Json& root, const JsonSource& source);

  /// The setting of a module by its canonical path, such as "model.layers.0.mlp.down_proj".
  /// Nothing where config.json has no such block or says false for this module.
  std::optional<QuantizationConfig> find(std::string_view canonical_module) const;

 private:
  void add_override(const std::string& path, const Json& value, const JsonSource& source);

  std::optional<QuantizationConfig> global_;
  std::unordered_map<std::string, std::optional<QuantizationConfig>> modules_;
};

/// True where MLX's affine mode has such codes, and such groups.
bool is_affine_bits(int64_t bits);
bool is_affine_group_size(int64_t group_size);

}  // namespace whimbrel
