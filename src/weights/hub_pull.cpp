#include "weights/hub_pull.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "weights/hub_cache.h"
#include "weights/hub_client.h"
#include "weights/hub_file.h"
#include "weights/quote.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

/// A try that brought this much was no failure: the count starts again.
constexpr uint64_t kGoodProgress = uint64_t{1} << 20;
constexpr uint64_t kGoodProgressShare = 20;

/// One pull at work.
struct Pull {
  const HubSettings& settings;
  const HubModel& model;
  const PullEvents& events;
  const Cancelled& cancelled;
  HubClient client;
  HubModelFolder folder;
};

bool is_weights(const std::string& name) {
  return name.ends_with(".safetensors");
}

[[noreturn]] void throw_no_model(const HubModel& model, std::string_view lacking) {
  throw Error(
      Fault::model,
      model.repo,
      "got a repository without {}, expected a model in safetensors; other formats are not read",
      lacking
  );
}

/// The files to fetch, weights last: a snapshot that has its weights is whole.
std::vector<std::string> needed_files(const HubListing& listing, const HubModel& model) {
  std::vector<std::string> files;
  std::ranges::copy_if(listing.files, std::back_inserter(files), is_needed_file);
  std::ranges::sort(files, {}, [](const std::string& name) {
    return std::pair(is_weights(name), name);
  });
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const std::string_view name : {"config.json", "tokenizer.json"}) {
    if (std::ranges::find(files, name) == files.end()) {
      throw_no_model(model, name);
    }
  }
  if (!is_weights(files.back())) {
    throw_no_model(model, "*.safetensors");
  }
  return files;
}

fs::path incomplete_path(const Pull& pull, const HubFile& file) {
  return pull.folder.blobs() / (file.blob + ".incomplete");
}

/// Bytes of a file that an earlier pull left.
uint64_t present_bytes(const Pull& pull, const HubFile& file) {
  std::error_code code;
  const uint64_t size = fs::file_size(incomplete_path(pull, file), code);
  return code || size > file.size ? 0 : size;
}

void require_disk(const fs::path& folder, uint64_t bytes) {
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (!code && space.available < bytes) {
    throw Error(
        Fault::io,
        folder.string(),
        "got {} MB of free disk, expected {} MB for what is missing; free some space, or choose "
        "another folder by HF_HUB_CACHE",
        space.available / 1'000'000,
        bytes / 1'000'000 + 1
    );
  }
}

/// Refuses an answer whose head shows already that it can't become the file.
void check_head(const HttpHead& head, const HubFile& file, PartialFile& partial) {
  const std::string encoding = head.header("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    throw Error(
        Fault::network, file.name, "got it encoded as {}, expected plain bytes", quote(encoding)
    );
  }
  if (head.status == 200) {
    partial.restart();  // the whole file, whatever was asked for
  } else {
    const std::string expected =
        fmt::format("bytes {}-{}/{}", partial.size(), file.size - 1, file.size);
    const std::string range = head.header("content-range");
    if (range != expected) {
      throw Error(
          Fault::network, file.name, "got the range {}, expected {}", quote(range), expected
      );
    }
  }
  const uint64_t rest = file.size - partial.size();
  const uint64_t length = head.size("content-length").value_or(rest);
  if (length != rest) {
    throw Error(
        Fault::network,
        file.name,
        "got an answer of {} bytes, expected {}; the hub contradicts itself, try again later",
        length,
        rest
    );
  }
}

void take_bytes(
    const Pull& pull, const HubFile& file, PartialFile& partial, std::string_view more
) {
  if (more.size() > file.size - partial.size()) {
    partial.restart();
    throw Error(
        Fault::network, file.name, "got over {} bytes, expected no more; try again later", file.size
    );
  }
  partial.append(more);
  if (pull.events.on_bytes) {
    pull.events.on_bytes(partial.size());
  }
}

/// One request for what is missing; what went wrong is in the result's loss or status.
HttpResult fetch_once(
    Pull& pull, const HubFile& file, const std::string& commit, PartialFile& partial
) {
  const HttpSink sink{
      .on_head = [&](const HttpHead& head) { check_head(head, file, partial); },
      .on_body = [&](std::string_view more) { take_bytes(pull, file, partial, more); },
  };
  HttpResult result = pull.client.fetch(pull.model.repo, commit, file.name, partial.size(), sink);
  if (result.loss.empty() && (result.head.status == 200 || result.head.status == 206)) {
    result.loss = fmt::format("the transfer ended at byte {}", partial.size());
  }
  return result;
}

void fetch_rest(Pull& pull, const HubFile& file, const std::string& commit, PartialFile& partial) {
  const uint64_t good = std::min(kGoodProgress, file.size / kGoodProgressShare + 1);
  int tries = 0;
  bool begun_anew = false;
  while (partial.size() < file.size) {
    const uint64_t before = partial.size();
    const HttpResult result = fetch_once(pull, file, commit, partial);
    if (partial.size() == file.size) {
      return;
    }
    if (result.head.status == 416 && before > 0 && !begun_anew) {
      partial.restart();  // the hub's file is no longer the one that was begun
      begun_anew = true;
      continue;
    }
    tries = partial.size() >= before + good ? 1 : tries + 1;
    pull.client.wait_for_retry(result, pull.model, tries);
    if (pull.events.on_retry) {
      const std::string status = fmt::format("status {}", result.head.status);
      pull.events.on_retry(file.name, result.loss.empty() ? status : result.loss);
    }
  }
}

/// Whether the finished bytes are those that the hub's hash names.
std::string hash_of(const Pull& pull, const HubFile& file) {
  return hash_for_blob(incomplete_path(pull, file), file.blob, pull.cancelled);
}

void fetch_and_check(Pull& pull, const HubFile& file, const std::string& commit) {
  PartialFile partial(incomplete_path(pull, file));
  if (partial.size() > file.size) {
    partial.restart();
  }
  const bool resumed = partial.size() > 0;
  if (pull.events.on_file) {
    pull.events.on_file(file.name, file.size, partial.size());
  }
  fetch_rest(pull, file, commit, partial);
  std::string hash = hash_of(pull, file);
  if (hash != file.blob && resumed) {  // what was there may have been wrong
    partial.restart();
    fetch_rest(pull, file, commit, partial);
    hash = hash_of(pull, file);
  }
  if (hash != file.blob) {
    partial.remove();
    throw Error(
        Fault::network,
        file.name,
        "got bytes of the hash {}, expected {}; they were removed, pull again",
        hash,
        file.blob
    );
  }
  partial.move_to(pull.folder.blobs() / file.blob);
}

void fetch_blob(Pull& pull, const HubFile& file, const std::string& commit) {
  const auto on_wait = [&] {
    if (pull.events.on_wait) {
      pull.events.on_wait(file.name);
    }
  };
  const FileLock lock(pull.folder.locks() / (file.blob + ".lock"), on_wait, pull.cancelled);
  if (!has_blob(pull.folder, file.blob, file.size)) {
    fetch_and_check(pull, file, commit);
  } else if (pull.events.on_file) {
    pull.events.on_file(file.name, file.size, file.size);  // somebody else fetched it meanwhile
  }
}

/// Describes the files that the snapshot lacks.
std::vector<HubFile> describe_missing(
    Pull& pull, const std::vector<std::string>& names, const std::string& commit
) {
  std::vector<HubFile> missing;
  for (const std::string& name : names) {
    if (!has_file(pull.folder, commit, name)) {
      missing.push_back(pull.client.describe(pull.model.repo, commit, name));
    }
  }
  return missing;
}

void plan(const Pull& pull, const std::vector<HubFile>& files) {
  uint64_t total = 0;
  uint64_t present = 0;
  for (const HubFile& file : files) {
    if (!has_blob(pull.folder, file.blob, file.size)) {
      total += file.size;
      present += present_bytes(pull, file);
    }
  }
  require_disk(pull.folder.path(), total - present);
  if (pull.events.on_plan) {
    pull.events.on_plan(total, present);
  }
}

void fetch_missing(Pull& pull, const std::vector<HubFile>& files, const std::string& commit) {
  if (files.empty()) {
    return;
  }
  make_folders(pull.folder.blobs());
  make_folders(pull.folder.snapshots());  // the Python tools complain of a model without it
  plan(pull, files);
  for (const HubFile& file : files) {
    fetch_blob(pull, file, commit);
  }
  for (const HubFile& file : files) {
    put_into_snapshot(pull.folder, commit, file.name, file.blob, pull.settings.symlinks);
  }
}

fs::path pull_offline(const HubSettings& settings, const HubModel& model) {
  const std::optional<fs::path> snapshot = find_snapshot(settings.cache, model);
  if (!snapshot || !missing_file(*snapshot).empty()) {
    throw Error(
        Fault::network,
        model.repo,
        "got HF_HUB_OFFLINE and no whole copy in {}; unset it to download the model",
        settings.cache.string()
    );
  }
  return *snapshot;
}

}  // namespace

fs::path pull_model(
    const HubSettings& settings,
    const HubModel& model,
    const PullEvents& events,
    const Cancelled& cancelled
) {
  if (settings.offline) {
    return pull_offline(settings, model);
  }
  Pull pull{
      settings,
      model,
      events,
      cancelled,
      HubClient(settings, cancelled),
      HubModelFolder{settings.cache, model.repo}
  };
  const HubListing listing = pull.client.list_files(model);
  const std::vector<std::string> names = needed_files(listing, model);
  fetch_missing(pull, describe_missing(pull, names, listing.commit), listing.commit);
  write_ref(pull.folder, model.revision, listing.commit);
  return pull.folder.snapshots() / listing.commit;
}

}  // namespace whimbrel
