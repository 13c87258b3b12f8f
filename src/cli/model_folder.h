#pragma once

#include <filesystem>
#include <string>

namespace whimbrel {

/// What --help says of -m.
inline constexpr const char* kModelHelp =
    "Model folder, or owner/name of a pulled model (default: the bundled tiny model)";

/// The folder of the model that `-m` names: a folder, or the name of one in the models folder
/// (WHIMBREL_MODELS, or that of the installation), or "owner/name[@revision]" in the Hugging Face
/// cache. Nothing is downloaded. Without a name it is the bundled tiny model, which is said on
/// stderr. Throws Error(Fault::model), with the `pull` that would bring the model.
std::filesystem::path find_model_folder(const std::string& name);

}  // namespace whimbrel
