#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace whimbrel {

/// What kind of thing went wrong. The value is the program's exit code (docs/contract.md).
enum class Fault {
  check = 1,          // a comparison or verification failed
  usage = 2,          // wrong flags, or things that can't be compared
  model = 3,          // files, config, tensors, tokenizer or template can't be used
  input = 4,          // picture, video, messages, prompt too long
  memory = 5,         // not enough memory
  io = 6,             // reading or writing failed
  network = 7,        // a download failed
  interrupted = 130,  // the user pressed Ctrl-C, or a client left
};

/// The one exception type of the library. Its text is one sentence for a user:
/// `[where] got …, expected …; what to do next`.
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  Error(Fault fault, std::string_view where, fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(
            fmt::format("[{}] {}", where, fmt::format(text, std::forward<Args>(args)...))
        ),
        fault_(fault) {}

  Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

}  // namespace whimbrel
