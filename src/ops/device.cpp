#include "ops/device.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mlx/device.h>
#include <mlx/mlx.h>

#include <atomic>
#include <variant>

#include "base/cores.h"

namespace whimbrel::ops {

namespace {

std::atomic<int> chosen_threads = 0;  // 0: none was asked for

/// A function that only some BLAS libraries have, so it is looked up while running.
template <typename Function>
Function find_symbol(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

std::string file_of_symbol(const char* name) {
  Dl_info info;
  void* symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == nullptr || dladdr(symbol, &info) == 0) {
    return "";
  }
  return info.dli_fname;
}

}  // namespace

std::string_view backend_name() {
  if (mlx::core::default_device() == mlx::core::Device::cpu) {
    return "cpu";
  }
  return mlx::core::metal::is_available() ? "metal" : "cuda";
}

std::string blas_description() {
  const std::string file = file_of_symbol("cblas_sgemm");
  if (file.empty()) {
    return "none";
  }
  if (file.find("openblas") == std::string::npos) {
    return file;
  }
  const auto config = find_symbol<char* (*)()>("openblas_get_config");
  const auto core = find_symbol<char* (*)()>("openblas_get_corename");
  if (config == nullptr || core == nullptr) {
    return "OpenBLAS";
  }
  const std::string_view text = config();
  const size_t end_of_version = text.find(' ', text.find(' ') + 1);
  return fmt::format("{} ({})", text.substr(0, end_of_version), core());
}

cpu::Isa chosen_isa() {
  const char* requested = std::getenv("WHIMBREL_ISA");
  return cpu::choose_isa(requested == nullptr ? "" : requested);
}

std::string device_name() {
  const auto& info = mlx::core::device_info();
  const auto found = info.find("device_name");
  const std::string* name =
      found == info.end() ? nullptr : std::get_if<std::string>(&found->second);
  return name == nullptr ? "unknown" : *name;
}

int threads() {
  return chosen_threads > 0 ? chosen_threads.load() : usable_cores();
}

void set_threads(int threads) {
  chosen_threads = threads;
  const auto set = find_symbol<void (*)(int)>("openblas_set_num_threads");
  if (set != nullptr) {
    set(threads);
  }
}

}  // namespace whimbrel::ops
