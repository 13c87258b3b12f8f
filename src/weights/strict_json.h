#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace whimbrel {

/// A reader of JSON events that refuses every event. A format's reader overrides those that the
/// format allows, so that nothing of a hostile file is held before it is checked. (Json objects
/// search linearly: 200,000 keys in one take minutes.)
class StrictJsonReader : public nlohmann::json_sax<Json> {
 public:
  explicit StrictJsonReader(std::string_view where) : where_(where) {}

  /// Reads all of `bytes`. Throws Error(Fault::model).
  void read(std::string_view bytes) {
    // The parser takes a zero byte for the end of its input and would not look behind it.
    const size_t zero = bytes.find('\0');
    if (zero != std::string_view::npos) {
      throw Error(Fault::model, where_, "got a zero byte at {} of the JSON, expected text", zero);
    }
    Json::sax_parse(bytes.begin(), bytes.end(), this);
  }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    refuse("a fraction or a number too large");
  }
  bool string(string_t&) override { refuse("a string"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool start_object(size_t) override { refuse("an object"); }
  bool key(string_t&) override { refuse("a key"); }
  bool end_object() override { refuse("the end of an object"); }
  bool start_array(size_t) override { refuse("a list"); }
  bool end_array() override { refuse("the end of a list"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    throw Error(
        Fault::model,
        where_,
        "got invalid JSON at byte {}, expected strict JSON in UTF-8; the file is damaged, get it "
        "again",
        position
    );
  }

 protected:
  /// "got ..., expected ..." for a reader that stands where it can't use `found`.
  virtual std::string complaint(std::string_view found) const = 0;

  [[noreturn]] void refuse(std::string_view found) const {
    throw Error(Fault::model, where_, "{}", complaint(found));
  }

  const std::string& where() const { return where_; }

 private:
  std::string where_;
};

}  // namespace whimbrel
