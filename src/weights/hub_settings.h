#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace whimbrel {

/// Reads one variable of the environment; nothing where it isn't set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The variables of this process. An empty one counts as not set.
std::optional<std::string> process_environment(const std::string& name);

/// How to reach the Hugging Face hub, by the variables that its Python tools read.
struct HubSettings {
  std::filesystem::path cache = {};                 // see hub_cache_folder
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a slash at its end
  std::string token = {};                           // see hub_token
  std::string ca_file = {};   // certificates: SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE
  bool offline = false;       // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
  bool symlinks = true;       // unless HF_HUB_DISABLE_SYMLINKS
  bool progress = true;       // unless HF_HUB_DISABLE_PROGRESS_BARS
  int etag_timeout = 10;      // seconds, HF_HUB_ETAG_TIMEOUT: for an answer about a file
  int download_timeout = 10;  // seconds, HF_HUB_DOWNLOAD_TIMEOUT: without a byte of a file
};

/// Throws Error(Fault::usage) that names the variable whose value can't be used.
HubSettings hub_settings(const Environment& environment = process_environment);

/// The folder of models that the Python tools share: HF_HUB_CACHE, else HF_HOME/hub, else
/// XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Throws Error(Fault::usage) where
/// none of them, nor HOME, is set.
std::filesystem::path hub_cache_folder(const Environment& environment = process_environment);

/// The same; nothing where none of them is set.
std::optional<std::filesystem::path> find_hub_cache_folder(
    const Environment& environment = process_environment
);

/// HF_TOKEN, else the text of the file HF_TOKEN_PATH, else of HF_HOME/token; empty where there is
/// none. Throws Error(Fault::usage) where it can't be one.
std::string hub_token(const Environment& environment = process_environment);

}  // namespace whimbrel
