#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/input_files.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/model_folder.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/prepare.h"
#include "generate/profile.h"

namespace whimbrel {

namespace {

constexpr std::string_view kPicturePrompt = "Describe this image.";
constexpr std::string_view kFiller = "The heron stands in the shallow water and waits. ";

struct ProfileFlags {
  std::string model;
  std::string image;
  std::string messages;
  ProfileOptions options;
  bool json = false;
  bool force = false;
};

void require_two_contexts(const std::vector<int>& contexts) {
  if (contexts.size() != 2 || contexts[0] < 1 || contexts[0] >= contexts[1]) {
    throw Error(
        Fault::usage,
        "--contexts",
        "got {}, expected two numbers of tokens, the smaller one first",
        fmt::join(contexts, ",")
    );
  }
}

void require_context(const ProfileOptions& options, int context) {
  const int longest = options.contexts[1];
  if (longest > context - options.steps) {
    throw Error(
        Fault::input,
        "--contexts",
        "got {} tokens and {} steps behind them, expected at most the model's context of {}",
        longest,
        options.steps,
        context
    );
  }
}

ChatInput picture_question(const std::string& image) {
  ChatInput input;
  const Json content = Json::array(
      {Json::object({{"type", "image"}}),
       Json::object({{"type", "text"}, {"text", std::string(kPicturePrompt)}})}
  );
  input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
  input.media.push_back(read_media_file(image, image, MediaKind::image));
  return input;
}

/// What stands in front of the filler; nothing where no flag names it.
Prompt front_prompt(const ProfileFlags& flags, const Frontend& frontend) {
  if (flags.image.empty() && flags.messages.empty()) {
    return {};
  }
  const ChatTemplate chat_template = ChatTemplate::load(frontend.config.folder, frontend.tokenizer);
  const ChatInput input =
      flags.image.empty() ? read_messages_file(flags.messages) : picture_question(flags.image);
  return prepare_chat(frontend, chat_template, input).prompt;
}

/// `own_bytes`: what operations hold beside MLX.
Json step_json(const StepProfile& step, uint64_t own_bytes, int steps) {
  Json ops = Json::object();
  for (const auto& [name, op] : step.ops) {
    ops[name] = {{"count", op.count}, {"bytes", op.bytes}};
  }
  return {
      {"context", step.context},
      {"nodes", step.nodes},
      {"own_launches", step.own_launches},
      {"bytes",
       {{"weights", step.bytes.weights},
        {"cache", step.bytes.cache},
        {"activations", step.bytes.activations},
        {"inputs", step.bytes.inputs}}},
      {"memory", {{"active", step.active_memory + own_bytes}, {"step", step.step_memory}}},
      {"ms", {{"host", step.host_ms}, {"device", step.device_ms}, {"steps", steps}}},
      {"ops", ops}
  };
}

Json op_json(const StepProfile& step, const std::string& name) {
  const auto found = step.ops.find(name);
  const OpCount op = found == step.ops.end() ? OpCount{} : found->second;
  return {{"count", op.count}, {"bytes", op.bytes}};
}

/// Kinds of operations that don't stand in both steps alike.
Json differences_json(const StepProfile& a, const StepProfile& b) {
  std::map<std::string, OpCount> all = a.ops;
  all.insert(b.ops.begin(), b.ops.end());
  Json differences = Json::object();
  for (const auto& [name, op] : all) {
    const Json pair = Json::array({op_json(a, name), op_json(b, name)});
    if (pair[0] != pair[1]) {
      differences[name] = pair;
    }
  }
  return differences;
}

Json profile_json(const std::vector<StepProfile>& steps, const Engine& engine, int timed) {
  Json contexts = Json::array();
  for (const StepProfile& step : steps) {
    contexts.push_back(step_json(step, engine.ops().own_bytes(), timed));
  }
  return {
      {"dtype", dtype_text(engine.dtype())},
      {"contexts", contexts},
      {"differences", differences_json(steps[0], steps[1])},
      {"build", build_json(engine.ops_name())}
  };
}

std::string row_text(std::string_view name, double a, double b, int digits) {
  return fmt::format(
      "{:<28}{:>16.{}f}{:>16.{}f}{:>+16.{}f}\n", name, a, digits, b, digits, b - a, digits
  );
}

std::string profile_text(const Json& json) {
  const Json& a = json["contexts"][0];
  const Json& b = json["contexts"][1];
  std::string text = fmt::format(
      "{:<28}{:>16}{:>16}{:>16}\n",
      "one decode step behind",
      a["context"].dump() + " tokens",
      b["context"].dump() + " tokens",
      "difference"
  );
  const auto row = [&](std::string_view name, const char* path, int digits = 0) {
    const Json::json_pointer at(path);
    text += row_text(name, a[at].get<double>(), b[at].get<double>(), digits);
  };
  row("graph nodes", "/nodes");
  row("own launches", "/own_launches");
  row("bytes of weights", "/bytes/weights");
  row("bytes of cache", "/bytes/cache");
  row("bytes of activations", "/bytes/activations");
  row("bytes of host inputs", "/bytes/inputs");
  row("bytes held before", "/memory/active");
  row("bytes taken by the step", "/memory/step");
  row("host ms (median)", "/ms/host", 3);
  row("device ms (median)", "/ms/device", 3);
  text += json["differences"].empty() ? "\nevery kind of operation is the same at both\n"
                                      : "\noperations that differ\n";
  for (const auto& [name, pair] : json["differences"].items()) {
    const auto figure = [&pair](int at, const char* key) { return pair[at][key].get<double>(); };
    text += row_text(name + " count", figure(0, "count"), figure(1, "count"), 0);
    text += row_text(name + " output bytes", figure(0, "bytes"), figure(1, "bytes"), 0);
  }
  return text;
}

void run_profile(const ProfileFlags& flags) {
  leave_on_interrupt();
  const std::vector<int>& contexts = flags.options.contexts;
  require_two_contexts(contexts);
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  require_context(flags.options, frontend.shape.max_position_embeddings);
  const Prompt front = front_prompt(flags, frontend);
  const std::vector<int32_t> filler = frontend.tokenizer.encode_text(kFiller);
  const Prompt longest = fill_prompt(fill_prompt(front, filler, contexts[0]), filler, contexts[1]);
  const Engine engine = load_model(
      frontend, longest, {.max_tokens = flags.options.steps + 1}, {.force = flags.force}
  );
  const std::vector<StepProfile> steps =
      profile_steps(engine.model(), front, filler, flags.options);
  const Json json = profile_json(steps, engine, flags.options.steps);
  write_stdout(flags.json ? json_line(json) : profile_text(json));
}

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("profile", "Say what a decode step costs, at two contexts side by side");
  const auto flags = std::make_shared<ProfileFlags>();
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--image", flags->image, "Picture in front of the context");
  command->add_option("--messages", flags->messages, "OpenAI messages in front of the context")
      ->excludes("--image");
  command->add_option("--contexts", flags->options.contexts, "Two numbers of tokens")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--steps", flags->options.steps, "Steps that are timed at each context")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_flag("--force", flags->force, "Go on though memory looks too small");
  command->add_flag("--json", flags->json, "One line of JSON");
  command->footer(
      "Examples:\n"
      "  whimbrel profile -m DIR\n"
      "  whimbrel profile -m DIR --image photo.jpg --contexts 256,1024 --json"
  );
  command->callback([flags] { run_profile(*flags); });
}

}  // namespace whimbrel
