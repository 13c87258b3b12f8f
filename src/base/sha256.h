#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace whimbrel {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();

  Sha256& update(std::string_view bytes);

  /// 64 hex digits over all that was given. Ends the sum: nothing may follow.
  std::string hex();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, FreeContext> context_;
};

/// Adds a whole file to the sum, piece by piece. Throws Error(Fault::io) where reading fails.
void update_with_file(Sha256& sum, const std::filesystem::path& path);

}  // namespace whimbrel
