#include "nn/kv_cache_file.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <charconv>

#include "base/error.h"

namespace whimbrel::nn {

namespace mx = mlx::core;

namespace {

constexpr int kBits = 8;  // of affine codes, the only ones that a cache holds

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

  /// A count that the file's metadata states.
  int number(const std::string& name) const {
    const auto found = metadata_.find(name);
    const std::string text = found == metadata_.end() ? "" : found->second;
    int value = -1;
    const char* end = text.data() + text.size();
    const std::from_chars_result read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc{} || read.ptr != end || value < 0) {
      refuse(path_, fmt::format("\"{}\" for the number of {}", text, name));
    }
    return value;
  }

  std::optional<mx::array> find(const std::string& name) const {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Keys or values of a layer, `length` rows.
  ops::KVRows rows(const std::string& name, const ops::HeadShape& shape, int length) const {
    ops::KVRows rows{require(name), find(name + ".scales"), find(name + ".offsets")};
    const auto is_of_width = [&](const std::optional<mx::array>& array, int width) {
      return array && array->shape() == mx::Shape{1, shape.kv_heads, length, width};
    };
    if (!rows.scales) {
      if (rows.offsets || !is_of_width(rows.data, shape.head_dim)) {
        refuse(path_, name + " of another shape");
      }
      return rows;
    }
    const int groups = rows.scales->ndim() == 4 ? rows.scales->shape(3) : 0;
    const bool fits = groups > 0 && shape.head_dim % groups == 0 &&
                      is_of_width(rows.scales, groups) && is_of_width(rows.offsets, groups) &&
                      rows.data.dtype() == mx::uint32 &&
                      is_of_width(rows.data, shape.head_dim * kBits / 32);
    if (!fits) {
      refuse(path_, name + " of another shape");
    }
    return rows;
  }

 private:
  mx::array require(const std::string& name) const {
    const std::optional<mx::array> found = find(name);
    if (!found) {
      refuse(path_, "no " + name);
    }
    return *found;
  }

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
      .bits = kBits,
      .group_size = head_dim / rows.scales->shape(3),
  };
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
    // Under its name only when it is whole.
    std::filesystem::path partial = file;
    partial.replace_extension(".partial.safetensors");
    mx::save_safetensors(partial.string(), arrays, metadata);
    std::filesystem::rename(partial, file);
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
    ops::KVRows keys = saved.rows(fmt::format("layers.{}.keys", i), shape, length);
    ops::KVRows values = saved.rows(fmt::format("layers.{}.values", i), shape, length);
    const ops::KVFormat format = format_of(keys, shape.head_dim);
    if (keys.scales.has_value() != values.scales.has_value() ||
        keys.data.dtype() != values.data.dtype()) {
      refuse(file, fmt::format("keys and values of layer {} in different forms", i));
    }
    read.push_back({{std::move(keys), std::move(values), format}, length});
  }
  return {std::move(read), saved.number("dropped")};
}

}  // namespace whimbrel::nn
