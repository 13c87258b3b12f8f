#include "weights/weight_files.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "weights/quote.h"
#include "weights/reference_file.h"
#include "weights/shard_index.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;
constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

constexpr uint64_t kCompareBlock = uint64_t{1} << 20;

using TensorNames = std::unordered_set<std::string>;

WeightFile open_file(const fs::path& path) {
  std::vector<TensorInfo> tensors = read_safetensors_header(path);
  const uint64_t data_bytes = tensors.empty() ? 0 : tensors.back().end;
  std::error_code code;
  const uint64_t size = fs::file_size(path, code);
  if (code || size < data_bytes) {
    throw Error(Fault::io, path.string(), "reading its size failed; the file changes under us");
  }
  return {path, std::move(tensors), size - data_bytes};
}

void require_shard(const fs::path& shard, const fs::path& index) {
  std::error_code code;
  if (!fs::exists(shard, code)) {
    throw Error(
        Fault::model,
        shard.string(),
        "got no such file, expected a shard, which {} names; get the missing file",
        index.filename().string()
    );
  }
}

void require_same_tensors(const WeightFile& shard, const TensorNames& indexed) {
  TensorNames missing = indexed;
  for (const TensorInfo& tensor : shard.tensors) {
    if (missing.erase(tensor.name) == 0) {
      throw Error(
          Fault::model,
          shard.path.string(),
          "got the tensor {}, expected only those that {} places in this file",
          quote(tensor.name),
          kIndexFile
      );
    }
  }
  if (!missing.empty()) {
    throw Error(
        Fault::model,
        shard.path.string(),
        "got no tensor {}, expected it ({} in all), since {} places it in this file",
        quote(*std::min_element(missing.begin(), missing.end())),
        missing.size(),
        kIndexFile
    );
  }
}

std::vector<WeightFile> read_shards(const fs::path& folder, const std::string& index_bytes) {
  const fs::path index = folder / kIndexFile;
  std::map<std::string, TensorNames> names_by_file;
  for (ShardIndexEntry& entry : parse_shard_index(index_bytes, index.string())) {
    names_by_file[entry.file].insert(std::move(entry.tensor));
  }
  std::error_code code;
  if (!names_by_file.contains(std::string(kSingleFile)) && fs::exists(folder / kSingleFile, code)) {
    throw Error(
        Fault::model,
        folder.string(),
        "got both {} and an index of other files, expected one of them; remove the one that is "
        "stale",
        kSingleFile
    );
  }
  std::vector<WeightFile> shards;
  for (const auto& [file, names] : names_by_file) {
    require_shard(folder / file, index);
    shards.push_back(open_file(folder / file));
    require_same_tensors(shards.back(), names);
  }
  return shards;
}

std::vector<fs::path> safetensors_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (is_weights_file(at->path())) {
      files.push_back(at->path());
    }
  }
  if (code) {
    throw Error(Fault::io, folder.string(), "listing the folder failed: {}", code.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

fs::path only_file(const fs::path& folder) {
  const std::vector<fs::path> files = safetensors_files(folder);
  const fs::path single = folder / kSingleFile;
  if (std::find(files.begin(), files.end(), single) != files.end()) {
    return single;
  }
  if (files.empty()) {
    throw Error(
        Fault::model,
        folder.string(),
        "got a folder without weights, expected {} or {}; other formats are not read",
        kSingleFile,
        kIndexFile
    );
  }
  if (files.size() > 1) {
    throw Error(
        Fault::model,
        folder.string(),
        "got {} safetensors files ({}, {} ...) without an index, expected {}; get it",
        files.size(),
        files[0].filename().string(),
        files[1].filename().string(),
        kIndexFile
    );
  }
  return files.front();
}

}  // namespace

std::vector<WeightFile> find_weight_files(const fs::path& folder) {
  const std::optional<std::string> index =
      read_file_if_present(folder / kIndexFile, Fault::model, kMaxIndexBytes);
  if (index) {
    return read_shards(folder, *index);
  }
  return {open_file(only_file(folder))};
}

bool same_file_bytes(const DataPosition& left, const DataPosition& right, uint64_t bytes) {
  std::ifstream left_in(left.file.path, std::ios::binary);
  std::ifstream right_in(right.file.path, std::ios::binary);
  left_in.seekg(static_cast<std::streamoff>(left.file.data_begin + left.begin));
  right_in.seekg(static_cast<std::streamoff>(right.file.data_begin + right.begin));
  std::string left_block;
  std::string right_block;
  for (uint64_t rest = bytes; rest > 0; rest -= left_block.size()) {
    left_block.resize(std::min(kCompareBlock, rest));
    right_block.resize(left_block.size());
    left_in.read(left_block.data(), static_cast<std::streamsize>(left_block.size()));
    right_in.read(right_block.data(), static_cast<std::streamsize>(right_block.size()));
    if (!left_in || !right_in) {
      const fs::path& failed = left_in ? right.file.path : left.file.path;
      throw Error(Fault::io, failed.string(), "reading failed; check the disk");
    }
    if (left_block != right_block) {
      return false;
    }
  }
  return true;
}

}  // namespace whimbrel
