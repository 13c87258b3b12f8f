#pragma once

#include <filesystem>
#include <string>

namespace whimbrel {

/// The folder of the model that `-m` names: a folder, or the name of one in the models folder
/// (WHIMBREL_MODELS, or that of the installation). Without a name it is the bundled tiny model,
/// which is said on stderr. Throws Error(Fault::model).
std::filesystem::path find_model_folder(const std::string& name);

}  // namespace whimbrel
