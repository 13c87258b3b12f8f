#include "weights/config.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "base/file.h"
#include "weights/quote.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
// Three times the largest real file, one with a quantisation override for each module.
constexpr JsonLimits kConfigLimits = {.depth = 16, .nodes = 30'000};
constexpr int64_t kMaxHeads = 4096;

void require_folder(const fs::path& folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (!fs::exists(status)) {
    throw Error(
        Fault::model,
        folder.string(),
        "got no such folder, expected one with a model in it; check the path"
    );
  }
  if (!fs::is_directory(status)) {
    throw Error(
        Fault::model,
        folder.string(),
        "got a file, expected the folder that holds config.json and the weights"
    );
  }
}

Json read_object(const fs::path& path, const std::string& bytes) {
  Json json = parse_json(bytes, path.string(), Fault::model, kConfigLimits);
  if (!json.is_object()) {
    throw Error(Fault::model, path.string(), "got JSON that is no object, expected an object");
  }
  return json;
}

Json read_root(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const std::optional<std::string> bytes =
      read_file_if_present(path, Fault::model, kMaxConfigBytes);
  if (!bytes) {
    throw Error(
        Fault::model,
        folder.string(),
        "got a folder without config.json, expected a Hugging Face or MLX checkpoint; name the "
        "folder that holds config.json, tokenizer.json and *.safetensors"
    );
  }
  return read_object(path, *bytes);
}

Json read_generation(const fs::path& folder) {
  const fs::path path = folder / "generation_config.json";
  const std::optional<std::string> bytes =
      read_file_if_present(path, Fault::model, kMaxConfigBytes);
  return bytes ? read_object(path, *bytes) : Json::object();
}

/// `over` put over `base`. A null is what a class default leaves behind in a saved file, so it
/// hides nothing.
Json merged(Json base, const Json& over) {
  for (const auto& [key, value] : over.items()) {
    if (!value.is_null() || !base.contains(key)) {
      base[key] = value;
    }
  }
  return base;
}

Json merged_text(const Json& root, const JsonSource& source) {
  Json text = merged(root, get_object_or_empty(root, "text_config", source));
  text.erase("text_config");
  text.erase("vision_config");
  return text;
}

std::string read_model_type(const Json& root, const JsonSource& source) {
  if (!has_value(root, "model_type")) {
    throw Error(
        source.fault,
        source.where,
        "got no \"model_type\", expected the name of the architecture; this is not the config.json "
        "of a model"
    );
  }
  return get_string(root, "model_type", source);
}

/// MLX's own block has no quant_method; every other method's has one.
void refuse_foreign_quantization(const Json& config, const JsonSource& source) {
  for (const std::string_view key : {"quantization_config", "quantization", "compression_config"}) {
    const Json& block = get_object_or_empty(config, key, source);
    if (has_value(block, "quant_method")) {
      throw Error(
          source.fault,
          source.where,
          "got weights quantised by {}, expected bf16, f16, f32 or MLX's affine quantisation; take "
          "the original model or an MLX conversion of it",
          quote(get_string(block, "quant_method", source))
      );
    }
  }
}

void refuse_sliding_window(const Json& text, const JsonSource& source) {
  if (get_bool_or(text, "use_sliding_window", false, source)) {
    throw Error(
        source.fault,
        source.where,
        "got \"use_sliding_window\": true, expected false; sliding window attention is not "
        "supported"
    );
  }
}

void add_end_ids(
    std::vector<int64_t>& ids, const Json& object, int64_t vocab_size, const JsonSource& source
) {
  for (const int64_t id : get_ints(object, "eos_token_id", source)) {
    if (id >= vocab_size) {
      throw Error(
          source.fault,
          source.where,
          "got \"eos_token_id\" {}, expected ids under the vocab_size of {}",
          id,
          vocab_size
      );
    }
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
      ids.push_back(id);
    }
  }
}

std::vector<int64_t> read_end_ids(const ModelConfig& config) {
  const JsonSource source = config.source();
  const int64_t vocab_size =
      get_int_or(config.text, "vocab_size", std::numeric_limits<int32_t>::max(), source);
  const JsonSource generation_source{(config.folder / "generation_config.json").string()};
  std::vector<int64_t> ids;
  add_end_ids(ids, config.generation, vocab_size, generation_source);
  add_end_ids(ids, config.root, vocab_size, source);
  add_end_ids(ids, config.text, vocab_size, source);
  return ids;
}

ModelConfig checked_config(const fs::path& folder, Json root, Json generation) {
  ModelConfig config;
  config.folder = folder;
  const JsonSource source = config.source();
  config.root = std::move(root);
  config.model_type = read_model_type(config.root, source);
  config.text = merged_text(config.root, source);
  config.vision = get_object_or_empty(config.root, "vision_config", source);
  config.generation = std::move(generation);
  refuse_foreign_quantization(config.root, source);
  refuse_foreign_quantization(config.text, source);
  refuse_sliding_window(config.text, source);
  config.eos_token_ids = read_end_ids(config);
  return config;
}

/// What rope_scaling (older) and rope_parameters (newer) say together. Files that say a thing in
/// both have to mean the same.
Json merged_rope(const Json& text, const JsonSource& source) {
  const Json& parameters = get_object_or_empty(text, "rope_parameters", source);
  const Json& scaling = get_object_or_empty(text, "rope_scaling", source);
  for (const std::string_view key : {"mrope_section", "mrope_interleaved", "rope_theta"}) {
    if (has_value(parameters, key) && has_value(scaling, key) &&
        parameters.at(std::string(key)) != scaling.at(std::string(key))) {
      throw Error(
          source.fault,
          source.where,
          "got two values of \"{}\", in rope_parameters and in rope_scaling, expected them equal",
          key
      );
    }
  }
  return merged(scaling, parameters);
}

void refuse_frequency_scaling(const Json& rope, const JsonSource& source) {
  for (const std::string_view key : {"rope_type", "type"}) {
    if (!has_value(rope, key)) {
      continue;
    }
    const std::string type = get_string(rope, key, source);
    if (type != "default" && type != "mrope") {
      throw Error(
          source.fault,
          source.where,
          "got \"{}\": {}, expected \"default\" or \"mrope\"; scaled rotary frequencies are not "
          "supported",
          key,
          quote(type)
      );
    }
  }
}

void refuse_partial_rotation(const Json& object, const JsonSource& source) {
  const double factor = get_number_or(object, "partial_rotary_factor", 1.0, source);
  if (factor != 1.0) {
    throw Error(
        source.fault,
        source.where,
        "got \"partial_rotary_factor\": {}, expected 1; partial rotation is not supported",
        factor
    );
  }
}

/// rope_theta inside the rope object (new spelling) or beside it (old one).
double read_theta(const Json& text, const Json& rope, const JsonSource& source) {
  const bool inside = has_value(rope, "rope_theta");
  const double theta = get_number(inside ? rope : text, "rope_theta", source);
  const double beside = get_number_or(text, "rope_theta", theta, source);
  if (theta <= 0 || beside != theta) {
    throw Error(
        source.fault,
        source.where,
        "got \"rope_theta\": {} and {}, expected one positive number",
        theta,
        beside
    );
  }
  return theta;
}

std::vector<int> read_mrope_section(const Json& rope, int64_t head_dim, const JsonSource& source) {
  if (!has_value(rope, "mrope_section")) {
    return {};
  }
  const std::vector<int64_t> section = get_ints(rope, "mrope_section", source, 1);
  const int64_t sum = std::accumulate(section.begin(), section.end(), int64_t{0});
  if (section.size() != 3 || sum != head_dim / 2) {
    throw Error(
        source.fault,
        source.where,
        "got \"mrope_section\": [{}], expected three numbers with the sum {} (half of head_dim {})",
        fmt::join(section, ", "),
        head_dim / 2,
        head_dim
    );
  }
  return {section.begin(), section.end()};
}

std::optional<bool> read_mrope_interleaved(const Json& rope, const JsonSource& source) {
  if (!has_value(rope, "mrope_interleaved")) {
    return std::nullopt;
  }
  return get_bool_or(rope, "mrope_interleaved", false, source);
}

int64_t read_head_dim(const Json& text, int64_t heads, const JsonSource& source) {
  if (has_value(text, "head_dim")) {
    return get_int(text, "head_dim", source);
  }
  const int64_t hidden_size = get_int(text, "hidden_size", source);
  if (hidden_size % heads != 0) {
    throw Error(
        source.fault,
        source.where,
        "got \"num_attention_heads\": {}, expected a divisor of hidden_size {}",
        heads,
        hidden_size
    );
  }
  return hidden_size / heads;
}

void require_full_attention(const Json& text, const JsonSource& source) {
  if (!has_value(text, "layer_types")) {
    return;
  }
  const Json& types = text.at("layer_types");
  const int64_t layers = get_int(text, "num_hidden_layers", source);
  const bool full = types.is_array() && std::ssize(types) == layers &&
                    std::all_of(types.begin(), types.end(), [](const Json& type) {
                      return type == "full_attention";
                    });
  if (!full) {
    throw Error(
        source.fault,
        source.where,
        "got \"layer_types\": {}, expected {} times \"full_attention\"",
        short_json(types),
        layers
    );
  }
}

}  // namespace

JsonSource ModelConfig::source() const {
  return {(folder / "config.json").string()};
}

ModelConfig read_model_config(const fs::path& folder) {
  require_folder(folder);
  return checked_config(folder, read_root(folder), read_generation(folder));
}

ModelConfig make_model_config(const std::string& name, Json root) {
  return checked_config(name, std::move(root), Json::object());
}

RopeConfig read_rope(const Json& text, int64_t head_dim, const JsonSource& source) {
  const Json rope = merged_rope(text, source);
  refuse_frequency_scaling(get_object_or_empty(text, "rope_parameters", source), source);
  refuse_frequency_scaling(get_object_or_empty(text, "rope_scaling", source), source);
  refuse_partial_rotation(text, source);
  refuse_partial_rotation(rope, source);
  return {
      .theta = read_theta(text, rope, source),
      .mrope_section = read_mrope_section(rope, head_dim, source),
      .mrope_interleaved = read_mrope_interleaved(rope, source),
  };
}

AttentionShape read_attention_shape(const Json& text, const JsonSource& source) {
  const int64_t heads = get_int(text, "num_attention_heads", source, 1, kMaxHeads);
  const int64_t kv_heads = get_int_or(text, "num_key_value_heads", heads, source, 1, kMaxHeads);
  if (heads % kv_heads != 0) {
    throw Error(
        source.fault,
        source.where,
        "got \"num_key_value_heads\": {}, expected a divisor of num_attention_heads {}",
        kv_heads,
        heads
    );
  }
  const int64_t head_dim = read_head_dim(text, heads, source);
  if (head_dim % 2 != 0) {
    throw Error(source.fault, source.where, "got a head_dim of {}, expected an even one", head_dim);
  }
  require_full_attention(text, source);
  return {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
}

}  // namespace whimbrel
