#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace whimbrel {

/// A model on the Hugging Face hub: `repo` is "owner/name", `revision` a branch, tag or commit.
struct HubModel {
  std::string repo;
  std::string revision = "main";
};

/// "owner/name", "owner/name@revision", or "name", which stands for mlx-community/name. Nothing
/// where the text has another form: the rules are the hub's own (letters, digits, "-_.", at most 96
/// characters a part, no "--" or "..").
std::optional<HubModel> parse_hub_model(std::string_view text);

/// The same. Throws Error(Fault::usage).
HubModel require_hub_model(std::string_view text);

/// Whether a name of a branch, tag or commit can be one in git and is safe as a path.
bool is_revision(std::string_view text);

/// Whether the text is a full commit hash, 40 lower-case hex digits.
bool is_commit(std::string_view text);

/// Whether a file name that a hub sent stays below the folder it is put in, on any system: it is
/// relative, has no "..", backslash, drive, control character or empty part.
bool is_safe_file_name(std::string_view name);

/// Whether running a model takes this file of its repository.
bool is_needed_file(std::string_view name);

/// The name of a blob: the hash that an ETag states, 40 hex digits (git's SHA-1) or 64 (SHA-256).
/// Nothing where it states none.
std::optional<std::string> blob_name(std::string_view etag);

}  // namespace whimbrel
