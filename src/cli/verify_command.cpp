#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "engine/verify_reference.h"
#include "engine/verify_text.h"
#include "weights/reference_file.h"

namespace whimbrel {

namespace {

struct VerifyFlags {
  std::string model;
  std::string record;
  std::string reference;
  bool json = false;
};

/// Prints results as they come, or keeps them for one line of JSON.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void add(verify::CheckResult result) {
    if (!json_) {
      write_stdout(
          fmt::format(
              "{:<19} {:<15} {}\n",
              result.check,
              verify::outcome_name(result.outcome),
              result.detail
          )
      );
    }
    results_.push_back(std::move(result));
  }

  bool all_passed() const { return verify::all_passed(results_); }

  /// Prints what is left; throws Error(Fault::check) naming the checks that failed.
  void finish(const Frontend& frontend, std::string_view ops) const {
    if (json_) {
      write_stdout(json_line(to_json(frontend, ops)));
    }
    if (!all_passed()) {
      const std::vector<std::string> failures = failed_checks();
      throw Error(
          Fault::check,
          "verify",
          "{} of {} checks failed: {}; don't trust this checkpoint with this build",
          failures.size(),
          results_.size(),
          fmt::join(failures, ", ")
      );
    }
  }

 private:
  std::vector<std::string> failed_checks() const {
    std::vector<std::string> failures;
    for (const verify::CheckResult& result : results_) {
      if (result.outcome == verify::Outcome::failed) {
        failures.push_back(result.check);
      }
    }
    return failures;
  }

  Json to_json(const Frontend& frontend, std::string_view ops) const {
    Json checks = Json::array();
    for (const verify::CheckResult& result : results_) {
      checks.push_back(
          {{"check", result.check},
           {"result", verify::outcome_name(result.outcome)},
           {"detail", result.detail},
           {"figures", result.figures}}
      );
    }
    return {
        {"model_type", frontend.config.model_type},
        {"passed", all_passed()},
        {"checks", checks},
        {"build", build_json(ops)}
    };
  }

  bool json_;
  std::vector<verify::CheckResult> results_;
};

/// The reference that a user names, or the one that came with the checkpoint. Who records one
/// compares with none.
std::optional<verify::Reference> find_reference(
    const VerifyFlags& flags, const std::filesystem::path& folder
) {
  if (!flags.reference.empty()) {
    return verify::read_reference(flags.reference);
  }
  std::error_code unreadable;
  if (flags.record.empty() && std::filesystem::exists(folder / kReferenceFile, unreadable)) {
    return verify::read_reference(folder / kReferenceFile);
  }
  return std::nullopt;
}

std::optional<verify::Inputs> check_frontend(
    const Frontend& frontend, const ChatTemplate& chat_template, Report& report
) {
  report.add(verify::check_tokenizer(frontend));
  report.add(verify::check_stop_ids(frontend));
  verify::TemplateCheck made = verify::check_template(frontend, chat_template);
  report.add(std::move(made.result));
  return std::move(made.inputs);
}

void record(
    const std::string& file,
    const Frontend& frontend,
    std::string_view ops,
    std::span<const verify::Run> runs
) {
  verify::write_reference(
      file,
      verify::reference_arrays(runs),
      {{"model_type", frontend.config.model_type}, {"build", build_json(ops).dump()}}
  );
}

/// Loads the weights, checks the model, and records its stages where that is asked for.
void verify_weights(
    const VerifyFlags& flags,
    const Frontend& frontend,
    const verify::Inputs& inputs,
    const std::optional<verify::Reference>& reference,
    Report& report
) {
  const Engine engine = load_model(frontend, inputs.largest(), {}, {});
  const std::vector<verify::Run> runs = verify::run_inputs(engine.model(), inputs);
  verify::check_model(
      {frontend, engine.model(), engine.dtype(), inputs},
      runs,
      reference,
      [&report](verify::CheckResult result) { report.add(std::move(result)); }
  );
  if (!flags.record.empty() && report.all_passed()) {
    record(flags.record, frontend, engine.ops_name(), runs);
  }
}

void run_verify(const VerifyFlags& flags) {
  leave_on_interrupt();
  if (!flags.record.empty()) {
    verify::require_writable(flags.record);
  }
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  const ChatTemplate chat_template = ChatTemplate::load(frontend.config.folder, frontend.tokenizer);
  const std::optional<verify::Reference> reference = find_reference(flags, frontend.config.folder);
  Report report(flags.json);
  const std::optional<verify::Inputs> inputs = check_frontend(frontend, chat_template, report);
  if (inputs && reference) {
    verify::require_comparable(*reference, frontend.config.model_type, *inputs);
  }
  if (inputs) {
    verify_weights(flags, frontend, *inputs, reference, report);
  }
  report.finish(frontend, requested_ops_name());
}

}  // namespace

void add_verify_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a model: that all ways to compute it agree, and with a stored reference"
  );
  const auto flags = std::make_shared<VerifyFlags>();
  command->add_option("-m,--model", flags->model, "Model folder (default: the bundled tiny model)");
  CLI::Option* reference = command->add_option(
      "--reference",
      flags->reference,
      fmt::format("Stages to compare with (default: {} in the model folder)", kReferenceFile)
  );
  command
      ->add_option(
          "--record", flags->record, "Where all checks pass, write the stages to this file"
      )
      ->excludes(reference);
  command->add_flag("--json", flags->json, "One line of JSON");
  command->footer(
      "Examples:\n"
      "  whimbrel verify -m DIR\n"
      "  whimbrel verify -m DIR --record reference.safetensors\n"
      "  whimbrel verify -m DIR --reference reference.safetensors"
  );
  command->callback([flags] { run_verify(*flags); });
}

}  // namespace whimbrel
