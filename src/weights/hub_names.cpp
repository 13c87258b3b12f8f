#include "weights/hub_names.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

constexpr std::string_view kDefaultOwner = "mlx-community";
constexpr size_t kLongestPart = 96;
constexpr size_t kLongestRevision = 200;
constexpr size_t kLongestFileName = 255;
constexpr size_t kSha1Digits = 40;
constexpr size_t kSha256Digits = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// An owner or a name. No "--": it parts owner and name in the cache's folder names.
bool is_repo_part(std::string_view part) {
  return !part.empty() && part.size() <= kLongestPart && is_word(part.front()) &&
         is_word(part.back()) && !contains(part, "--") && !contains(part, "..") &&
         std::ranges::all_of(part, [](char c) { return is_word(c) || c == '-' || c == '.'; });
}

bool is_repo(std::string_view repo) {
  const size_t slash = repo.find('/');
  return slash != std::string_view::npos && is_repo_part(repo.substr(0, slash)) &&
         is_repo_part(repo.substr(slash + 1)) && !repo.ends_with(".git");
}

/// Calls `accept` for each part between slashes; false where one isn't accepted.
template <typename Accept>
bool all_parts(std::string_view path, Accept accept) {
  while (true) {
    const size_t slash = path.find('/');
    if (!accept(path.substr(0, slash))) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    path.remove_prefix(slash + 1);
  }
}

bool is_revision_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && part.front() != '-' && part.back() != '.' &&
         !contains(part, "..") && !part.ends_with(".lock") && std::ranges::all_of(part, [](char c) {
           return is_word(c) || c == '-' || c == '.' || c == '+';
         });
}

}  // namespace

std::optional<HubModel> parse_hub_model(std::string_view text) {
  const size_t at = text.find('@');
  HubModel model;
  model.repo = text.substr(0, at);
  if (!contains(model.repo, "/")) {
    model.repo = fmt::format("{}/{}", kDefaultOwner, model.repo);
  }
  if (at != std::string_view::npos) {
    model.revision = text.substr(at + 1);
  }
  if (!is_repo(model.repo) || !is_revision(model.revision)) {
    return std::nullopt;
  }
  return model;
}

HubModel require_hub_model(std::string_view text) {
  const std::optional<HubModel> model = parse_hub_model(text);
  if (!model) {
    throw Error(
        Fault::usage,
        "model name",
        "got {}, expected owner/name or owner/name@revision as on the hub",
        quote(text)
    );
  }
  return *model;
}

bool is_revision(std::string_view text) {
  return text.size() <= kLongestRevision && all_parts(text, is_revision_part);
}

bool is_commit(std::string_view text) {
  return text.size() == kSha1Digits && is_hex(text);
}

bool is_safe_file_name(std::string_view name) {
  const auto is_bad = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\' || c == ':'; };
  const auto is_plain = [](std::string_view part) {
    return !part.empty() && part != "." && part != "..";
  };
  return name.size() <= kLongestFileName && std::ranges::none_of(name, is_bad) &&
         all_parts(name, is_plain);
}

bool is_needed_file(std::string_view name) {
  constexpr std::array kNames = {
      std::string_view("config.json"),
      std::string_view("generation_config.json"),
      std::string_view("model.safetensors.index.json"),
      std::string_view("tokenizer.json"),
      std::string_view("tokenizer_config.json"),
      std::string_view("special_tokens_map.json"),
      std::string_view("added_tokens.json"),
      std::string_view("vocab.json"),
      std::string_view("merges.txt"),
      std::string_view("preprocessor_config.json"),
      std::string_view("processor_config.json"),
      std::string_view("video_preprocessor_config.json"),
      std::string_view("chat_template.jinja"),
      std::string_view("chat_template.json"),
  };
  const bool is_weights = name.ends_with(".safetensors") && !contains(name, "/");
  return is_weights || std::ranges::find(kNames, name) != kNames.end();
}

std::optional<std::string> blob_name(std::string_view etag) {
  if (etag.starts_with("W/")) {
    etag.remove_prefix(2);
  }
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  if ((etag.size() != kSha1Digits && etag.size() != kSha256Digits) || !is_hex(etag)) {
    return std::nullopt;
  }
  return std::string(etag);
}

}  // namespace whimbrel
