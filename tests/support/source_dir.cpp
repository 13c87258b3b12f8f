#include "tests/support/source_dir.h"

namespace whimbrel::test {

std::filesystem::path source_dir() {
  return WHIMBREL_SOURCE_DIR;
}

std::filesystem::path python() {
  return WHIMBREL_PYTHON;
}

}  // namespace whimbrel::test
