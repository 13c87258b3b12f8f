#include "base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr size_t kPiece = size_t{1} << 20;

EVP_MD_CTX* context_of(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

void require(int success) {
  if (success != 1) {
    throw std::runtime_error("[digest] the cryptography library refused");
  }
}

}  // namespace

void Digest::FreeContext::operator()(void* context) const {
  EVP_MD_CTX_free(context_of(context));
}

Digest::Digest(DigestKind kind) : context_(EVP_MD_CTX_new()) {
  const EVP_MD* method = kind == DigestKind::sha1 ? EVP_sha1() : EVP_sha256();
  require(EVP_DigestInit_ex(context_of(context_.get()), method, nullptr));
}

Digest& Digest::update(std::string_view bytes) {
  require(EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()));
  return *this;
}

std::string Digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

void update_with_file(Digest& sum, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string piece(kPiece, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    sum.update({piece.data(), static_cast<size_t>(in.gcount())});
  }
  if (!in.eof()) {
    throw Error(Fault::io, path.string(), "reading failed; check permissions and the disk");
  }
}

}  // namespace whimbrel
