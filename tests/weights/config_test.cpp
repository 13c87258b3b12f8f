#include "weights/config.h"

#include <gtest/gtest.h>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::bundled_model;
using test::contains;
using test::model_error;
using test::WeightFolder;

const JsonSource kSource{"config.json"};

ModelConfig read_text(std::string_view config, std::string_view generation = "{}") {
  const WeightFolder folder;
  folder.write("config.json", config);
  folder.write("generation_config.json", generation);
  return read_model_config(folder.path());
}

RopeConfig rope_of(const std::string& text, int64_t head_dim = 64) {
  return read_rope(Json::parse(text), head_dim, kSource);
}

/// A config text and what the error about it has to say.
struct BadConfig {
  std::string text;
  std::string complaint;
};

}  // namespace

TEST(Config, FlatAndNestedFilesOfOneModelMeanTheSame) {
  const ModelConfig flat = read_model_config(bundled_model("tiny-qwen2-5-vl"));
  const WeightFolder folder;
  std::filesystem::copy_file(
      bundled_model("tiny-qwen2-5-vl") / "config.nested.json", folder.path() / "config.json"
  );
  const ModelConfig nested = read_model_config(folder.path());
  EXPECT_EQ(flat.model_type, "qwen2_5_vl");
  EXPECT_EQ(nested.model_type, "qwen2_5_vl");
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "rms_norm_eps", "vocab_size", "tie_word_embeddings"}) {
    EXPECT_EQ(flat.text.at(key), nested.text.at(key)) << key;
  }
  for (const ModelConfig* config : {&flat, &nested}) {
    EXPECT_EQ(config->vision.at("depth"), 4);
    EXPECT_FALSE(config->text.contains("vision_config"));
    const AttentionShape shape = read_attention_shape(config->text, config->source());
    EXPECT_EQ(shape.heads, 4);
    EXPECT_EQ(shape.kv_heads, 1);
    EXPECT_EQ(shape.head_dim, 64);
    const RopeConfig rope = read_rope(config->text, shape.head_dim, config->source());
    EXPECT_EQ(rope.theta, 1e6);
    EXPECT_EQ(rope.mrope_section, (std::vector<int>{8, 12, 12}));
    EXPECT_EQ(rope.mrope_interleaved, std::nullopt);
  }
}

TEST(Config, ReadsAllBundledModels) {
  for (const char* name : {"tiny-qwen2-5-vl-4bit", "tiny-qwen2-vl-4bit"}) {
    const ModelConfig config = read_model_config(bundled_model(name));
    EXPECT_EQ(config.eos_token_ids, (std::vector<int64_t>{2002, 2000})) << name;
    EXPECT_EQ(read_attention_shape(config.text, config.source()).head_dim, 64);
  }
  for (const char* name : {"tiny-qwen3-vl-4bit", "tiny-qwen3-vl-moe-4bit"}) {
    const ModelConfig config = read_model_config(bundled_model(name));
    const AttentionShape shape = read_attention_shape(config.text, config.source());
    EXPECT_EQ(shape.head_dim, 64) << name;  // not hidden_size / heads, which is 32
    EXPECT_EQ(shape.kv_heads, 2);
    const RopeConfig rope = read_rope(config.text, shape.head_dim, config.source());
    EXPECT_EQ(rope.theta, 5e6);
    EXPECT_EQ(rope.mrope_section, (std::vector<int>{12, 10, 10}));
    EXPECT_EQ(rope.mrope_interleaved, true);
  }
}

TEST(Config, TextConfigWinsOverRootUnlessItIsNull) {
  const ModelConfig config = read_text(
      R"({"model_type":"m","a":1,"b":2,"c":3,"vision_config":{"depth":2},
          "text_config":{"model_type":"m_text","a":10,"b":null,"d":null,"e":5}})"
  );
  EXPECT_EQ(
      config.text, Json::parse(R"({"model_type":"m_text","a":10,"b":2,"c":3,"d":null,"e":5})")
  );
  EXPECT_EQ(config.vision, Json::parse(R"({"depth":2})"));
  EXPECT_EQ(config.model_type, "m");
  EXPECT_EQ(config.root.at("a"), 1);
}

TEST(Config, TextModelHasNoVision) {
  EXPECT_EQ(read_text(R"({"model_type":"m"})").vision, Json::object());
}

TEST(Config, StopIdsAreTheUnion) {
  const char* config = R"({"model_type":"m","vocab_size":100,"eos_token_id":3,
                          "text_config":{"eos_token_id":[4,7]}})";
  EXPECT_EQ(
      read_text(config, R"({"eos_token_id":[7,8]})").eos_token_ids,
      (std::vector<int64_t>{7, 8, 3, 4})
  );
  EXPECT_EQ(
      read_text(R"({"model_type":"m","eos_token_id":3})").eos_token_ids, (std::vector<int64_t>{3})
  );
  EXPECT_TRUE(read_text(R"({"model_type":"m","eos_token_id":null})").eos_token_ids.empty());
}

TEST(Config, MissingFilesAreSaidSo) {
  const WeightFolder folder;
  const auto refusal = [](const std::filesystem::path& path) {
    return model_error([&] { read_model_config(path); });
  };
  EXPECT_TRUE(contains(refusal(folder.path() / "none"), "no such folder"));
  EXPECT_TRUE(contains(refusal(folder.path()), "a folder without config.json"));
  EXPECT_TRUE(contains(refusal(folder.write("file", "")), "got a file, expected the folder"));
  std::filesystem::create_directory(folder.path() / "config.json");
  EXPECT_TRUE(contains(refusal(folder.path()), "no regular file"));
}

TEST(Config, GenerationConfigMayBeMissing) {
  const WeightFolder folder;
  folder.write("config.json", R"({"model_type":"m"})");
  EXPECT_EQ(read_model_config(folder.path()).generation, Json::object());
}

TEST(Config, RefusesBadFiles) {
  const std::vector<BadConfig> table = {
      {"", "invalid JSON"},
      {"[]", "no object"},
      {"{}", "got no \"model_type\""},
      {R"({"model_type":null})", "got no \"model_type\""},
      {R"({"model_type":7})", R"(got "model_type": 7, expected a string)"},
      {R"({"model_type":"m","model_type":"m"})", "twice"},
      {R"({"model_type":"m","text_config":[]})", R"("text_config": [], expected an object)"},
      {R"({"model_type":"m","vision_config":1})", R"("vision_config": 1, expected an object)"},
      {R"({"model_type":"m","eos_token_id":-1})", R"("eos_token_id": -1)"},
      {R"({"model_type":"m","eos_token_id":"x"})", R"("eos_token_id": "x")"},
      {R"({"model_type":"m","eos_token_id":2.0})", R"("eos_token_id": 2.0)"},
      {R"({"model_type":"m","eos_token_id":4294967296})", R"("eos_token_id": 4294967296)"},
      {R"({"model_type":"m","vocab_size":5,"eos_token_id":5})", "under the vocab_size of 5"},
      {R"({"model_type":"m","vocab_size":0})", R"("vocab_size": 0)"},
      {R"({"model_type":"m","vocab_size":-3})", R"("vocab_size": -3)"},
      {R"({"model_type":"m","use_sliding_window":true,"sliding_window":32})", "sliding window"},
      {R"({"model_type":"m","text_config":{"use_sliding_window":true}})", "sliding window"},
      {R"({"model_type":"m","use_sliding_window":1})", "expected true or false"},
      {R"({"model_type":)" + std::string(100, '['), "deeper than"},
  };
  for (const BadConfig& bad : table) {
    const std::string text = model_error([&] { read_text(bad.text); });
    EXPECT_TRUE(contains(text, bad.complaint)) << bad.text;
    EXPECT_TRUE(contains(text, "config.json")) << bad.text;
  }
  const std::string generation =
      model_error([] { read_text(R"({"model_type":"m"})", R"({"eos_token_id":[-5]})"); });
  EXPECT_TRUE(contains(generation, "generation_config.json"));
}

TEST(Config, RefusesEndlessObjectsBeforeTheyTakeLong) {
  std::string text = R"({"model_type":"m")";
  for (int i = 0; i < 500'000; ++i) {
    text += fmt::format(",\"k{}\":1", i);
  }
  EXPECT_TRUE(contains(model_error([&] { read_text(text + "}"); }), "over 30000 values"));
}

TEST(Config, SlidingWindowIsIgnoredWhileItIsOff) {
  EXPECT_NO_THROW(read_text(
      R"({"model_type":"m","use_sliding_window":false,"sliding_window":32768,"max_window_layers":80})"
  ));
  EXPECT_NO_THROW(read_text(
      R"({"model_type":"m","use_sliding_window":true,"text_config":{"use_sliding_window":false}})"
  ));
}

TEST(Config, RefusesForeignQuantisationByName) {
  for (const std::string method :
       {"awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes", "something-new"}) {
    const std::string block =
        fmt::format(R"("quantization_config":{{"quant_method":"{}"}})", method);
    const std::string at_root = fmt::format(R"({{"model_type":"m",{}}})", block);
    const std::string in_text = fmt::format(R"({{"model_type":"m","text_config":{{{}}}}})", block);
    for (const std::string& config : {at_root, in_text}) {
      const std::string text = model_error([&] { read_text(config); });
      EXPECT_TRUE(contains(text, fmt::format("quantised by \"{}\"", method)));
      EXPECT_TRUE(contains(text, "MLX"));
    }
  }
  EXPECT_NO_THROW(
      read_text(R"({"model_type":"m","quantization_config":{"group_size":64,"bits":4}})")
  );
}

TEST(Rope, AllSpellings) {
  const std::string section = R"("mrope_section":[8,12,12])";
  const std::vector<std::string> same = {
      R"({"rope_theta":1e6,"rope_scaling":{"type":"mrope",)" + section + "}}",
      R"({"rope_theta":1000000,"rope_scaling":{"rope_type":"default",)" + section + "}}",
      R"({"rope_theta":1e6,"rope_scaling":{"type":"mrope","rope_type":"default",)" + section + "}}",
      R"({"rope_theta":1e6,"rope_scaling":{)" + section + "}}",
      R"({"rope_scaling":{"rope_theta":1e6,"type":"mrope",)" + section + "}}",
      R"({"rope_parameters":{"rope_theta":1e6,"rope_type":"default",)" + section + "}}",
      R"({"rope_theta":1e6,"rope_parameters":{"rope_type":"mrope",)" + section + "}}",
      R"({"rope_theta":1e6,"rope_scaling":null,"rope_parameters":{"rope_theta":1e6,)" + section +
          "}}",
      R"({"rope_parameters":{"rope_theta":1e6},"rope_scaling":{)" + section + "}}",
      R"({"rope_scaling":{"rope_theta":1e6},"rope_parameters":{)" + section + "}}",
      R"({"rope_theta":1e6,"rope_scaling":{"type":"mrope",)" + section +
          R"(},"rope_parameters":{"rope_theta":1e6,)" + section + "}}",
  };
  for (const std::string& text : same) {
    const RopeConfig rope = rope_of(text);
    EXPECT_EQ(rope.theta, 1e6) << text;
    EXPECT_EQ(rope.mrope_section, (std::vector<int>{8, 12, 12})) << text;
    EXPECT_EQ(rope.mrope_interleaved, std::nullopt);
  }
  EXPECT_EQ(
      rope_of(R"({"rope_theta":1e4,"rope_scaling":{"mrope_interleaved":false}})").mrope_interleaved,
      false
  );
  EXPECT_TRUE(rope_of(R"({"rope_theta":1e4,"rope_scaling":null})").mrope_section.empty());
  EXPECT_TRUE(rope_of(R"({"rope_theta":1e4,"partial_rotary_factor":1.0})").mrope_section.empty());
}

TEST(Rope, RefusesWhatItCannotHonour) {
  const std::vector<BadConfig> table = {
      {"{}", "got no \"rope_theta\""},
      {R"({"rope_theta":0})", "one positive number"},
      {R"({"rope_theta":-1e6})", "one positive number"},
      {R"({"rope_theta":"1e6"})", "a finite number"},
      {R"({"rope_theta":1e6,"rope_parameters":{"rope_theta":1e4}})", "one positive number"},
      {R"({"rope_theta":1,"rope_scaling":{"type":"yarn","factor":4}})", R"("type": "yarn")"},
      {R"({"rope_theta":1,"rope_scaling":{"rope_type":"linear"}})", R"("rope_type": "linear")"},
      {R"({"rope_theta":1,"rope_scaling":{"rope_type":"dynamic"}})", "\"dynamic\""},
      {R"({"rope_theta":1,"rope_scaling":{"rope_type":"llama3"}})", "\"llama3\""},
      {R"({"rope_theta":1,"rope_scaling":{"rope_type":"default","type":"yarn"}})", "\"yarn\""},
      {R"({"rope_theta":1,"rope_parameters":{"rope_type":"yarn","mrope_section":[8,12,12]}})",
       "\"yarn\""},
      {R"({"rope_theta":1,"rope_parameters":{},"rope_scaling":{"type":"yarn"}})", "\"yarn\""},
      {R"({"rope_theta":1,"rope_scaling":{"type":7}})", "expected a string"},
      {R"({"rope_theta":1,"rope_scaling":[]})", "expected an object"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[16,24,24]}})",
       "the sum 32 (half of head_dim 64)"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[16,16]}})", "expected three numbers"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[]}})", "expected three numbers"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[0,16,16]}})", "from 1 to"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[-8,20,20]}})", "from 1 to"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[8.0,12,12]}})", "an integer"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_interleaved":1}})", "true or false"},
      {R"({"rope_theta":1,"partial_rotary_factor":0.5})", "partial"},
      {R"({"rope_theta":1,"rope_parameters":{"partial_rotary_factor":0.25}})", "partial"},
      {R"({"rope_theta":1,"rope_scaling":{"mrope_section":[8,12,12]},
           "rope_parameters":{"mrope_section":[12,10,10]}})",
       "two values of \"mrope_section\""},
  };
  for (const BadConfig& bad : table) {
    EXPECT_TRUE(contains(model_error([&] { rope_of(bad.text); }), bad.complaint)) << bad.text;
  }
}

TEST(AttentionShapeOfConfig, RefusesCountsThatDoNotDivide) {
  const std::vector<BadConfig> table = {
      {R"({})", "got no \"num_attention_heads\""},
      {R"({"num_attention_heads":0})", "\"num_attention_heads\": 0"},
      {R"({"num_attention_heads":-4})", "\"num_attention_heads\": -4"},
      {R"({"num_attention_heads":9999999999})", "\"num_attention_heads\": 9999999999"},
      {R"({"num_attention_heads":4})", "got no \"hidden_size\""},
      {R"({"num_attention_heads":4,"hidden_size":0})", "\"hidden_size\": 0"},
      {R"({"num_attention_heads":3,"hidden_size":256})", "expected a divisor of hidden_size 256"},
      {R"({"num_attention_heads":4,"hidden_size":256,"num_key_value_heads":3})",
       "\"num_key_value_heads\": 3, expected a divisor of num_attention_heads 4"},
      {R"({"num_attention_heads":4,"hidden_size":256,"num_key_value_heads":8})", "a divisor"},
      {R"({"num_attention_heads":4,"hidden_size":256,"num_key_value_heads":0})",
       "\"num_key_value_heads\": 0"},
      {R"({"num_attention_heads":4,"hidden_size":12})", "head_dim of 3"},
      {R"({"num_attention_heads":4,"head_dim":-64})", "\"head_dim\": -64"},
      {R"({"num_attention_heads":4,"head_dim":65})", "head_dim of 65"},
      {R"({"num_attention_heads":4,"head_dim":64,"num_hidden_layers":2,
           "layer_types":["full_attention","sliding_attention"]})",
       "sliding_attention"},
      {R"({"num_attention_heads":4,"head_dim":64,"num_hidden_layers":2,
           "layer_types":["full_attention"]})",
       "2 times"},
      {R"({"num_attention_heads":4,"head_dim":64,"num_hidden_layers":2,"layer_types":7})",
       "2 times"},
  };
  for (const BadConfig& bad : table) {
    const std::string text =
        model_error([&] { read_attention_shape(Json::parse(bad.text), kSource); });
    EXPECT_TRUE(contains(text, bad.complaint)) << bad.text;
  }
}

}  // namespace whimbrel
