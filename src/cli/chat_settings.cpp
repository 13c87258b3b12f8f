#include "cli/chat_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace whimbrel {

namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view expected) {
  const std::string_view got = value.empty() ? "nothing" : value;
  throw Error(Fault::usage, fmt::format("/set {}", name), "got {}, expected {}", got, expected);
}

template <typename Integer>
Integer to_integer(std::string_view name, std::string_view value) {
  Integer integer = 0;
  const auto [last, error] = std::from_chars(value.data(), value.data() + value.size(), integer);
  if (error != std::errc() || last != value.data() + value.size()) {
    constexpr auto kMost = std::numeric_limits<Integer>::max();
    refuse(name, value, fmt::format("a whole number of at most {}, or default", kMost));
  }
  return integer;
}

/// By JSON's rules, so that neither locale nor spelling leaves a choice.
double to_number(std::string_view name, std::string_view value) {
  const Json number = Json::parse(value, nullptr, false);
  if (!number.is_number()) {
    refuse(name, value, "a number, or default");
  }
  return number.get<double>();
}

using Change = void (*)(SamplingFlags& flags, std::string_view name, std::string_view value);
using Show = std::string (*)(const SamplingFlags& flags, const SamplingOptions& in_effect);

struct Setting {
  std::string_view name;
  void (*clear)(SamplingFlags& flags);
  Change change;
  Show show;
};

template <auto Flag>
void clear(SamplingFlags& flags) {
  (flags.*Flag).reset();
}

template <auto Flag>
void change_number(SamplingFlags& flags, std::string_view name, std::string_view value) {
  flags.*Flag = to_number(name, value);
}

template <auto Flag>
void change_integer(SamplingFlags& flags, std::string_view name, std::string_view value) {
  using Integer = std::decay_t<decltype(*(flags.*Flag))>;
  flags.*Flag = to_integer<Integer>(name, value);
}

void change_max_tokens(SamplingFlags& flags, std::string_view name, std::string_view value) {
  const int tokens = to_integer<int>(name, value);
  if (tokens < 1) {
    refuse(name, value, "at least 1");
  }
  flags.max_tokens = tokens;
}

template <auto Option>
std::string show(const SamplingFlags& /*flags*/, const SamplingOptions& in_effect) {
  return fmt::format("{}", in_effect.*Option);
}

std::string show_seed(const SamplingFlags& flags, const SamplingOptions& /*in_effect*/) {
  return flags.seed ? fmt::format("{}", *flags.seed) : "another for each answer";
}

std::string show_max_tokens(const SamplingFlags& flags, const SamplingOptions& /*in_effect*/) {
  return fmt::format("{}", flags.max_tokens.value_or(kDefaultMaxTokens));
}

template <auto Flag, auto Option>
constexpr Setting number_setting(std::string_view name) {
  return {name, clear<Flag>, change_number<Flag>, show<Option>};
}

using Flags = SamplingFlags;
using Options = SamplingOptions;

constexpr std::array kSettings = {
    Setting{"max_tokens", clear<&Flags::max_tokens>, change_max_tokens, show_max_tokens},
    number_setting<&Flags::temperature, &Options::temperature>("temperature"),
    Setting{"top_k", clear<&Flags::top_k>, change_integer<&Flags::top_k>, show<&Options::top_k>},
    number_setting<&Flags::top_p, &Options::top_p>("top_p"),
    number_setting<&Flags::min_p, &Options::min_p>("min_p"),
    number_setting<&Flags::repetition_penalty, &Options::repetition_penalty>("repetition_penalty"),
    number_setting<&Flags::presence_penalty, &Options::presence_penalty>("presence_penalty"),
    number_setting<&Flags::frequency_penalty, &Options::frequency_penalty>("frequency_penalty"),
    Setting{"seed", clear<&Flags::seed>, change_integer<&Flags::seed>, show_seed},
};

std::string names() {
  std::string names;
  for (const Setting& setting : kSettings) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", setting.name);
  }
  return names;
}

}  // namespace

SamplingFlags with_setting(
    SamplingFlags flags, std::string_view name, std::string_view value, const ModelConfig& config
) {
  const auto* setting = std::ranges::find(kSettings, name, &Setting::name);
  if (setting == kSettings.end()) {
    throw Error(Fault::usage, "/set", "got {}, expected one of {}", name, names());
  }
  if (value == "default") {
    setting->clear(flags);
  } else {
    setting->change(flags, name, value);
  }
  sampling_options(flags, config);  // refuses what is out of range
  return flags;
}

std::string settings_text(const SamplingFlags& flags, const ModelConfig& config) {
  const SamplingOptions in_effect = sampling_options(flags, config);
  std::string text;
  for (const Setting& setting : kSettings) {
    text += fmt::format("{} {}\n", setting.name, setting.show(flags, in_effect));
  }
  return text;
}

}  // namespace whimbrel
