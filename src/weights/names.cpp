#include "weights/names.h"

#include <array>

namespace whimbrel {

namespace {

struct Rename {
  std::string_view from;
  std::string_view to;
};

// Every spelling of hub files, old and new, and of MLX conversions, as prefixes.
constexpr std::array<Rename, 5> kPrefixes = {{
    {"model.visual.", "visual."},
    {"vision_tower.", "visual."},
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head", "lm_head"},
}};

constexpr Rename kExperts = {".mlp.switch_mlp.", ".mlp.experts."};

bool rename_prefix(std::string& name) {
  for (const Rename& rename : kPrefixes) {
    if (name.starts_with(rename.from)) {
      name.replace(0, rename.from.size(), rename.to);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string canonical_name(std::string_view checkpoint_name) {
  std::string name(checkpoint_name);
  while (rename_prefix(name)) {
  }
  for (size_t at = name.find(kExperts.from); at != std::string::npos;
       at = name.find(kExperts.from)) {
    name.replace(at, kExperts.from.size(), kExperts.to);
  }
  return name;
}

bool is_ignored_tensor(std::string_view canonical_name) {
  return canonical_name.ends_with(".rotary_emb.inv_freq") ||
         canonical_name.ends_with(".rotary_pos_emb.inv_freq");
}

}  // namespace whimbrel
