#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace whimbrel {

/// What the JSON files of a checkpoint folder say.
struct ModelConfig {
  std::filesystem::path folder;
  std::string model_type;
  Json root;        // config.json as it is
  Json text;        // text_config over root: a root key counts where text_config has none or null
  Json vision;      // vision_config, an empty object where there is none
  Json generation;  // generation_config.json, an empty object where there is none

  /// Ids that end an answer: all of generation_config.json, config.json's root and its text_config,
  /// in this order, each once. The tokenizer's own end token is still to be added.
  std::vector<int64_t> eos_token_ids;

  /// For errors about keys of config.json.
  JsonSource source() const;
};

/// Reads config.json and generation_config.json of a folder, flat or nested. Throws
/// Error(Fault::model) where the folder or config.json is missing, model_type is missing, weights
/// are quantised by a foreign method (quant_method: awq, gptq, fp8, ...), or sliding window
/// attention is switched on.
ModelConfig read_model_config(const std::filesystem::path& folder);

/// The same of config.json's object where no file holds it; `name` stands for the folder in error
/// texts.
ModelConfig make_model_config(const std::string& name, Json root);

/// Rotary embedding of the text decoder.
struct RopeConfig {
  double theta;
  std::vector<int> mrope_section;         // {t, h, w}, sum head_dim / 2; empty: no M-RoPE stated
  std::optional<bool> mrope_interleaved;  // nothing where no key says so
};

/// Reads rope_parameters or rope_scaling (either spelling of type and theta) from config.text.
/// Throws Error(Fault::model) on any frequency scaling (yarn, linear, dynamic, llama3 ...), on a
/// partial rotary factor, on two places that disagree, and on sections that don't add up to
/// head_dim / 2.
RopeConfig read_rope(const Json& text, int64_t head_dim, const JsonSource& source);

/// Heads of the text decoder's attention.
struct AttentionShape {
  int64_t heads;     // num_attention_heads
  int64_t kv_heads;  // num_key_value_heads, or heads where absent
  int64_t head_dim;  // head_dim, or hidden_size / heads where absent; even
};

/// Throws Error(Fault::model) naming the key where counts don't divide, or where layer_types holds
/// anything but num_hidden_layers times "full_attention".
AttentionShape read_attention_shape(const Json& text, const JsonSource& source);

}  // namespace whimbrel
