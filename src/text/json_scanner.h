#pragma once

#include <string>

namespace whimbrel {

/// Follows one JSON object or string byte by byte and says where it ends. Strict, and at most 64
/// levels deep. Its text must be UTF-8; it isn't looked at as such.
class JsonScanner {
 public:
  enum class Step { going, ended, wrong };

  Step push(char c);

 private:
  enum class State {
    value,       // a value must come
    first_item,  // a value or the end of an array
    first_key,   // a key or the end of an object
    key,         // a key must come
    colon,       // behind a key
    behind,      // behind a value
    string,      // inside a string
    escape,      // behind a backslash
    hex,         // in \uXXXX
    number,
    word,  // in true, false, null
  };

  Step push_value(char c);
  Step push_string(char c);
  Step push_escape(char c);
  Step push_number(char c);
  Step push_behind(char c);
  Step open(char c);
  Step close();
  Step end_value();

  State state_ = State::value;
  std::string open_;       // the brackets that are open
  std::string token_;      // a number so far
  const char* word_ = "";  // what is left of a word
  int hex_left_ = 0;
  bool is_key_ = false;
};

}  // namespace whimbrel
