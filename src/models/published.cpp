#include "models/published.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int64_t kGroupSize = 64;
constexpr int kRouterBits = 8;

/// A seed for a name (FNV-1a).
uint64_t seed_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : name) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
  }
  return hash;
}

/// Notes a model's tensors by their canonical names, with bounds that keep the variance of what
/// goes through a layer near 1.
class Outline {
 public:
  /// `bits` of the text decoder's matrices; 0: bf16.
  explicit Outline(int bits) : bits_(bits) {}

  void norm(const std::string& path, int64_t width, bool bias = false) {
    values(path + ".weight", {width}, 0.75, 1.25);
    if (bias) {
      values(path + ".bias", {width}, -0.1, 0.1);
    }
  }

  /// Plain [..., out, in].
  void plain(const std::string& path, const std::vector<int64_t>& shape, bool bias = false) {
    const double bound = std::sqrt(3.0 / static_cast<double>(shape.back()));
    values(path + ".weight", shape, -bound, bound);
    if (bias) {
      values(path + ".bias", {shape[shape.size() - 2]}, -0.1, 0.1);
    }
  }

  /// In the text decoder's form.
  void matrix(const std::string& path, const std::vector<int64_t>& shape, bool bias = false) {
    packed_or_plain(path, shape, bits_);
    if (bias) {
      values(path + ".bias", {shape[shape.size() - 2]}, -0.1, 0.1);
    }
  }

  void router(const std::string& path, const std::vector<int64_t>& shape) {
    packed_or_plain(path, shape, bits_ == 0 ? 0 : kRouterBits);
  }

  /// The kernel of a patch embedding, [out, channels, time, height, width].
  void kernel(const std::string& path, const std::vector<int64_t>& shape, bool bias) {
    const int64_t in =
        std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies());
    const double bound = std::sqrt(3.0 / static_cast<double>(in));
    values(path + ".weight", shape, -bound, bound);
    if (bias) {
      values(path + ".bias", {shape[0]}, -0.1, 0.1);
    }
  }

  std::vector<RandomTensor> take() { return std::move(tensors_); }

 private:
  void values(const std::string& name, std::vector<int64_t> shape, double low, double high) {
    tensors_.push_back({
        .name = name,
        .dtype = StoredDtype::bf16,
        .shape = std::move(shape),
        .low = low,
        .high = high,
        .seed = seed_of(name),
    });
  }

  void packed_or_plain(const std::string& path, const std::vector<int64_t>& shape, int bits) {
    if (bits == 0) {
      plain(path, shape);
    } else {
      packed(path, shape, bits);
    }
  }

  /// Codes from 0 to 2^bits - 1, all as likely; scales that bring their spread to that of a plain
  /// matrix, a tenth to and fro; and offsets that put each group's middle at 0: the seed of scales
  /// and offsets is the same.
  void packed(const std::string& path, std::vector<int64_t> shape, int bits) {
    const auto in = static_cast<double>(shape.back());
    const double levels = std::ldexp(1.0, bits);
    const double spread = std::sqrt((levels * levels - 1) / 12);
    const double scale = 1 / (std::sqrt(in) * spread);
    std::vector<int64_t> groups = shape;
    groups.back() = shape.back() / kGroupSize;
    shape.back() = shape.back() * bits / 32;
    tensors_.push_back({
        .name = path + ".weight",
        .dtype = StoredDtype::u32,
        .shape = std::move(shape),
        .seed = seed_of(path),
    });
    const auto per_group = [&](std::string_view name, double middle) {
      values(fmt::format("{}.{}", path, name), groups, 0.9 * middle, 1.1 * middle);
      tensors_.back().seed = seed_of(path + " groups");
    };
    per_group("scales", scale);
    per_group("biases", -scale * (levels - 1) / 2);
  }

  int bits_;
  std::vector<RandomTensor> tensors_;
};

int64_t size_at(const Json& object, const char* key) {
  return object.at(key).get<int64_t>();
}

/// What the families' text decoders differ in.
struct TextTraits {
  bool qkv_bias;
  bool head_norms;
};

void outline_attention(
    Outline& outline, const std::string& layer, const Json& text, const TextTraits& traits
) {
  const int64_t hidden = size_at(text, "hidden_size");
  const int64_t heads = size_at(text, "num_attention_heads");
  const int64_t head_dim = text.value("head_dim", hidden / heads);
  const int64_t kv_width = size_at(text, "num_key_value_heads") * head_dim;
  const std::string attention = layer + ".self_attn";
  outline.norm(layer + ".input_layernorm", hidden);
  outline.matrix(attention + ".q_proj", {heads * head_dim, hidden}, traits.qkv_bias);
  outline.matrix(attention + ".k_proj", {kv_width, hidden}, traits.qkv_bias);
  outline.matrix(attention + ".v_proj", {kv_width, hidden}, traits.qkv_bias);
  outline.matrix(attention + ".o_proj", {hidden, heads * head_dim});
  if (traits.head_norms) {
    outline.norm(attention + ".q_norm", head_dim);
    outline.norm(attention + ".k_norm", head_dim);
  }
}

void outline_mlp(Outline& outline, const std::string& mlp, const Json& text) {
  const int64_t hidden = size_at(text, "hidden_size");
  if (!text.contains("num_experts")) {
    const int64_t width = size_at(text, "intermediate_size");
    outline.matrix(mlp + ".gate_proj", {width, hidden});
    outline.matrix(mlp + ".up_proj", {width, hidden});
    outline.matrix(mlp + ".down_proj", {hidden, width});
    return;
  }
  const int64_t experts = size_at(text, "num_experts");
  const int64_t width = size_at(text, "moe_intermediate_size");
  outline.router(mlp + ".gate", {experts, hidden});
  outline.matrix(mlp + ".experts.gate_proj", {experts, width, hidden});
  outline.matrix(mlp + ".experts.up_proj", {experts, width, hidden});
  outline.matrix(mlp + ".experts.down_proj", {experts, hidden, width});
}

void outline_text(Outline& outline, const Json& text, const TextTraits& traits) {
  const int64_t hidden = size_at(text, "hidden_size");
  const std::vector<int64_t> table = {size_at(text, "vocab_size"), hidden};
  outline.matrix("model.embed_tokens", table);
  for (int64_t i = 0; i < size_at(text, "num_hidden_layers"); ++i) {
    const std::string layer = fmt::format("model.layers.{}", i);
    outline_attention(outline, layer, text, traits);
    outline.norm(layer + ".post_attention_layernorm", hidden);
    outline_mlp(outline, layer + ".mlp", text);
  }
  outline.norm("model.norm", hidden);
  if (!text.at("tie_word_embeddings").get<bool>()) {
    outline.matrix("lm_head", table);
  }
}

void outline_patch_embedding(Outline& outline, const Json& vision, int64_t width, bool bias) {
  const int64_t patch = size_at(vision, "patch_size");
  const int64_t temporal = size_at(vision, "temporal_patch_size");
  outline.kernel("visual.patch_embed.proj", {width, 3, temporal, patch, patch}, bias);
}

void outline_block_attention(
    Outline& outline, const std::string& block, int64_t width, bool norm_bias
) {
  outline.norm(block + ".norm1", width, norm_bias);
  outline.norm(block + ".norm2", width, norm_bias);
  outline.plain(block + ".attn.qkv", {3 * width, width}, true);
  outline.plain(block + ".attn.proj", {width, width}, true);
}

void outline_merger(
    Outline& outline,
    const std::string& first,
    const std::string& second,
    int64_t merged,
    int64_t out
) {
  outline.plain(first, {merged, merged}, true);
  outline.plain(second, {out, merged}, true);
}

void outline_qwen2_tower(Outline& outline, const Json& vision) {
  const int64_t width = size_at(vision, "embed_dim");
  const int64_t inner = width * size_at(vision, "mlp_ratio");
  outline_patch_embedding(outline, vision, width, false);
  for (int64_t i = 0; i < size_at(vision, "depth"); ++i) {
    const std::string block = fmt::format("visual.blocks.{}", i);
    outline_block_attention(outline, block, width, true);
    outline.plain(block + ".mlp.fc1", {inner, width}, true);
    outline.plain(block + ".mlp.fc2", {width, inner}, true);
  }
  outline.norm("visual.merger.ln_q", width, true);
  const int64_t out = size_at(vision, "hidden_size");
  outline_merger(outline, "visual.merger.mlp.0", "visual.merger.mlp.2", 4 * width, out);
}

void outline_qwen2_5_tower(Outline& outline, const Json& vision) {
  const int64_t width = size_at(vision, "hidden_size");
  const int64_t inner = size_at(vision, "intermediate_size");
  outline_patch_embedding(outline, vision, width, false);
  for (int64_t i = 0; i < size_at(vision, "depth"); ++i) {
    const std::string block = fmt::format("visual.blocks.{}", i);
    outline_block_attention(outline, block, width, false);
    outline.plain(block + ".mlp.gate_proj", {inner, width}, true);
    outline.plain(block + ".mlp.up_proj", {inner, width}, true);
    outline.plain(block + ".mlp.down_proj", {width, inner}, true);
  }
  outline.norm("visual.merger.ln_q", width);
  const int64_t out = size_at(vision, "out_hidden_size");
  outline_merger(outline, "visual.merger.mlp.0", "visual.merger.mlp.2", 4 * width, out);
}

void outline_qwen3_tower(Outline& outline, const Json& vision) {
  const int64_t width = size_at(vision, "hidden_size");
  const int64_t inner = size_at(vision, "intermediate_size");
  const int64_t out = size_at(vision, "out_hidden_size");
  outline_patch_embedding(outline, vision, width, true);
  outline.plain("visual.pos_embed", {size_at(vision, "num_position_embeddings"), width});
  for (int64_t i = 0; i < size_at(vision, "depth"); ++i) {
    const std::string block = fmt::format("visual.blocks.{}", i);
    outline_block_attention(outline, block, width, true);
    outline.plain(block + ".mlp.linear_fc1", {inner, width}, true);
    outline.plain(block + ".mlp.linear_fc2", {width, inner}, true);
  }
  const auto merger = [&](const std::string& path, int64_t normed) {
    outline.norm(path + ".norm", normed, true);
    outline_merger(outline, path + ".linear_fc1", path + ".linear_fc2", 4 * width, out);
  };
  merger("visual.merger", width);
  for (size_t i = 0; i < vision.at("deepstack_visual_indexes").size(); ++i) {
    merger(fmt::format("visual.deepstack_merger_list.{}", i), 4 * width);
  }
}

/// How the tensors of a family are named.
struct FamilyOutline {
  TextTraits text;
  void (*tower)(Outline& outline, const Json& vision);  // null for a text model
};

const FamilyOutline& family_outline(const std::string& model_type) {
  constexpr TextTraits kBiased = {.qkv_bias = true, .head_norms = false};
  constexpr TextTraits kHeadNormed = {.qkv_bias = false, .head_norms = true};
  static const std::unordered_map<std::string, FamilyOutline> outlines = {
      {"qwen2", {kBiased, nullptr}},
      {"qwen2_vl", {kBiased, outline_qwen2_tower}},
      {"qwen2_5_vl", {kBiased, outline_qwen2_5_tower}},
      {"qwen3", {kHeadNormed, nullptr}},
      {"qwen3_vl", {kHeadNormed, outline_qwen3_tower}},
      {"qwen3_vl_moe", {kHeadNormed, outline_qwen3_tower}},
  };
  return outlines.at(model_type);
}

[[noreturn]] void throw_unknown(std::string_view dims) {
  std::vector<std::string_view> names;
  for (const PublishedDims& known : published_dims()) {
    names.push_back(known.name);
  }
  throw Error(
      Fault::usage,
      "--dims",
      "got \"{}\", expected one of {}, alone or with :4bit, :8bit or :bf16 behind it",
      dims,
      fmt::join(names, ", ")
  );
}

/// Bits of a form's name, 0 for bf16; nothing for an unknown one.
std::optional<int> form_bits(std::string_view form) {
  if (form == "bf16") {
    return 0;
  }
  return form == "4bit" ? std::optional(4) : form == "8bit" ? std::optional(8) : std::nullopt;
}

Json quantization(int bits, const Json& text) {
  Json block = {{"group_size", kGroupSize}, {"bits", bits}, {"mode", "affine"}};
  if (bits != kRouterBits && text.contains("num_experts")) {
    Json router = block;
    router["bits"] = kRouterBits;
    for (int64_t i = 0; i < size_at(text, "num_hidden_layers"); ++i) {
      block[fmt::format("model.layers.{}.mlp.gate", i)] = router;
    }
  }
  return block;
}

ModelConfig config_of(const PublishedDims& dims, int bits) {
  Json root = parse_json(dims.config, dims.name, Fault::model);
  Json& text = root.contains("text_config") ? root["text_config"] : root;
  text["num_hidden_layers"] = dims.kept_layers;
  if (bits != 0) {
    root["quantization"] = quantization(bits, Json(text));
  }
  return make_model_config(std::string(dims.name), std::move(root));
}

}  // namespace

Checkpoint RandomModel::checkpoint() const {
  std::vector<TensorInfo> infos;
  std::unordered_map<std::string, RandomTensor> by_name;
  for (const RandomTensor& tensor : tensors) {
    infos.push_back(tensor_info(tensor));
    by_name.emplace(tensor.name, tensor);
  }
  const auto make = [by_name = std::move(by_name)](const TensorInfo& info) {
    return random_array(by_name.at(info.name));
  };
  return {config, std::move(infos), make};
}

RandomModel random_model(std::string_view dims) {
  const size_t colon = dims.find(':');
  const std::string_view name = dims.substr(0, colon);
  const std::string_view form = colon == std::string_view::npos ? "4bit" : dims.substr(colon + 1);
  const std::optional<int> bits = form_bits(form);
  const auto found = std::ranges::find(published_dims(), name, &PublishedDims::name);
  if (!bits || found == published_dims().end()) {
    throw_unknown(dims);
  }
  RandomModel model{
      .name = std::string(name),
      .weights = std::string(form),
      .layers = found->layers,
      .kept_layers = found->kept_layers,
      .config = config_of(*found, *bits),
  };
  const FamilyOutline& family = family_outline(model.config.model_type);
  Outline outline(*bits);
  outline_text(outline, model.config.text, family.text);
  if (family.tower != nullptr) {
    family.tower(outline, model.config.vision);
  }
  model.tensors = outline.take();
  return model;
}

}  // namespace whimbrel
