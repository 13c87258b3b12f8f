#include "base/json.h"

#include <cmath>
#include <unordered_set>

namespace whimbrel {

namespace {

/// Watches a parse from the side: nlohmann's callback sees each value as it is completed.
class JsonGuard {
 public:
  JsonGuard(std::string_view where, Fault fault, JsonLimits limits)
      : where_(where), fault_(fault), limits_(limits) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (++nodes_ > limits_.nodes) {
      throw Error(fault_, where_, "got JSON of over {} values", limits_.nodes);
    }
    switch (event) {
      case Json::parse_event_t::object_start:
        refuse_too_deep(depth);
        keys_.emplace_back();
        break;
      case Json::parse_event_t::array_start:
        refuse_too_deep(depth);
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key:
        refuse_repeated(parsed.get_ref<const std::string&>());
        break;
      default:
        break;
    }
    return true;
  }

 private:
  /// `depth` is the number of levels around the one that starts.
  void refuse_too_deep(int depth) const {
    if (depth >= limits_.depth) {
      throw Error(fault_, where_, "got JSON nested deeper than {} levels", limits_.depth);
    }
  }

  void refuse_repeated(const std::string& key) {
    if (!keys_.back().insert(key).second) {
      throw Error(fault_, where_, "got the JSON key \"{}\" twice in one object", key);
    }
  }

  std::string where_;
  Fault fault_;
  JsonLimits limits_;
  int64_t nodes_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

const Json& require(const Json& object, std::string_view key, const JsonSource& source) {
  if (!has_value(object, key)) {
    throw Error(source.fault, source.where, "got no \"{}\", expected one", key);
  }
  return object.at(std::string(key));
}

[[noreturn]] void wrong_type(
    const Json& value, std::string_view key, std::string_view expected, const JsonSource& source
) {
  throw Error(
      source.fault,
      source.where,
      "got \"{}\": {}, expected {}",
      key,
      value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
      expected
  );
}

int64_t checked_int(
    const Json& value, std::string_view key, const JsonSource& source, int64_t min, int64_t max
) {
  const std::string expected = fmt::format("an integer from {} to {}", min, max);
  if (!value.is_number_integer()) {
    wrong_type(value, key, expected, source);
  }
  const bool too_large =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    wrong_type(value, key, expected, source);
  }
  return value.get<int64_t>();
}

}  // namespace

Json parse_json(std::string_view bytes, std::string_view where, Fault fault, JsonLimits limits) {
  // The library takes a NUL byte for the end and would not look at what follows.
  if (bytes.find('\0') != std::string_view::npos) {
    throw Error(fault, where, "got invalid JSON: a NUL byte");
  }
  JsonGuard guard(where, fault, limits);
  try {
    return Json::parse(
        bytes.begin(), bytes.end(), [&guard](int depth, Json::parse_event_t event, Json& parsed) {
          return guard(depth, event, parsed);
        }
    );
  } catch (const Json::exception& error) {
    const std::string_view text = error.what();  // "[json.exception.parse_error.101] parse error …"
    throw Error(fault, where, "got invalid JSON: {}", text.substr(text.find(' ') + 1));
  }
}

bool has_value(const Json& object, std::string_view key) {
  if (!object.is_object()) {
    return false;
  }
  const Json::const_iterator found = object.find(std::string(key));
  return found != object.end() && !found->is_null();
}

int64_t get_int(
    const Json& object, std::string_view key, const JsonSource& source, int64_t min, int64_t max
) {
  return checked_int(require(object, key, source), key, source, min, max);
}

int64_t get_int_or(
    const Json& object,
    std::string_view key,
    int64_t fallback,
    const JsonSource& source,
    int64_t min,
    int64_t max
) {
  return has_value(object, key) ? get_int(object, key, source, min, max) : fallback;
}

double get_number(const Json& object, std::string_view key, const JsonSource& source) {
  const Json& value = require(object, key, source);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    wrong_type(value, key, "a finite number", source);
  }
  return value.get<double>();
}

double get_number_or(
    const Json& object, std::string_view key, double fallback, const JsonSource& source
) {
  return has_value(object, key) ? get_number(object, key, source) : fallback;
}

bool get_bool_or(
    const Json& object, std::string_view key, bool fallback, const JsonSource& source
) {
  if (!has_value(object, key)) {
    return fallback;
  }
  const Json& value = require(object, key, source);
  if (!value.is_boolean()) {
    wrong_type(value, key, "true or false", source);
  }
  return value.get<bool>();
}

std::string get_string(const Json& object, std::string_view key, const JsonSource& source) {
  const Json& value = require(object, key, source);
  if (!value.is_string()) {
    wrong_type(value, key, "a string", source);
  }
  return value.get<std::string>();
}

std::vector<int64_t> get_ints(
    const Json& object, std::string_view key, const JsonSource& source, int64_t min
) {
  if (!has_value(object, key)) {
    return {};
  }
  const Json& value = require(object, key, source);
  const int64_t max = std::numeric_limits<int32_t>::max();
  if (!value.is_array()) {
    return {checked_int(value, key, source, min, max)};
  }
  std::vector<int64_t> ints;
  for (const Json& item : value) {
    ints.push_back(checked_int(item, key, source, min, max));
  }
  return ints;
}

const Json& get_object_or_empty(
    const Json& object, std::string_view key, const JsonSource& source
) {
  static const Json empty = Json::object();
  if (!has_value(object, key)) {
    return empty;
  }
  const Json& value = require(object, key, source);
  if (!value.is_object()) {
    wrong_type(value, key, "an object", source);
  }
  return value;
}

}  // namespace whimbrel
