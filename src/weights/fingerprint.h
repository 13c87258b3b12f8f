#pragma once

#include <filesystem>
#include <string>

namespace whimbrel {

/// SHA-256, as hex digits, over what decides a checkpoint's logits: config.json, the files of its
/// picture and video preprocessing as far as they exist, and all weight files; of each the name,
/// the size and the bytes. The folder's own name doesn't count, nor does the tokenizer: who
/// compares logits compares ids. Throws Error(Fault::model) as find_weight_files does,
/// Error(Fault::io) where reading fails.
std::string checkpoint_sha256(const std::filesystem::path& folder);

}  // namespace whimbrel
