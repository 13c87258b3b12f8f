#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tests/support/safetensors_file.h"

namespace whimbrel::test {

/// One stored answer of Hugging Face transformers in float32 (tests/golden/reference/README.md).
struct ReferenceCase {
  std::string model;  // name of the checkpoint's folder
  std::string name;   // such as describe-odd
  std::filesystem::path checkpoint;
  std::filesystem::path json;
  std::filesystem::path tensors;
  std::filesystem::path pictures;  // folder of the pictures that the messages name

  /// `model`_`name` with what GoogleTest allows in a test's name.
  std::string test_name() const;

  /// For GoogleTest's messages.
  friend std::ostream& operator<<(std::ostream& out, const ReferenceCase& reference) {
    return out << reference.test_name();
  }
};

/// All cases of the models in models/ and, where WHIMBREL_REFERENCE_DIR is set, of
/// its checkpoints, as far as `model_types` has their model_type.
std::vector<ReferenceCase> reference_cases(const std::vector<std::string>& model_types);

/// The case's messages in OpenAI's form, pictures and frames as paths.
Json openai_messages(const ReferenceCase& reference);

/// models/`name` of the project.
std::filesystem::path bundled_model(std::string_view name);

/// Largest |a - b|, and largest |b|: an error and what to measure it by.
struct Difference {
  double largest = 0;
  double scale = 0;

  double relative() const { return scale > 0 ? largest / scale : largest; }
};
Difference difference(const std::vector<float>& found, const std::vector<float>& expected);

}  // namespace whimbrel::test
