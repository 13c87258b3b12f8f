#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// One line of the weight_map in model.safetensors.index.json.
struct ShardIndexEntry {
  std::string tensor;
  std::string file;  // a plain name, known to lie in the index's own folder
};

/// Reads an index. Its metadata isn't used. Throws Error(Fault::model) naming `where` on anything
/// that is no weight_map of file names, on a tensor named twice, and on files outside the folder or
/// of another format than safetensors.
std::vector<ShardIndexEntry> parse_shard_index(std::string_view json, std::string_view where);

}  // namespace whimbrel
