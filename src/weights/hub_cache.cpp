#include "weights/hub_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "weights/hub_file.h"
#include "weights/quote.h"
#include "weights/reference_file.h"
#include "weights/shard_index.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kModelPrefix = "models--";
constexpr std::string_view kSeparator = "--";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr uint64_t kMaxRefBytes = 256;
constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;

std::string folder_name(const std::string& repo) {
  std::string name = std::string(kModelPrefix) + repo;
  return name.replace(name.find('/'), 1, kSeparator);
}

/// "owner/name" of a folder in the cache; nothing for what is no model of such a name.
std::optional<std::string> repo_of(const std::string& folder) {
  if (!folder.starts_with(kModelPrefix)) {
    return std::nullopt;
  }
  std::string repo = folder.substr(kModelPrefix.size());
  const size_t separator = repo.find(kSeparator);
  if (separator == std::string::npos) {
    return std::nullopt;
  }
  repo.replace(separator, kSeparator.size(), "/");
  return parse_hub_model(repo) ? std::optional(repo) : std::nullopt;
}

std::string trimmed_ref(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with(' ')) {
    text.pop_back();
  }
  return text;
}

/// What lies in a folder, sorted; nothing where there is no such folder.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(folder, code);
  while (!code && entry != fs::directory_iterator()) {
    entries.push_back(entry->path());
    entry.increment(code);
  }
  if (code && code != std::errc::no_such_file_or_directory) {
    throw_io(folder, "listing it", code.value());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// The regular files below a folder, and links to some; none where there is no such folder.
std::vector<fs::path> files_under(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, code);
  while (!code && entry != fs::recursive_directory_iterator()) {
    std::error_code dangling;  // a link to nothing is no file, and no failure
    if (entry->is_regular_file(dangling)) {
      files.push_back(entry->path());
    }
    entry.increment(code);
  }
  if (code && code != std::errc::no_such_file_or_directory) {
    throw_io(folder, "listing it", code.value());
  }
  return files;
}

/// Bytes of a file; 0 where another process has just removed it.
uint64_t size_of(const fs::path& file) {
  std::error_code code;
  const uint64_t bytes = fs::file_size(file, code);
  if (code == std::errc::no_such_file_or_directory) {
    return 0;
  }
  if (code) {
    throw_io(file, "reading its size", code.value());
  }
  return bytes;
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const fs::path::const_iterator end =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

/// True where `path` is a file, false where it isn't there (or is a link to nothing).
bool is_own_file(const HubModelFolder& folder, const fs::path& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) {
    return false;
  }
  const fs::path target = fs::canonical(path, code);
  const bool own = !code && (is_inside(target, fs::weakly_canonical(folder.path(), code)) ||
                             is_inside(target, fs::weakly_canonical(folder.cache, code)));
  if (!own) {
    throw Error(
        Fault::io,
        path.string(),
        "got a link that leads out of the cache to {}, expected one of its files; remove the link",
        quote(target.string())
    );
  }
  return true;
}

/// Where a copy is made of a file that can't be linked.
void place_file(const fs::path& blob, const fs::path& file) {
  std::error_code code;
  fs::create_hard_link(blob, file, code);
  if (code) {
    fs::copy_file(blob, file, code);
  }
  if (code) {
    throw_io(file, "writing", code.value());
  }
}

/// Takes the place of what is at `target` in one step.
void replace(const fs::path& source, const fs::path& target) {
  std::error_code code;
  fs::rename(source, target, code);
  if (code) {
    throw_io(target, "writing", code.value());
  }
}

/// A name beside `path` that no other process uses.
fs::path beside(const fs::path& path) {
  fs::path other = path;
  other += fmt::format(".{}.tmp", getpid());
  std::error_code code;
  fs::remove(other, code);
  return other;
}

/// The commit that a ref holds; nothing where it holds something else.
std::optional<std::string> commit_in(const fs::path& ref) {
  if (size_of(ref) > kMaxRefBytes) {
    return std::nullopt;
  }
  std::string commit = trimmed_ref(read_file(ref, Fault::model, kMaxRefBytes));
  return is_commit(commit) ? std::optional(std::move(commit)) : std::nullopt;
}

/// A file that holds no commit names no snapshot: using it as a revision says what is wrong.
std::map<std::string, std::vector<std::string>> refs_by_commit(const HubModelFolder& folder) {
  std::map<std::string, std::vector<std::string>> refs;
  const fs::path root = folder.path() / "refs";
  for (const fs::path& file : files_under(root)) {
    if (const std::optional<std::string> commit = commit_in(file)) {
      refs[*commit].push_back(file.lexically_relative(root).string());
    }
  }
  for (auto& [commit, names] : refs) {
    std::sort(names.begin(), names.end());
  }
  return refs;
}

/// A shard that the index of a snapshot names and the snapshot lacks.
std::string missing_shard(const fs::path& snapshot, const std::string& index) {
  std::set<std::string> shards;
  try {
    for (ShardIndexEntry& entry : parse_shard_index(index, kIndexFile)) {
      shards.insert(std::move(entry.file));
    }
  } catch (const Error&) {
    return kIndexFile;  // loading it says what is wrong
  }
  std::error_code code;
  const auto is_missing = [&](const std::string& shard) {
    return !fs::is_regular_file(snapshot / shard, code);
  };
  const std::set<std::string>::const_iterator found = std::ranges::find_if(shards, is_missing);
  return found == shards.end() ? std::string() : *found;
}

CachedRevision read_revision(const fs::path& snapshot) {
  CachedRevision revision;
  revision.commit = snapshot.filename();
  revision.path = snapshot;
  for (const fs::path& file : files_under(snapshot)) {
    ++revision.files;
    revision.bytes += size_of(file);
  }
  revision.missing = missing_file(snapshot);
  return revision;
}

std::vector<CachedRevision> read_model(const HubModelFolder& folder) {
  std::map<std::string, std::vector<std::string>> refs = refs_by_commit(folder);
  std::vector<CachedRevision> revisions;
  for (const fs::path& snapshot : entries_of(folder.snapshots())) {
    if (!is_commit(snapshot.filename().string())) {
      continue;  // a file that the desktop left there
    }
    CachedRevision revision = read_revision(snapshot);
    revision.repo = folder.repo;
    revision.refs = refs[revision.commit];
    revisions.push_back(std::move(revision));
  }
  return revisions;
}

}  // namespace

fs::path HubModelFolder::path() const {
  return cache / folder_name(repo);
}
fs::path HubModelFolder::blobs() const {
  return path() / "blobs";
}
fs::path HubModelFolder::snapshots() const {
  return path() / "snapshots";
}
fs::path HubModelFolder::ref(const std::string& revision) const {
  return path() / "refs" / revision;
}
fs::path HubModelFolder::locks() const {
  return cache / ".locks" / folder_name(repo);
}

std::optional<fs::path> find_snapshot(const fs::path& cache, const HubModel& model) {
  const HubModelFolder folder{cache, model.repo};
  std::string commit = model.revision;
  if (!is_commit(commit)) {
    const fs::path ref = folder.ref(model.revision);
    const std::optional<std::string> text = read_file_if_present(ref, Fault::model, kMaxRefBytes);
    if (!text) {
      return std::nullopt;
    }
    commit = trimmed_ref(*text);
    if (!is_commit(commit)) {
      throw Error(
          Fault::model,
          ref.string(),
          "got {}, expected a commit of 40 hex digits; remove the file and pull again",
          quote(commit)
      );
    }
  }
  std::error_code code;
  const fs::path snapshot = folder.snapshots() / commit;
  return fs::is_directory(snapshot, code) ? std::optional(snapshot) : std::nullopt;
}

std::string missing_file(const fs::path& snapshot) {
  std::error_code code;
  for (const char* name : {"config.json", "tokenizer.json"}) {
    if (!fs::is_regular_file(snapshot / name, code)) {
      return name;
    }
  }
  const std::optional<std::string> index =
      read_file_if_present(snapshot / kIndexFile, Fault::model, kMaxIndexBytes);
  if (index) {
    return missing_shard(snapshot, *index);
  }
  const std::vector<fs::path> files = entries_of(snapshot);
  const bool weights = std::ranges::any_of(files, [&code](const fs::path& file) {
    return is_weights_file(file) && fs::is_regular_file(file, code);
  });
  return weights ? "" : "*.safetensors";
}

bool has_file(const HubModelFolder& folder, const std::string& commit, const std::string& name) {
  return is_own_file(folder, folder.snapshots() / commit / name);
}

bool has_blob(const HubModelFolder& folder, const std::string& blob, uint64_t size) {
  const fs::path path = folder.blobs() / blob;
  std::error_code code;
  return is_own_file(folder, path) && fs::file_size(path, code) == size;
}

void put_into_snapshot(
    const HubModelFolder& folder,
    const std::string& commit,
    const std::string& name,
    const std::string& blob,
    bool symlinks
) {
  const fs::path file = folder.snapshots() / commit / name;
  make_folders(file.parent_path());
  const fs::path fresh = beside(file);
  const fs::path target = folder.blobs() / blob;
  std::error_code code = std::make_error_code(std::errc::operation_not_supported);
  if (symlinks) {
    fs::create_symlink(target.lexically_relative(file.parent_path()), fresh, code);
  }
  if (code) {
    place_file(target, fresh);
  }
  replace(fresh, file);
}

void write_ref(
    const HubModelFolder& folder, const std::string& revision, const std::string& commit
) {
  if (is_commit(revision)) {
    return;
  }
  const fs::path ref = folder.ref(revision);
  const std::optional<std::string> old = read_file_if_present(ref, Fault::io, kMaxRefBytes);
  if (old == commit) {
    return;  // a cache that can't be written to may still be used
  }
  make_folders(ref.parent_path());
  const fs::path fresh = beside(folder.path() / "ref");  // in refs/ it would be taken for one
  PartialFile file(fresh);
  file.append(commit);
  file.move_to(ref);
}

std::vector<CachedRevision> list_cached(const fs::path& cache) {
  std::vector<CachedRevision> revisions;
  for (const fs::path& entry : entries_of(cache)) {
    if (const std::optional<std::string> repo = repo_of(entry.filename().string())) {
      std::vector<CachedRevision> more = read_model({cache, *repo});
      std::ranges::move(more, std::back_inserter(revisions));
    }
  }
  std::ranges::sort(revisions, {}, [](const CachedRevision& revision) {
    return std::tie(revision.repo, revision.commit);
  });
  return revisions;
}

uint64_t cached_bytes(const HubModelFolder& folder) {
  uint64_t bytes = 0;
  for (const fs::path& file : files_under(folder.path())) {
    std::error_code gone;
    bytes += fs::is_symlink(file, gone) ? 0 : size_of(file);
  }
  return bytes;
}

void remove_cached(const HubModelFolder& folder) {
  for (const fs::path& path : {folder.path(), folder.locks()}) {
    std::error_code code;
    fs::remove_all(path, code);
    if (code) {
      throw_io(path, "removing it", code.value());
    }
  }
}

}  // namespace whimbrel
