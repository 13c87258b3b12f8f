#include "text/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "text/textkit_handle.h"
#include "text/tokenizer_config.h"

namespace whimbrel {

namespace {

constexpr std::string_view kWhere = "tokenizer";

std::shared_ptr<const textkit::TokenizerHandle> load_handle(const std::filesystem::path& file) {
  const std::string json = read_file(file, Fault::model);
  textkit_tokenizer* tokenizer = nullptr;
  textkit::check(
      textkit_tokenizer_new(json.data(), json.size(), &tokenizer), Fault::model, file.string()
  );
  return std::make_shared<textkit::TokenizerHandle>(tokenizer);
}

Json describe(const textkit::TokenizerHandle& handle) {
  textkit_text json{};
  textkit::check(textkit_tokenizer_describe(handle.get(), &json), Fault::model, kWhere);
  return parse_json(textkit::take(json), kWhere, Fault::model);
}

std::vector<AddedToken> added_tokens_of(const Json& description) {
  std::vector<AddedToken> tokens;
  for (const Json& token : description.at("added_tokens")) {
    tokens.push_back(
        {.content = token.at("content").get<std::string>(),
         .id = token.at("id").get<int32_t>(),
         .special = token.at("special").get<bool>()}
    );
  }
  return tokens;
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  Tokenizer tokenizer;
  tokenizer.handle_ = load_handle(folder / "tokenizer.json");
  const Json description = describe(*tokenizer.handle_);
  tokenizer.size_ = description.at("size").get<int32_t>();
  if (const Json& most = description.at("most_bytes"); !most.is_null()) {
    tokenizer.most_bytes_ = most.get<size_t>();
  }
  tokenizer.added_tokens_ = added_tokens_of(description);
  const std::string where = (folder / "tokenizer_config.json").string();
  const Json special_tokens = named_special_tokens(read_tokenizer_config(folder), where);
  if (special_tokens.contains("eos_token")) {
    tokenizer.eos_ = tokenizer.token_to_id(special_tokens.at("eos_token").get<std::string>());
  }
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode_prompt(const RenderedPrompt& prompt) const {
  textkit_ids ids{};
  textkit::check(
      textkit_encode_prompt(
          handle_->get(), prompt.marked.data(), prompt.marked.size(), prompt.marker, &ids
      ),
      Fault::input,
      kWhere
  );
  return textkit::take(ids);
}

std::vector<int32_t> Tokenizer::encode_text(std::string_view text) const {
  textkit_ids ids{};
  textkit::check(
      textkit_encode_text(handle_->get(), text.data(), text.size(), &ids), Fault::input, kWhere
  );
  return textkit::take(ids);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, SpecialTokens special_tokens) const {
  const bool skip = special_tokens == SpecialTokens::skip;
  textkit_text text{};
  textkit::check(
      textkit_decode(handle_->get(), ids.data(), ids.size(), skip, &text), Fault::input, kWhere
  );
  return textkit::take(text);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  int32_t id = -1;
  textkit::check(
      textkit_token_to_id(handle_->get(), token.data(), token.size(), &id), Fault::input, kWhere
  );
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  textkit_text token{};
  textkit::check(textkit_id_to_token(handle_->get(), id, &token), Fault::input, kWhere);
  return token.data == nullptr ? std::nullopt : std::optional<std::string>(textkit::take(token));
}

}  // namespace whimbrel
