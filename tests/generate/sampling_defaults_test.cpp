#include "generate/sampling_defaults.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

SamplingOptions defaults_of(const char* generation) {
  ModelConfig config;
  config.generation = Json::parse(generation);
  return sampling_defaults(config);
}

TEST(SamplingDefaults, without_do_sample_the_best_token_wins) {
  EXPECT_EQ(defaults_of("{}").temperature, 0);
  EXPECT_EQ(defaults_of(R"({"do_sample": false, "temperature": 0.7})").temperature, 0);
}

TEST(SamplingDefaults, come_from_the_file) {
  const SamplingOptions options = defaults_of(
      R"({"do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "min_p": 0.1,
          "repetition_penalty": 1.05})"
  );
  EXPECT_EQ(options.temperature, 0.7);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.8);
  EXPECT_EQ(options.min_p, 0.1);
  EXPECT_EQ(options.repetition_penalty, 1.05);
}

TEST(SamplingDefaults, do_sample_alone_means_temperature_one) {
  EXPECT_EQ(defaults_of(R"({"do_sample": true})").temperature, 1.0);
}

TEST(SamplingDefaults, a_bad_value_is_the_models_fault) {
  try {
    defaults_of(R"({"do_sample": true, "top_p": 2})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::model);
    EXPECT_NE(std::string(error.what()).find("generation_config.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace whimbrel
