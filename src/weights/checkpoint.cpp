#include "weights/checkpoint.h"

#include <mlx/io.h>
#include <mlx/ops.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "weights/names.h"
#include "weights/packing.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

constexpr int kDefaultBits = 4;  // of MLX's affine mode, where config.json leaves them out

mx::Shape as_shape(const std::vector<int64_t>& dimensions) {
  return mx::Shape(dimensions.begin(), dimensions.end());
}

mx::Dtype as_mlx(StoredDtype dtype) {
  switch (dtype) {
    case StoredDtype::boolean:
      return mx::bool_;
    case StoredDtype::u8:
    case StoredDtype::f8_e4m3:
    case StoredDtype::f8_e8m0:
      return mx::uint8;
    case StoredDtype::i8:
      return mx::int8;
    case StoredDtype::u16:
      return mx::uint16;
    case StoredDtype::i16:
      return mx::int16;
    case StoredDtype::f16:
      return mx::float16;
    case StoredDtype::bf16:
      return mx::bfloat16;
    case StoredDtype::u32:
      return mx::uint32;
    case StoredDtype::i32:
      return mx::int32;
    case StoredDtype::f32:
      return mx::float32;
    case StoredDtype::u64:
      return mx::uint64;
    case StoredDtype::i64:
      return mx::int64;
    case StoredDtype::c64:
      return mx::complex64;
  }
  throw std::logic_error("[as_mlx] got no dtype");
}

[[noreturn]] void wrong_shape(
    const TensorInfo& tensor, std::string_view expected, std::string_view where
) {
  throw Error(
      Fault::model,
      where,
      "tensor {}: got shape {}, expected {}; config.json and weights are of different models",
      quote(tensor.name),
      shape_text(tensor.shape),
      expected
  );
}

void require_float_of_shape(
    const TensorInfo& tensor, const std::vector<int64_t>& shape, std::string_view where
) {
  require_float(tensor, where);
  if (tensor.shape != shape) {
    wrong_shape(tensor, shape_text(shape), where);
  }
}

std::unordered_map<std::string, mx::array> open_arrays(const std::filesystem::path& path) {
  try {
    return mx::load_safetensors(path.string()).first;
  } catch (const std::exception& error) {
    throw Error(
        Fault::io, path.string(), "got an error when opening the weights: {}", error.what()
    );
  }
}

}  // namespace

Checkpoint::Checkpoint(const ModelConfig& config)
    : folder_(config.folder), quantization_(config.root, config.source()) {
  for (WeightFile& file : find_weight_files(folder_)) {
    add_file(std::move(file));
  }
}

Checkpoint::Checkpoint(const ModelConfig& config, std::vector<TensorInfo> tensors, TensorMaker make)
    : folder_(config.folder), quantization_(config.root, config.source()), make_(std::move(make)) {
  add_file({.path = folder_, .tensors = std::move(tensors), .data_begin = 0});
}

void Checkpoint::add_file(WeightFile file) {
  for (const TensorInfo& tensor : file.tensors) {
    const std::string name = canonical_name(tensor.name);
    if (is_ignored_tensor(name)) {
      continue;
    }
    const auto [found, is_new] = entries_.try_emplace(name, Entry{tensor, files_.size()});
    if (!is_new) {
      throw Error(
          Fault::model,
          file.path.string(),
          "got the tensors {} and {}, expected one of them: both are {}",
          quote(found->second.info.name),
          quote(tensor.name),
          quote(name)
      );
    }
  }
  file.tensors.clear();
  files_.push_back({.file = std::move(file), .arrays = std::nullopt});
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  return found == entries_.end() ? nullptr : &found->second.info;
}

bool Checkpoint::has_under(std::string_view prefix) const {
  return std::any_of(entries_.begin(), entries_.end(), [prefix](const auto& named) {
    return named.first.starts_with(prefix);
  });
}

mx::array Checkpoint::take(std::string_view name, const mx::Shape& shape) {
  Entry& entry = require(name);
  require_float_of_shape(entry.info, {shape.begin(), shape.end()}, where(entry));
  return load(entry);
}

StoredMatrix Checkpoint::take_matrix(std::string_view module, int64_t rows, int64_t columns) {
  return take_rows(module, {}, rows, columns);
}

StoredMatrix Checkpoint::take_stacked_matrix(
    std::string_view module, int64_t count, int64_t rows, int64_t columns
) {
  return take_rows(module, {count}, rows, columns);
}

StoredMatrix Checkpoint::take_rows(
    std::string_view module, const std::vector<int64_t>& leading, int64_t rows, int64_t columns
) {
  const std::string path(module);
  Entry& weight = require(path + ".weight");
  if (!has(path + ".scales")) {
    std::vector<int64_t> shape = leading;
    shape.insert(shape.end(), {rows, columns});
    require_float_of_shape(weight.info, shape, where(weight));
    return {.weight = load(weight)};
  }
  Entry& scales = require(path + ".scales");
  Entry& biases = require(path + ".biases");
  const Packing packing = check_packing(
      {.weight = weight.info, .scales = scales.info, .biases = biases.info},
      leading,
      rows,
      columns,
      quantization_.find(module),
      where(weight)
  );
  return {
      .weight = load(weight),
      .scales = load(scales),
      .biases = load(biases),
      .bits = packing.bits,
      .group_size = packing.group_size,
  };
}

mx::array Checkpoint::take_patch_embedding(
    std::string_view name, int64_t out, int64_t channels, int64_t temporal, int64_t patch
) {
  Entry& entry = require(name);
  require_float(entry.info, where(entry));
  const std::vector<int64_t> hub_shape = {out, channels, temporal, patch, patch};
  const std::vector<int64_t> mlx_shape = {out, temporal, patch, patch, channels};
  const mx::Shape flat = as_shape({out, channels * temporal * patch * patch});
  if (entry.info.shape == hub_shape) {
    return mx::reshape(load(entry), flat);
  }
  if (entry.info.shape == mlx_shape) {
    return mx::reshape(mx::transpose(load(entry), {0, 4, 1, 2, 3}), flat);
  }
  const std::string expected =
      fmt::format("{} or {}", shape_text(hub_shape), shape_text(mlx_shape));
  wrong_shape(entry.info, expected, where(entry));
}

void Checkpoint::discard(std::string_view module) {
  const std::string prefix = std::string(module) + ".";
  for (auto& [name, entry] : entries_) {
    if (name.starts_with(prefix)) {
      entry.taken = true;
    }
  }
}

bool Checkpoint::same_bytes(std::string_view name, std::string_view other) const {
  const auto left = entries_.find(std::string(name));
  const auto right = entries_.find(std::string(other));
  if (left == entries_.end() || right == entries_.end()) {
    return left == right;
  }
  if (make_) {
    return name == other;
  }
  const TensorInfo& left_info = left->second.info;
  const TensorInfo& right_info = right->second.info;
  return left_info.dtype == right_info.dtype && left_info.shape == right_info.shape &&
         same_file_bytes(
             {.file = files_[left->second.file].file, .begin = left_info.begin},
             {.file = files_[right->second.file].file, .begin = right_info.begin},
             left_info.bytes()
         );
}

void Checkpoint::require_all_taken() const {
  constexpr size_t kShown = 5;
  std::vector<std::string> left;
  for (const auto& [name, entry] : entries_) {
    if (!entry.taken) {
      left.push_back(quote(entry.info.name));
    }
  }
  if (left.empty()) {
    return;
  }
  std::sort(left.begin(), left.end());
  const size_t count = left.size();
  left.resize(std::min(count, kShown));
  throw Error(
      Fault::model,
      folder_.string(),
      "got {} tensors that this architecture doesn't use ({}{}), expected none; config.json and "
      "weights are of different models",
      count,
      fmt::join(left, ", "),
      count > kShown ? ", ..." : ""
  );
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) {
    bytes += entry.info.bytes();
  }
  return bytes;
}

Checkpoint::Totals Checkpoint::totals_under(std::string_view prefix) const {
  Totals totals;
  for (const auto& [name, entry] : entries_) {
    if (name.starts_with(prefix)) {
      totals.bytes += entry.info.bytes();
      totals.parameters += parameters_of(name, entry.info);
    }
  }
  return totals;
}

CheckpointSummary Checkpoint::summary() const {
  std::map<StoredDtype, CheckpointSummary::OfDtype> by_dtype;
  uint64_t parameters = 0;
  for (const auto& [name, entry] : entries_) {
    CheckpointSummary::OfDtype& sum =
        by_dtype.try_emplace(entry.info.dtype, CheckpointSummary::OfDtype{entry.info.dtype, 0, 0})
            .first->second;
    ++sum.tensors;
    sum.bytes += entry.info.bytes();
    parameters += parameters_of(name, entry.info);
  }
  CheckpointSummary summary{
      .files = std::ssize(files_),
      .tensors = std::ssize(entries_),
      .bytes = total_bytes(),
      .parameters = parameters,
      .dtypes = {},
  };
  for (const auto& [dtype, sum] : by_dtype) {
    summary.dtypes.push_back(sum);
  }
  const auto most_bytes = [](const auto& left, const auto& right) {
    return left.bytes > right.bytes || (left.bytes == right.bytes && left.dtype < right.dtype);
  };
  std::sort(summary.dtypes.begin(), summary.dtypes.end(), most_bytes);
  return summary;
}

uint64_t Checkpoint::parameters_of(const std::string& name, const TensorInfo& tensor) const {
  const size_t dot = name.rfind('.');
  const std::string module = name.substr(0, dot);
  const std::string_view kind = std::string_view(name).substr(dot + 1);
  if (!has(module + ".scales")) {
    return tensor.bytes() / dtype_bytes(tensor.dtype);
  }
  if (kind == "scales" || kind == "biases") {
    return 0;
  }
  const QuantizationConfig stated = quantization_.find(module).value_or(QuantizationConfig{});
  const int bits = stated.bits.value_or(kDefaultBits);
  return kind == "weight" ? tensor.bytes() * 8 / static_cast<uint64_t>(bits)
                          : tensor.bytes() / dtype_bytes(tensor.dtype);
}

Checkpoint::Entry& Checkpoint::require(std::string_view name) {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) {
    throw Error(
        Fault::model,
        folder_.string(),
        "got no tensor {}, neither under this name nor under its other spellings, expected it; "
        "weights are missing or of another model",
        quote(name)
    );
  }
  return found->second;
}

std::string Checkpoint::where(const Entry& entry) const {
  return files_[entry.file].file.path.string();
}

mx::array Checkpoint::load(Entry& entry) {
  if (std::exchange(entry.taken, true)) {
    throw std::logic_error("[Checkpoint] the tensor " + entry.info.name + " was taken before");
  }
  if (make_) {
    return make_(entry.info);
  }
  OpenFile& file = files_[entry.file];
  if (!file.arrays) {
    file.arrays = open_arrays(file.file.path);
  }
  const auto node = file.arrays->extract(entry.info.name);
  // The file was checked before MLX opened it; a mismatch means that another one is there now.
  if (node.empty() || node.mapped().shape() != as_shape(entry.info.shape) ||
      node.mapped().dtype() != as_mlx(entry.info.dtype)) {
    throw Error(
        Fault::io,
        where(entry),
        "got another tensor {} than at the check before, expected an unchanged file; run again",
        quote(entry.info.name)
    );
  }
  return node.mapped();
}

}  // namespace whimbrel
