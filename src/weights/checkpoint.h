#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weights/config.h"
#include "weights/quantization.h"
#include "weights/safetensors.h"
#include "weights/weight_files.h"

namespace whimbrel {

namespace mx = mlx::core;

/// The weight of a linear layer or an embedding as it is stored, without the linear `.bias`. Those
/// of a layer's experts are stacked: one more axis [experts, ...] in front of each shape.
struct StoredMatrix {
  mx::array weight;  // plain: [rows, columns]; packed: uint32 [rows, columns*bits/32]
  std::optional<mx::array> scales = std::nullopt;  // packed only: [rows, columns/group_size]
  std::optional<mx::array> biases = std::nullopt;  // packed only: the quantiser's, like scales
  int bits = 0;                                    // 0: plain
  int group_size = 0;
};

/// What a checkpoint holds, for `inspect`.
struct CheckpointSummary {
  struct OfDtype {
    StoredDtype dtype;
    int64_t tensors;
    uint64_t bytes;
  };
  int64_t files;
  int64_t tensors;
  uint64_t bytes;
  uint64_t parameters;          // numbers after unpacking, without a quantiser's scales and biases
  std::vector<OfDtype> dtypes;  // most bytes first
};

/// Gives the array of a tensor that lies in no file; it should compute nothing before MLX evaluates
/// it.
using TensorMaker = std::function<mx::array(const TensorInfo& tensor)>;

/// The weights of one checkpoint folder: model.safetensors, or the shards that
/// model.safetensors.index.json names, or the folder's only *.safetensors file.
/// Opening checks every header; data is read when MLX evaluates a taken array. Names are canonical
/// (weights/names.h). Each tensor is taken once, and is then no longer held here. Not thread-safe.
/// All errors are Error(Fault::model) that name the file or tensor, what was found and expected;
/// Error(Fault::io) where reading fails. A file that is cut off later makes MLX's eval throw.
class Checkpoint {
 public:
  explicit Checkpoint(const ModelConfig& config);

  /// A checkpoint without files: these tensors, made when they are taken.
  Checkpoint(const ModelConfig& config, std::vector<TensorInfo> tensors, TensorMaker make);

  /// The tensor's entry, or null where the checkpoint has none. Its `name` is the file's spelling.
  const TensorInfo* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// True where any tensor's name starts so, such as "visual.".
  bool has_under(std::string_view prefix) const;

  /// The tensor, bf16, f16 or f32, with exactly this shape. (Taking one twice is a bug of the
  /// caller: std::logic_error.)
  mx::array take(std::string_view name, const mx::Shape& shape);

  /// `<module>.weight` with its `.scales` and `.biases` where there are some: rows = outputs (or
  /// vocabulary), columns = inputs (or width). Bits and group size follow from the shapes and have
  /// to agree with config.json.
  StoredMatrix take_matrix(std::string_view module, int64_t rows, int64_t columns);

  /// The same of `count` matrices stacked in one tensor.
  StoredMatrix take_stacked_matrix(
      std::string_view module, int64_t count, int64_t rows, int64_t columns
  );

  /// The kernel of a patch embedding as [out, channels*temporal*patch*patch] in Hugging Face's
  /// order, from [out, channels, temporal, patch, patch] or MLX's
  /// [out, temporal, patch, patch, channels].
  mx::array take_patch_embedding(
      std::string_view name, int64_t out, int64_t channels, int64_t temporal, int64_t patch
  );

  /// Counts all tensors of a module (`<module>.`...) as used, without reading them.
  void discard(std::string_view module);

  /// True where both tensors have the same dtype, shape and bytes in their files; tensors that lie
  /// in none are the same only as themselves.
  bool same_bytes(std::string_view name, std::string_view other) const;

  /// Throws where tensors are left, with their number and the first names.
  void require_all_taken() const;

  uint64_t total_bytes() const;

  /// Of the tensors whose name starts so, such as "visual.": bytes, and numbers after unpacking.
  struct Totals {
    uint64_t bytes = 0;
    uint64_t parameters = 0;
  };
  Totals totals_under(std::string_view prefix) const;
  CheckpointSummary summary() const;

  /// What a user should know about this checkpoint though it can be used.
  const std::vector<std::string>& warnings() const { return warnings_; }
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

 private:
  struct Entry {
    TensorInfo info;
    size_t file;  // index into files_
    bool taken = false;
  };
  struct OpenFile {
    WeightFile file;  // its tensors are in entries_
    std::optional<std::unordered_map<std::string, mx::array>> arrays;  // opened by the first take
  };

  void add_file(WeightFile file);
  uint64_t parameters_of(const std::string& name, const TensorInfo& tensor) const;
  Entry& require(std::string_view name);
  std::string where(const Entry& entry) const;
  mx::array load(Entry& entry);
  StoredMatrix take_rows(
      std::string_view module, const std::vector<int64_t>& leading, int64_t rows, int64_t columns
  );

  std::filesystem::path folder_;
  QuantizationTable quantization_;
  std::vector<OpenFile> files_;
  TensorMaker make_;  // empty where files hold the tensors
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> warnings_;
};

}  // namespace whimbrel
