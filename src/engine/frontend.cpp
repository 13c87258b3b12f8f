#include "engine/frontend.h"

#include <algorithm>

#include "base/error.h"

namespace whimbrel {

namespace {

void require_layout(const ImageProcessor& processor, const PatchLayout& layout) {
  const auto require = [](std::string_view key, int found, int expected) {
    if (found != expected) {
      throw Error(
          Fault::model,
          "preprocessor_config.json",
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

}  // namespace

Frontend load_frontend(const std::filesystem::path& folder) {
  ModelConfig config = read_model_config(folder);
  const Family& family = find_family(config.model_type);
  ModelShape shape = family.shape(config);
  PromptRules rules = family.prompt_rules(config);
  Tokenizer tokenizer = Tokenizer::load(folder);
  ImageProcessor processor = read_image_processor(folder, rules.image_bounds);
  require_layout(processor, rules.layout);
  std::vector<int32_t> stop_ids = all_stop_ids(config, tokenizer);
  return {
      std::move(config), &family, shape, rules, std::move(tokenizer), processor, std::move(stop_ids)
  };
}

}  // namespace whimbrel
