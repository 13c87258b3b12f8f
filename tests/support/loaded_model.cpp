#include "tests/support/loaded_model.h"

#include <mlx/mlx.h>

#include <algorithm>

#include "base/file.h"
#include "tests/support/source_dir.h"
#include "text/chat_template.h"

namespace whimbrel::test {

LoadedModel::LoadedModel(const std::filesystem::path& folder, std::string_view ops)
    : frontend(load_frontend(folder)),
      checkpoint(frontend.config),
      engine(frontend, checkpoint, choose_ops(ops, checkpoint.summary()), LoadEvents{}) {}

LoadedModel::LoadedModel(const std::filesystem::path& folder, std::unique_ptr<const ops::Ops> ops)
    : frontend(load_frontend(folder)),
      checkpoint(frontend.config),
      engine(frontend, checkpoint, std::move(ops), LoadEvents{}) {}

Prompt LoadedModel::prompt(
    const std::vector<std::string>& pictures, const std::string& text
) const {
  ChatInput input;
  Json content = Json::array();
  for (const std::string& picture : pictures) {
    content.push_back(Json::object({{"type", "image"}}));
    const std::filesystem::path file = source_dir() / picture;
    input.media.push_back({.source = picture, .bytes = read_file(file, Fault::input)});
  }
  content.push_back(Json::object({{"type", "text"}, {"text", text}}));
  input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
  const ChatTemplate chat_template = ChatTemplate::load(frontend.config.folder, frontend.tokenizer);
  return prepare_chat(frontend, chat_template, input).prompt;
}

std::vector<nn::Features> LoadedModel::encode(const Prompt& prompt) const {
  std::vector<nn::Features> features;
  for (const MediaSpan& span : prompt.media) {
    features.push_back(model().encode(span.patches));
  }
  return features;
}

mx::array run_chunks(
    const Model& model,
    const Prompt& prompt,
    std::span<const nn::Features> features,
    nn::KVCache& cache,
    int first,
    int end,
    int size
) {
  std::vector<mx::array> parts;
  for (int at = first; at < end; at += size) {
    const int until = std::min(at + size, end);
    const mx::array hidden = model.forward(prompt_chunk(prompt, features, at, until), cache);
    parts.push_back(mx::astype(model.logits(hidden), mx::float32));
  }
  mx::array logits = mx::concatenate(parts, 0);
  logits.eval();
  return logits;
}

Prompt followed_by(const Prompt& prompt, const std::vector<int32_t>& ids) {
  Prompt longer = prompt;
  for (const int32_t id : ids) {
    const int32_t position = longer.tokens() + prompt.positions.delta;
    longer.ids.push_back(id);
    for (std::vector<int32_t>& axis : longer.positions.axes) {
      axis.push_back(position);
    }
  }
  return longer;
}

float largest_difference(const mx::array& a, const mx::array& b) {
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

}  // namespace whimbrel::test
