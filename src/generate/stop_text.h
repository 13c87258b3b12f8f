#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// Ends a stream of text at the first stop string. Text that could still become one is held back,
/// so what was passed on never has to be taken back.
class StopText {
 public:
  /// Throws Error(Fault::usage) on an empty string.
  explicit StopText(std::vector<std::string> stops);

  /// Text that is safe to pass on after `piece`. Nothing more comes once stopped.
  std::string push(std::string_view piece);

  /// What was held back, when the stream ends otherwise.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace whimbrel
