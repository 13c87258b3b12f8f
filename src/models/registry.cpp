#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "models/family.h"

// One line a family. The word is the family's model_type, its file, and the name of its object.
#define WHIMBREL_FAMILIES(FAMILY) \
  FAMILY(qwen2_vl)                \
  FAMILY(qwen2_5_vl)              \
  FAMILY(qwen3_vl)                \
  FAMILY(qwen3_vl_moe)            \
  FAMILY(qwen2)                   \
  FAMILY(qwen3)                   \
  FAMILY(qwen3_moe)               \
  FAMILY(llama)

namespace whimbrel {

#define WHIMBREL_DECLARE(name) extern const Family name;
WHIMBREL_FAMILIES(WHIMBREL_DECLARE)
#undef WHIMBREL_DECLARE

std::span<const Family* const> families() {
#define WHIMBREL_ROW(name) &name,
  static const std::array rows = {WHIMBREL_FAMILIES(WHIMBREL_ROW)};
#undef WHIMBREL_ROW
  return rows;
}

const Family& find_family(std::string_view model_type) {
  std::vector<std::string_view> known;
  for (const Family* family : families()) {
    if (family->model_type == model_type) {
      return *family;
    }
    known.push_back(family->model_type);
  }
  throw Error(
      Fault::model,
      "config.json",
      "got model_type \"{}\", expected one of: {}",
      model_type,
      fmt::join(known, ", ")
  );
}

}  // namespace whimbrel
