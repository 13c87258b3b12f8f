#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"
#include "server/request_limits.h"

namespace whimbrel::wire {

/// A request's body, strict JSON inside the limits. Throws http::ApiException (400).
Json parse_body(std::string_view body, const RequestLimits& limits);

/// Whether no object of a JSON text has more members, as far as `depth` levels go. Looked at before
/// a text is parsed: an ordered object takes time in their square.
bool has_few_members(std::string_view json, int depth, int members);

/// Throws http::ApiException: 400 `[param] got …, expected …` with the field at fault.
[[noreturn]] void refuse(const std::string& param, std::string_view got, std::string_view expected);

/// A value for an error text: short, whatever it holds.
std::string shown(const Json& value);

/// A value and where it stands in the request: `messages[1].content`.
struct Field {
  const Json& value;
  std::string path;
};

/// What a field holds, or http::ApiException (400) that names it.
int64_t to_integer(const Field& field, int64_t min, int64_t max);
double to_number(const Field& field, double min, double max);
bool to_boolean(const Field& field);
const std::string& to_text(const Field& field);
const Json& to_list(const Field& field);
const Json& to_object(const Field& field);

/// The fields of one object of a request. A field that is null counts as absent. What is out of
/// range or of another type is http::ApiException (400) that names the field.
class Fields {
 public:
  /// `path`: where the object stands, empty for the body itself.
  explicit Fields(const Json& object, std::string path = {});

  std::optional<Field> find(std::string_view key);
  Field require(std::string_view key);

  std::optional<int64_t> integer(
      std::string_view key, int64_t min, int64_t max = std::numeric_limits<int32_t>::max()
  );
  std::optional<double> number(std::string_view key, double min, double max);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::string> one_of(
      std::string_view key, std::initializer_list<std::string_view> values
  );

  /// Refuses a field that is there and not null.
  void refuse_present(std::string_view key, std::string_view expected);

  /// `path.key`.
  std::string path_of(std::string_view key) const;

  /// Keys that nobody asked for, in the request's order.
  std::vector<std::string> unread() const;

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace whimbrel::wire
