#include "nn/kv_cache_file.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include "base/error.h"

namespace whimbrel::nn {

namespace mx = mlx::core;

namespace {

using Arrays = std::unordered_map<std::string, mx::array>;

mx::array first_rows(const mx::array& buffer, int length) {
  mx::Shape stop = buffer.shape();
  stop[2] = length;
  return mx::contiguous(mx::slice(buffer, {0, 0, 0, 0}, stop));
}

void add_rows(Arrays& arrays, const std::string& name, const ops::KVRows& rows, int length) {
  arrays.insert_or_assign(name, first_rows(rows.data, length));
  if (rows.scales) {
    arrays.insert_or_assign(name + ".scales", first_rows(*rows.scales, length));
    arrays.insert_or_assign(name + ".offsets", first_rows(*rows.offsets, length));
  }
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view found) {
  throw Error(
      Fault::model,
      file.string(),
      "got {}, expected the saved cache of a model of this shape",
      found
  );
}

/// What a file holds, by name.
class CacheFile {
 public:
  explicit CacheFile(const std::filesystem::path& path) : path_(path) {
    try {
      auto [arrays, metadata] = mx::load_safetensors(path.string());
      arrays_ = std::move(arrays);
      metadata_ = std::move(metadata);
    } catch (const std::exception& error) {
      throw Error(
          Fault::io, path.string(), "got an error when reading the cache: {}", error.what()
      );
    }
  }

  int number(const std::string& name) const {
    const auto found = metadata_.find(name);
    if (found == metadata_.end()) {
      refuse(path_, "no " + name);
    }
    return std::stoi(found->second);
  }

  std::optional<mx::array> find(const std::string& name) const {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? std::nullopt : std::optional(found->second);
  }

  ops::KVRows rows(const std::string& name, const ops::HeadShape& shape) const {
    const std::optional<mx::array> data = find(name);
    if (!data || data->ndim() != 4 || data->shape(1) != shape.kv_heads) {
      refuse(path_, "no " + name + " of its heads");
    }
    return {*data, find(name + ".scales"), find(name + ".offsets")};
  }

 private:
  const std::filesystem::path& path_;
  Arrays arrays_;
  std::unordered_map<std::string, std::string> metadata_;
};

ops::KVFormat format_of(const ops::KVRows& rows, int head_dim) {
  if (!rows.scales) {
    return {.dtype = rows.data.dtype()};
  }
  return {
      .dtype = rows.scales->dtype(),
      .bits = rows.data.shape(3) * 32 / head_dim,
      .group_size = head_dim / rows.scales->shape(3),
  };
}

int width_of(const ops::KVFormat& format, int head_dim) {
  return format.bits == 0 ? head_dim : head_dim * format.bits / 32;
}

}  // namespace

void save_kv_cache(const KVCache& cache, const std::filesystem::path& file) {
  Arrays arrays;
  for (size_t i = 0; i < cache.layers().size(); ++i) {
    const LayerCache& layer = cache.layers()[i];
    add_rows(arrays, fmt::format("layers.{}.keys", i), layer.buffer.keys, layer.length);
    add_rows(arrays, fmt::format("layers.{}.values", i), layer.buffer.values, layer.length);
  }
  const std::unordered_map<std::string, std::string> metadata = {
      {"layers", std::to_string(cache.layers().size())},
      {"length", std::to_string(cache.length())},
      {"dropped", std::to_string(cache.dropped())},
  };
  try {
    mx::save_safetensors(file.string(), arrays, metadata);
  } catch (const std::exception& error) {
    throw Error(Fault::io, file.string(), "got an error when writing the cache: {}", error.what());
  }
}

KVCache read_kv_cache(const std::filesystem::path& file, int layers, const ops::HeadShape& shape) {
  const CacheFile saved(file);
  if (saved.number("layers") != layers) {
    refuse(file, fmt::format("{} layers", saved.number("layers")));
  }
  const int length = saved.number("length");
  std::vector<LayerCache> read;
  for (int i = 0; i < layers; ++i) {
    ops::KVRows keys = saved.rows(fmt::format("layers.{}.keys", i), shape);
    ops::KVRows values = saved.rows(fmt::format("layers.{}.values", i), shape);
    const ops::KVFormat format = format_of(keys, shape.head_dim);
    if (keys.data.shape(2) != length || values.data.shape() != keys.data.shape() ||
        keys.data.shape(3) != width_of(format, shape.head_dim)) {
      refuse(file, fmt::format("layer {} of another length or width", i));
    }
    read.push_back({{std::move(keys), std::move(values), format}, length});
  }
  return {std::move(read), saved.number("dropped")};
}

}  // namespace whimbrel::nn
