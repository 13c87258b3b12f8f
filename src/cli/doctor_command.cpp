#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/memory_estimate.h"
#include "engine/self_test.h"
#include "ops/device.h"
#include "weights/hub_settings.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

struct DoctorFlags {
  std::string model;
  bool json = false;
};

/// What the bundled model says to the self-test's picture, as transformers does.
constexpr std::string_view kBundledAnswer = "Blue";

Json optional_json(const std::optional<uint64_t>& value) {
  return value ? Json(*value) : Json();
}

Json cache_json() {
  const std::optional<fs::path> folder = find_hub_cache_folder();
  std::error_code unreadable;
  return {
      {"folder", folder ? Json(folder->string()) : Json()},
      {"exists", folder && fs::is_directory(*folder, unreadable)}
  };
}

Json machine_json() {
  return {
      {"device", ops::device_name()},
      {"threads", ops::threads()},
      {"memory",
       {{"available", optional_json(available_memory())},
        {"total", optional_json(total_memory())}}},
      {"cache", cache_json()},
      {"token", {{"found", !hub_token().empty()}}}  // and never the token itself
  };
}

/// What a folder's files say, and, of the bundled model, what it answers.
std::vector<Check> check_model(const fs::path& folder, bool bundled) {
  std::optional<Frontend> frontend;
  std::vector<Check> checks = {run_check("model", [&] {
    frontend.emplace(load_frontend(folder));
    return folder.string();
  })};
  if (!frontend) {
    return checks;
  }
  std::ranges::copy(check_frontend(*frontend), std::back_inserter(checks));
  if (bundled) {
    checks.push_back(check_answer(*frontend, requested_ops(), kBundledAnswer));
  }
  return checks;
}

/// Nothing where no model was asked for and the bundled one isn't installed.
std::optional<fs::path> model_folder(const DoctorFlags& flags) {
  try {
    return find_model_folder(flags.model);
  } catch (const Error&) {
    if (!flags.model.empty()) {
      throw;
    }
    return std::nullopt;
  }
}

std::vector<Check> all_checks(const DoctorFlags& flags) {
  const std::unique_ptr<const ops::Ops> ops = ops::make_ops(requested_ops(), ops::mx::float32);
  std::vector<Check> checks = check_ops(*ops);
  checks.push_back(check_picture());
  try {
    if (const std::optional<fs::path> folder = model_folder(flags)) {
      std::ranges::copy(check_model(*folder, flags.model.empty()), std::back_inserter(checks));
    }
  } catch (const Error& error) {
    checks.push_back({.name = "model", .detail = error.what()});
  }
  return checks;
}

Json checks_json(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back(
        {{"name", check.name},
         {"ok", check.ok},
         {"detail", check.detail},
         {"ms", check.milliseconds}}
    );
  }
  return list;
}

std::string memory_text(const Json& memory) {
  const auto text = [](const Json& bytes) {
    return bytes.is_null() ? "unknown" : size_text(bytes.get<uint64_t>());
  };
  return fmt::format("{} available of {}", text(memory["available"]), text(memory["total"]));
}

std::string cache_text(const Json& cache) {
  if (cache["folder"].is_null()) {
    return "none: there is no home folder; set HF_HOME to where models shall be kept";
  }
  return cache["folder"].get<std::string>() + (cache["exists"] ? "" : " (not there yet)");
}

std::string doctor_text(const Json& json) {
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<15}{}\n", name, value);
  };
  const Json& build = json["build"];
  line(
      "version",
      fmt::format("{} {}", build["version"].get<std::string>(), build["commit"].get<std::string>())
  );
  for (const char* key : {"mlx", "backend", "ops", "isa", "blas"}) {
    line(key, build[key].get<std::string>());
  }
  line("device", json["device"].get<std::string>());
  line("threads", json["threads"].dump());
  line("memory", memory_text(json["memory"]));
  line("cache", cache_text(json["cache"]));
  line("token", json["token"]["found"] ? "found" : "none");
  text += "\n";
  for (const Json& check : json["checks"]) {
    text += fmt::format(
        "{:<7}{:<15}{}\n",
        check["ok"] ? "ok" : "failed",
        check["name"].get<std::string>(),
        check["detail"].get<std::string>()
    );
  }
  return text;
}

void require_healthy(const std::vector<Check>& checks) {
  const auto failed = [](const Check& check) { return !check.ok; };
  const auto first = std::ranges::find_if(checks, failed);
  if (first != checks.end()) {
    throw Error(
        Fault::check,
        "doctor",
        "got {} of {} checks failed, expected none; the first is {}: {}",
        std::ranges::count_if(checks, failed),
        checks.size(),
        first->name,
        first->detail
    );
  }
}

void run_doctor(const DoctorFlags& flags) {
  Json json = machine_json();
  json["build"] = build_json(requested_ops_name());
  const std::vector<Check> checks = all_checks(flags);
  json["checks"] = checks_json(checks);
  write_stdout(flags.json ? json_line(json) : doctor_text(json));
  require_healthy(checks);
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine offers, and test the installation");
  const auto flags = std::make_shared<DoctorFlags>();
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_flag("--json", flags->json, "One line of JSON");
  command->footer(
      "Exit codes: 0 all is well, 1 a check failed.\n"
      "Examples:\n"
      "  whimbrel doctor\n"
      "  whimbrel doctor -m DIR --json"
  );
  command->callback([flags] { run_doctor(*flags); });
}

}  // namespace whimbrel
