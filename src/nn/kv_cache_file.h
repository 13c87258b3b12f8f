#pragma once

#include <filesystem>

#include "nn/kv_cache.h"

namespace whimbrel::nn {

/// Writes a sequence's cache to a .safetensors file. Throws Error(Fault::io).
void save_kv_cache(const KVCache& cache, const std::filesystem::path& file);

/// The cache of a file that save_kv_cache wrote, for a model of these layers and heads. Throws
/// Error(Fault::io) where it can't be read, Error(Fault::model) where it is another model's.
KVCache read_kv_cache(const std::filesystem::path& file, int layers, const ops::HeadShape& shape);

}  // namespace whimbrel::nn
