#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weights/hub_names.h"

namespace whimbrel {

/// The folder of one model in the cache that the Python tools share:
///   blobs/HASH                         files by content
///   snapshots/COMMIT/FILE              links to them
///   refs/REVISION                      the commit of a branch or tag
struct HubModelFolder {
  std::filesystem::path cache;
  std::string repo;  // "owner/name"

  std::filesystem::path path() const;  // cache/models--owner--name
  std::filesystem::path blobs() const;
  std::filesystem::path snapshots() const;
  std::filesystem::path ref(const std::string& revision) const;
  std::filesystem::path locks() const;  // cache/.locks/models--owner--name
};

/// The snapshot folder of a revision, whether or not all its files are there; nothing where the
/// cache has none. Throws Error(Fault::model) where a ref holds no commit.
std::optional<std::filesystem::path> find_snapshot(
    const std::filesystem::path& cache, const HubModel& model
);

/// The first file that a snapshot lacks to be loaded, such as "config.json" or a shard that its
/// index names; empty where it is whole.
std::string missing_file(const std::filesystem::path& snapshot);

/// Whether a snapshot holds this file. Throws Error(Fault::io) where it is a link that leads out of
/// the model's folder and the cache.
bool has_file(const HubModelFolder& folder, const std::string& commit, const std::string& name);

/// Whether a blob is there in its full size. Throws as has_file.
bool has_blob(const HubModelFolder& folder, const std::string& blob, uint64_t size);

/// Puts a blob under its name into a snapshot: by a relative link, or as a file where links are not
/// wanted or the file system has none.
void put_into_snapshot(
    const HubModelFolder& folder,
    const std::string& commit,
    const std::string& name,
    const std::string& blob,
    bool symlinks
);

/// Notes that a branch or tag stands at a commit; nothing for a revision that is a commit.
void write_ref(
    const HubModelFolder& folder, const std::string& revision, const std::string& commit
);

/// One snapshot in the cache.
struct CachedRevision {
  std::string repo = {};
  std::string commit = {};
  std::vector<std::string> refs = {};  // branches and tags that stand at it, sorted
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::filesystem::path path = {};
  std::string missing = {};  // see missing_file
};

/// All models' snapshots, sorted by name, then commit. An absent cache has none.
std::vector<CachedRevision> list_cached(const std::filesystem::path& cache);

/// Bytes of a model's folder on disk, unfinished downloads included.
uint64_t cached_bytes(const HubModelFolder& folder);

/// Removes a model's folder with its blobs, and its locks.
void remove_cached(const HubModelFolder& folder);

}  // namespace whimbrel
