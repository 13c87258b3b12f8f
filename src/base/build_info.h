#pragma once

#include <string>

namespace whimbrel {

/// Which build of whimbrel this is. Every bench row and trace repeats it.
struct BuildInfo {
  std::string version;   // of the project, such as 0.1.0
  std::string commit;    // 40 hex digits, or "unknown" when built outside a git checkout
  bool dirty;            // the checkout held changes that weren't committed
  std::string build_id;  // hex hash over the running program's contents, or "unknown"
  std::string compiler;  // name and version
  std::string flags;     // what the C++ compiler was told, less the warnings
  std::string mlx;       // MLX's version
};

/// The build of the running program.
const BuildInfo& build_info();

}  // namespace whimbrel
