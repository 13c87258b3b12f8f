#include "weights/hub_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const Variables::const_iterator found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

HubSettings settings(Variables variables) {
  variables.emplace("HOME", "/nobody");
  return hub_settings(environment(variables));
}

std::string cache(const Variables& variables) {
  return hub_cache_folder(environment(variables)).string();
}

}  // namespace

TEST(HubSettings, Defaults) {
  const HubSettings plain = settings({});
  EXPECT_EQ(plain.endpoint, "https://huggingface.co");
  EXPECT_EQ(plain.cache, "/nobody/.cache/huggingface/hub");
  EXPECT_EQ(plain.token, "");
  EXPECT_FALSE(plain.offline);
  EXPECT_TRUE(plain.symlinks);
  EXPECT_TRUE(plain.progress);
  EXPECT_EQ(plain.etag_timeout, 10);
  EXPECT_EQ(plain.download_timeout, 10);
}

TEST(HubSettings, WhereTheCacheIs) {
  Variables variables = {{"HOME", "/h"}};
  EXPECT_EQ(cache(variables), "/h/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(cache(variables), "/x/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(cache(variables), "/h/hf/hub");
  variables["HUGGINGFACE_HUB_CACHE"] = "/old";
  EXPECT_EQ(cache(variables), "/old");
  variables["HF_HUB_CACHE"] = "/c";
  EXPECT_EQ(cache(variables), "/c");
  const std::string error = test::error_text(Fault::usage, [] { cache({}); });
  EXPECT_TRUE(test::contains(error, "HF_HOME"));
}

TEST(HubSettings, SwitchesAreOnAsInThePythonTools) {
  for (const char* on : {"1", "on", "Yes", "TRUE"}) {
    EXPECT_TRUE(settings({{"HF_HUB_OFFLINE", on}}).offline) << on;
    EXPECT_TRUE(settings({{"TRANSFORMERS_OFFLINE", on}}).offline) << on;
    EXPECT_FALSE(settings({{"HF_HUB_DISABLE_SYMLINKS", on}}).symlinks) << on;
    EXPECT_FALSE(settings({{"HF_HUB_DISABLE_PROGRESS_BARS", on}}).progress) << on;
  }
  EXPECT_FALSE(settings({{"HF_HUB_OFFLINE", "0"}}).offline);
}

TEST(HubSettings, Token) {
  EXPECT_EQ(settings({{"HF_TOKEN", " hf_x\n"}}).token, "hf_x");
  EXPECT_EQ(settings({{"HUGGING_FACE_HUB_TOKEN", "hf_y"}}).token, "hf_y");
  const test::WeightFolder folder;
  folder.write("token", "hf_z\n");
  EXPECT_EQ(settings({{"HF_HOME", folder.path()}}).token, "hf_z");
  const std::string file = folder.path() / "token";
  EXPECT_EQ(settings({{"HF_TOKEN_PATH", file}}).token, "hf_z");
  EXPECT_EQ(settings({{"HF_TOKEN_PATH", file}, {"HF_TOKEN", "hf_x"}}).token, "hf_x");
  EXPECT_EQ(settings({{"HF_TOKEN", "hf_x"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  const std::string error =
      test::error_text(Fault::usage, [] { settings({{"HF_TOKEN", "a\r\nX-Evil: b"}}); });
  EXPECT_FALSE(test::contains(error, "Evil"));
}

TEST(HubSettings, RefusesBadValues) {
  for (const auto& [name, value] : Variables{
           {"HF_ENDPOINT", "hub.example"},
           {"HF_HUB_ETAG_TIMEOUT", "0"},
           {"HF_HUB_DOWNLOAD_TIMEOUT", "ten"},
       }) {
    const std::string error = test::error_text(Fault::usage, [&] { settings({{name, value}}); });
    EXPECT_TRUE(test::contains(error, name));
  }
  EXPECT_EQ(
      settings({{"HF_ENDPOINT", "https://mirror.example/hf//"}}).endpoint,
      "https://mirror.example/hf"
  );
  EXPECT_EQ(settings({{"HF_HUB_ETAG_TIMEOUT", "86400"}}).etag_timeout, 86400);
  EXPECT_THROW(settings({{"HF_HUB_ETAG_TIMEOUT", "86401"}}), Error);
}

}  // namespace whimbrel
