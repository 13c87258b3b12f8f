#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whimbrel {

/// Key order is kept: chat templates print objects in the order a user wrote them.
using Json = nlohmann::ordered_json;

/// Bounds on JSON from outside, checked while parsing.
struct JsonLimits {
  int depth = 64;
  int64_t nodes = 2'000'000;
};

/// Parses strict JSON. Throws Error(fault) that names `where` on bad syntax, invalid UTF-8, a
/// repeated key, or an exceeded limit.
Json parse_json(
    std::string_view bytes, std::string_view where, Fault fault, JsonLimits limits = {}
);

/// Where a value was read, for error texts: the file, and what kind of failure a bad value is.
struct JsonSource {
  std::string where;
  Fault fault = Fault::model;
};

/// The integer at `key`, inside [min, max]. Throws Error naming the key when it is missing, no
/// integer, or out of range. Never casts a float.
int64_t get_int(
    const Json& object,
    std::string_view key,
    const JsonSource& source,
    int64_t min = 1,
    int64_t max = std::numeric_limits<int32_t>::max()
);

/// The same, with `fallback` where the key is absent or null.
int64_t get_int_or(
    const Json& object,
    std::string_view key,
    int64_t fallback,
    const JsonSource& source,
    int64_t min = 1,
    int64_t max = std::numeric_limits<int32_t>::max()
);

/// The finite number at `key`, or `fallback` where it is absent or null.
double get_number_or(
    const Json& object, std::string_view key, double fallback, const JsonSource& source
);
double get_number(const Json& object, std::string_view key, const JsonSource& source);

/// The boolean at `key`, or `fallback` where it is absent or null.
bool get_bool_or(const Json& object, std::string_view key, bool fallback, const JsonSource& source);

/// The string at `key`.
std::string get_string(const Json& object, std::string_view key, const JsonSource& source);

/// The list of integers at `key`; a single integer counts as a list of one, absent or null as none.
std::vector<int64_t> get_ints(
    const Json& object, std::string_view key, const JsonSource& source, int64_t min = 0
);

/// The object at `key`, or an empty object where it is absent or null.
const Json& get_object_or_empty(const Json& object, std::string_view key, const JsonSource& source);

/// True where `key` is present and not null.
bool has_value(const Json& object, std::string_view key);

}  // namespace whimbrel
