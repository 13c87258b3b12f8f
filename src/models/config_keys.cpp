#include "models/config_keys.h"

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int64_t kMaxDepth = 1000;  // several times the deepest published model

}  // namespace

int get_size(const Json& object, std::string_view key, const JsonSource& source) {
  return static_cast<int>(get_int(object, key, source));
}

int get_depth(const Json& object, std::string_view key, const JsonSource& source) {
  return static_cast<int>(get_int(object, key, source, 1, kMaxDepth));
}

void require_activation(const Json& object, std::string_view expected, const JsonSource& source) {
  if (has_value(object, "hidden_act") && get_string(object, "hidden_act", source) != expected) {
    throw Error(
        Fault::model,
        source.where,
        "got hidden_act \"{}\", expected \"{}\" for this family",
        get_string(object, "hidden_act", source),
        expected
    );
  }
}

void require_positive(double value, std::string_view key, const JsonSource& source) {
  if (value <= 0) {
    throw Error(Fault::model, source.where, "got {} {}, expected a number over 0", key, value);
  }
}

}  // namespace whimbrel
