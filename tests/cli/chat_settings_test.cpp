#include "cli/chat_settings.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

ModelConfig config() {
  ModelConfig config;
  config.generation = Json::parse(R"({"do_sample": true, "temperature": 0.7, "top_k": 20})");
  return config;
}

SamplingFlags set(std::string_view name, std::string_view value, const SamplingFlags& flags = {}) {
  return with_setting(flags, name, value, config());
}

std::string failure(std::string_view name, std::string_view value) {
  try {
    set(name, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  return "";
}

TEST(ChatSettings, each_name_sets_its_own_value) {
  EXPECT_EQ(set("temperature", "0.2").temperature, 0.2);
  EXPECT_EQ(set("top_p", "0.5").top_p, 0.5);
  EXPECT_EQ(set("min_p", "0.1").min_p, 0.1);
  EXPECT_EQ(set("top_k", "5").top_k, 5);
  EXPECT_EQ(set("repetition_penalty", "1.1").repetition_penalty, 1.1);
  EXPECT_EQ(set("presence_penalty", "-1").presence_penalty, -1);
  EXPECT_EQ(set("frequency_penalty", "2").frequency_penalty, 2);
  EXPECT_EQ(set("seed", "18446744073709551615").seed, UINT64_MAX);
  EXPECT_EQ(set("max_tokens", "7").max_tokens, 7);
}

TEST(ChatSettings, others_stay) {
  const SamplingFlags flags = set("top_k", "5", set("temperature", "0.2"));
  EXPECT_EQ(flags.temperature, 0.2);
  EXPECT_EQ(flags.top_p, std::nullopt);
}

TEST(ChatSettings, default_goes_back_to_the_models_own) {
  EXPECT_EQ(set("temperature", "default", set("temperature", "0.2")).temperature, std::nullopt);
  EXPECT_EQ(set("seed", "default", set("seed", "1")).seed, std::nullopt);
}

TEST(ChatSettings, an_unknown_name_is_refused_with_those_that_there_are) {
  EXPECT_EQ(
      failure("temprature", "1"),
      "[/set] got temprature, expected one of max_tokens, temperature, top_k, top_p, min_p, "
      "repetition_penalty, presence_penalty, frequency_penalty, seed"
  );
}

TEST(ChatSettings, what_is_no_number_is_refused) {
  for (const char* value : {"", "warm", "0.5x", "nan", "1e999", "0x1", "--1", "true", "[1]"}) {
    EXPECT_NE(failure("temperature", value), "") << value;
  }
  for (const char* value : {"", "1.5", "-1", "99999999999999999999", "1 2", "0x1"}) {
    EXPECT_NE(failure("seed", value), "") << value;
    EXPECT_NE(failure("max_tokens", value), "") << value;
  }
}

TEST(ChatSettings, what_is_out_of_range_is_refused) {
  EXPECT_NE(failure("temperature", "-0.1"), "");
  EXPECT_NE(failure("top_p", "1.5"), "");
  EXPECT_NE(failure("top_k", "-1"), "");
  EXPECT_NE(failure("presence_penalty", "3"), "");
  EXPECT_NE(failure("max_tokens", "0"), "");
}

TEST(ChatSettings, text_has_what_is_in_effect) {
  EXPECT_EQ(
      settings_text(set("top_p", "0.5", set("seed", "3")), config()),
      "max_tokens 1024\ntemperature 0.7\ntop_k 20\ntop_p 0.5\nmin_p 0\nrepetition_penalty 1\n"
      "presence_penalty 0\nfrequency_penalty 0\nseed 3\n"
  );
  EXPECT_NE(settings_text({}, config()).find("seed another for each answer\n"), std::string::npos);
}

}  // namespace
}  // namespace whimbrel
