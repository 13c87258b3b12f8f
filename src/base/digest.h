#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace whimbrel {

enum class DigestKind { sha1, sha256 };

/// SHA-1 or SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Digest {
 public:
  explicit Digest(DigestKind kind = DigestKind::sha256);

  Digest& update(std::string_view bytes);

  /// Hex digits over all that was given. Ends the sum: nothing may follow.
  std::string hex();

 private:
  struct FreeContext {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, FreeContext> context_;
};

/// Adds a whole file to the sum, piece by piece. Throws Error(Fault::io) where reading fails.
void update_with_file(Digest& sum, const std::filesystem::path& path);

}  // namespace whimbrel
