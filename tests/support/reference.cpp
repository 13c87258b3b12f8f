#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "base/file.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {

namespace fs = std::filesystem;

namespace {

std::string model_type_of(const fs::path& checkpoint) {
  const std::string text = read_file(checkpoint / "config.json", Fault::model);
  return Json::parse(text).at("model_type").get<std::string>();
}

/// Cases of all checkpoints of one folder whose answers lie in another.
std::vector<ReferenceCase> cases_in(
    const fs::path& checkpoints,
    const fs::path& references,
    const std::vector<std::string>& model_types
) {
  std::vector<ReferenceCase> cases;
  for (const fs::directory_entry& folder : fs::directory_iterator(references)) {
    const fs::path checkpoint = checkpoints / folder.path().filename();
    if (!fs::exists(checkpoint / "config.json") ||
        std::ranges::count(model_types, model_type_of(checkpoint)) == 0) {
      continue;
    }
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().stem().string();
      if (file.path().extension() == ".json") {
        cases.push_back(
            {folder.path().filename().string(),
             name,
             checkpoint,
             file.path(),
             fs::path(file.path()).replace_extension(".safetensors"),
             references / "media"}
        );
      }
    }
  }
  return cases;
}

Json openai_content(const Json& content, const fs::path& pictures) {
  if (content.is_string()) {
    return content;
  }
  Json parts = Json::array();
  for (const Json& part : content) {
    if (part.at("type") == "image") {
      const fs::path file = pictures / (part.at("image").get<std::string>() + ".png");
      parts.push_back(Json::object({{"type", "image_url"}, {"image_url", file.string()}}));
    } else if (part.at("type") == "video") {
      Json video = part;
      for (Json& frame : video.at("video")) {
        frame = (pictures / (frame.get<std::string>() + ".png")).string();
      }
      parts.push_back(video);
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

}  // namespace

std::string ReferenceCase::test_name() const {
  std::string text = model + "_" + name;
  std::ranges::replace(text, '-', '_');
  return text;
}

std::vector<ReferenceCase> reference_cases(const std::vector<std::string>& model_types) {
  std::vector<ReferenceCase> cases =
      cases_in(source_dir() / "models", source_dir() / "tests/golden/reference", model_types);
  const char* outside = std::getenv("WHIMBREL_REFERENCE_DIR");
  if (outside != nullptr) {
    const fs::path folder = outside;
    for (ReferenceCase& more :
         cases_in(folder / "checkpoints", folder / "reference", model_types)) {
      const bool known = std::ranges::any_of(cases, [&more](const ReferenceCase& one) {
        return one.test_name() == more.test_name();
      });
      if (!known) {
        cases.push_back(std::move(more));
      }
    }
  }
  std::ranges::sort(cases, {}, &ReferenceCase::test_name);
  return cases;
}

Json openai_messages(const ReferenceCase& reference) {
  const Json stored = Json::parse(read_file(reference.json, Fault::input));
  Json messages = Json::array();
  for (const Json& message : stored.at("messages")) {
    Json copy = message;
    copy["content"] = openai_content(message.at("content"), reference.pictures);
    messages.push_back(copy);
  }
  return messages;
}

fs::path bundled_model(std::string_view name) {
  return source_dir() / "models" / name;
}

Difference difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) {
    throw std::invalid_argument("[difference] got lists of different lengths");
  }
  Difference result;
  for (size_t i = 0; i < found.size(); ++i) {
    result.largest = std::max(result.largest, std::abs(double{found[i]} - double{expected[i]}));
    result.scale = std::max(result.scale, std::abs(double{expected[i]}));
  }
  return result;
}

}  // namespace whimbrel::test
