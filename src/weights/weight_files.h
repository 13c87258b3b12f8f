#pragma once

#include <filesystem>
#include <vector>

#include "weights/safetensors.h"

namespace whimbrel {

/// One safetensors file of a checkpoint, its header checked.
struct WeightFile {
  std::filesystem::path path;
  std::vector<TensorInfo> tensors;
  uint64_t data_begin;  // where the data of the tensors starts
};

/// Finds and checks the weights of a folder: the shards that model.safetensors.index.json names,
/// or model.safetensors, or the only *.safetensors file. Each shard holds exactly the tensors that
/// the index places there. Throws Error(Fault::model) naming the file and tensor.
std::vector<WeightFile> find_weight_files(const std::filesystem::path& folder);

/// A place in the data of a file.
struct DataPosition {
  const WeightFile& file;
  uint64_t begin;
};

/// Compares data of two files. Throws Error(Fault::io) where reading fails.
bool same_file_bytes(const DataPosition& left, const DataPosition& right, uint64_t bytes);

}  // namespace whimbrel
