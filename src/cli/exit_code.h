#pragma once

#include <exception>

namespace whimbrel {

/// Ends the program with a code of docs/contract.md where everything has been said already.
class ExitCode : public std::exception {
 public:
  explicit ExitCode(int code) : code_(code) {}

  int code() const { return code_; }
  const char* what() const noexcept override { return "[whimbrel] ended"; }

 private:
  int code_;
};

}  // namespace whimbrel
