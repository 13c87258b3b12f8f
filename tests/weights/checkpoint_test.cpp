#include "weights/checkpoint.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::bundled_model;
using test::contains;
using test::error_text;
using test::model_error;
using test::safetensors_bytes;
using test::WeightFolder;
using test::zeros;

/// A config for a folder that holds weights only.
ModelConfig config_for(const std::filesystem::path& folder, const std::string& root = "{}") {
  ModelConfig config;
  config.folder = folder;
  config.root = config.text = Json::parse(root);
  return config;
}

Checkpoint open(const WeightFolder& folder, const std::string& root = "{}") {
  return Checkpoint(config_for(folder.path(), root));
}

Checkpoint open_bundled(std::string_view name) {
  return Checkpoint(read_model_config(bundled_model(name)));
}

/// A folder with one model.safetensors.
void write_single(const WeightFolder& folder, const std::vector<test::RawTensor>& tensors) {
  folder.write("model.safetensors", safetensors_bytes(tensors));
}

/// Two shards, {a, b} and {c}, and an index.
void write_shards(const WeightFolder& folder) {
  folder.write("m-1.safetensors", safetensors_bytes({zeros("a", {2}), zeros("b", {3})}));
  folder.write("m-2.safetensors", safetensors_bytes({zeros("c", {4})}));
}

void write_index(const WeightFolder& folder, const std::map<std::string, std::string>& map) {
  const Json index = {{"metadata", {{"total_size", 36}}}, {"weight_map", map}};
  folder.write("model.safetensors.index.json", index.dump());
}

float largest_difference(const mx::array& left, const mx::array& right) {
  const mx::array wide_left = mx::astype(left, mx::float32);
  const mx::array wide_right = mx::astype(right, mx::float32);
  return mx::max(mx::abs(mx::subtract(wide_left, wide_right))).item<float>();
}

float largest(const mx::array& array) {
  return mx::max(mx::abs(mx::astype(array, mx::float32))).item<float>();
}

mx::array dequantized(const StoredMatrix& matrix) {
  return mx::dequantize(
      matrix.weight, *matrix.scales, matrix.biases, matrix.group_size, matrix.bits
  );
}

}  // namespace

TEST(Checkpoint, HubFileByCanonicalNames) {
  Checkpoint checkpoint = open_bundled("tiny-qwen2-5-vl");
  EXPECT_TRUE(checkpoint.has("model.norm.weight"));
  EXPECT_TRUE(checkpoint.has_under("visual."));
  EXPECT_FALSE(checkpoint.has("lm_head.weight"));
  EXPECT_FALSE(checkpoint.has("vision_tower.merger.ln_q.weight"));
  const mx::array norm = checkpoint.take("model.norm.weight", {256});
  EXPECT_EQ(norm.dtype(), mx::bfloat16);
  const StoredMatrix q = checkpoint.take_matrix("model.layers.0.self_attn.q_proj", 256, 256);
  EXPECT_EQ(q.bits, 0);
  EXPECT_FALSE(q.scales || q.biases);
  EXPECT_EQ(q.weight.shape(), (mx::Shape{256, 256}));
  EXPECT_TRUE(checkpoint.has("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_FALSE(checkpoint.has("model.layers.0.self_attn.o_proj.bias"));
}

TEST(Checkpoint, MlxFileHoldsTheSameTowerAndAPackedText) {
  Checkpoint hub = open_bundled("tiny-qwen2-5-vl");
  Checkpoint mlx = open_bundled("tiny-qwen2-5-vl-4bit");
  EXPECT_EQ(mlx.find("model.norm.weight")->name, "language_model.model.norm.weight");
  const std::string norm = "visual.blocks.2.norm1.weight";
  EXPECT_EQ(largest_difference(hub.take(norm, {128}), mlx.take(norm, {128})), 0);
  // Kernels are stored in different orders, and come back in one.
  const mx::array hub_kernel =
      hub.take_patch_embedding("visual.patch_embed.proj.weight", 128, 3, 2, 14);
  const mx::array mlx_kernel =
      mlx.take_patch_embedding("visual.patch_embed.proj.weight", 128, 3, 2, 14);
  EXPECT_EQ(hub_kernel.shape(), (mx::Shape{128, 3 * 2 * 14 * 14}));
  EXPECT_GT(largest(hub_kernel), 0);
  EXPECT_EQ(largest_difference(hub_kernel, mlx_kernel), 0);

  for (const auto& [module, rows, columns] : std::vector<std::tuple<std::string, int64_t, int64_t>>{
           {"model.layers.0.self_attn.k_proj", 64, 256},
           {"model.layers.4.mlp.down_proj", 256, 768},
           {"model.embed_tokens", 2048, 256},
       }) {
    const StoredMatrix plain = hub.take_matrix(module, rows, columns);
    const StoredMatrix packed = mlx.take_matrix(module, rows, columns);
    EXPECT_EQ(packed.bits, 4);
    EXPECT_EQ(packed.group_size, 64);
    const float difference = largest_difference(plain.weight, dequantized(packed));
    EXPECT_LT(difference, 0.1F * largest(plain.weight)) << module;
  }
  // The layer's own bias is another tensor than the quantiser's.
  EXPECT_EQ(mlx.take("model.layers.0.self_attn.k_proj.bias", {64}).size(), 64U);
}

TEST(Checkpoint, BundledFilesAreTakenInWhole) {
  for (const char* name : {"tiny-qwen2-vl-4bit", "tiny-qwen3-vl-4bit", "tiny-qwen3-vl-moe-4bit"}) {
    Checkpoint checkpoint = open_bundled(name);
    EXPECT_EQ(checkpoint.take_matrix("model.layers.0.self_attn.k_proj", 128, 256).bits, 4) << name;
    for (const std::string part : {"model", "visual"}) {
      EXPECT_TRUE(contains(model_error([&] { checkpoint.require_all_taken(); }), "doesn't use"));
      checkpoint.discard(part);
    }
    EXPECT_NO_THROW(checkpoint.require_all_taken()) << name;
  }
}

TEST(Checkpoint, EveryWidthAndGroupAndMixedModules) {
  const WeightFolder folder;
  const mx::array plain = mx::random::normal({8, 256}, mx::float32);
  std::unordered_map<std::string, mx::array> arrays;
  std::string overrides;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const std::string name = fmt::format("model.b{}g{}", bits, group_size);
      const std::vector<mx::array> parts = mx::quantize(plain, group_size, bits);
      arrays.insert_or_assign(name + ".weight", parts[0]);
      arrays.insert_or_assign(name + ".scales", parts[1]);
      arrays.insert_or_assign(name + ".biases", parts[2]);
      overrides += fmt::format(
          R"(,"language_model.{}":{{"bits":{},"group_size":{}}})", name, bits, group_size
      );
    }
  }
  arrays.insert_or_assign("model.plain.weight", plain);
  mx::save_safetensors((folder.path() / "model.safetensors").string(), arrays);
  const std::string root =
      fmt::format(R"({{"quantization":{{"bits":4,"group_size":64{}}}}})", overrides);

  Checkpoint checkpoint = open(folder, root);
  EXPECT_EQ(checkpoint.take_matrix("model.plain", 8, 256).bits, 0);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const std::string module = fmt::format("model.b{}g{}", bits, group_size);
      const StoredMatrix matrix = checkpoint.take_matrix(module, 8, 256);
      EXPECT_EQ(matrix.bits, bits);
      EXPECT_EQ(matrix.group_size, group_size);
      // Normal numbers spread over about +-4; a code is off by at most one step.
      EXPECT_LT(
          largest_difference(plain, dequantized(matrix)), 10.0F / static_cast<float>(1 << bits)
      ) << module;
    }
  }
  checkpoint.require_all_taken();
}

TEST(Checkpoint, PackedModulesHaveToMatchConfig) {
  const WeightFolder folder;
  const std::vector<mx::array> parts = mx::quantize(mx::ones({8, 256}), 64, 4);
  mx::save_safetensors(
      (folder.path() / "model.safetensors").string(),
      {{"m.weight", parts[0]}, {"m.scales", parts[1]}, {"m.biases", parts[2]}}
  );
  const auto refusal = [&](const std::string& root) {
    return model_error([&] { open(folder, root).take_matrix("m", 8, 256); });
  };
  EXPECT_TRUE(contains(refusal("{}"), "expected no quantisation"));
  EXPECT_TRUE(contains(
      refusal(R"({"quantization":{"bits":4,"group_size":64,"m":false}})"),
      "expected no quantisation"
  ));
  EXPECT_TRUE(contains(
      refusal(R"({"quantization":{"bits":8,"group_size":64}})"), "expected 8 bits in groups of 64"
  ));
  EXPECT_TRUE(
      contains(refusal(R"({"quantization":{"bits":4,"group_size":64,"mode":"nvfp4"}})"), "nvfp4")
  );
  EXPECT_EQ(
      open(folder, R"({"quantization":{"bits":4,"group_size":64}})").take_matrix("m", 8, 256).bits,
      4
  );
}

TEST(Checkpoint, PackedModulesNeedTheirBiasesAndPlainOnesNoCodes) {
  const WeightFolder folder;
  const std::vector<mx::array> parts = mx::quantize(mx::ones({8, 256}), 64, 4);
  mx::save_safetensors(
      (folder.path() / "model.safetensors").string(),
      {{"m.weight", parts[0]}, {"m.scales", parts[1]}, {"n.weight", parts[0]}}
  );
  Checkpoint checkpoint = open(folder, R"({"quantization":{"bits":4,"group_size":64}})");
  EXPECT_TRUE(
      contains(model_error([&] { checkpoint.take_matrix("m", 8, 256); }), "no tensor \"m.biases\"")
  );
  EXPECT_TRUE(contains(
      model_error([&] { checkpoint.take_matrix("n", 8, 32); }),
      "tensor \"n.weight\": got dtype U32, expected BF16, F16 or F32"
  ));
}

TEST(Checkpoint, ErrorsNameTheTensorWhatWasFoundAndExpected) {
  const WeightFolder folder;
  write_single(
      folder, {zeros("model.language_model.norm.weight", {4}), {"ids", "I32", {1}, "1234"}}
  );
  Checkpoint checkpoint = open(folder);
  const std::string shape = model_error([&] { checkpoint.take("model.norm.weight", {5}); });
  EXPECT_TRUE(
      contains(shape, "tensor \"model.language_model.norm.weight\": got shape [4], expected [5]")
  );
  EXPECT_TRUE(contains(shape, "model.safetensors]"));
  EXPECT_TRUE(contains(
      model_error([&] { checkpoint.take("model.other.weight", {4}); }),
      "got no tensor \"model.other.weight\""
  ));
  EXPECT_TRUE(
      contains(model_error([&] { checkpoint.take("ids", {1}); }), "tensor \"ids\": got dtype I32")
  );
  EXPECT_TRUE(contains(
      model_error([&] { checkpoint.take_patch_embedding("model.norm.weight", 4, 3, 2, 14); }),
      "got shape [4], expected [4, 3, 2, 14, 14] or [4, 2, 14, 14, 3]"
  ));
  EXPECT_TRUE(
      contains(model_error([&] { checkpoint.take_matrix("model.norm", 4, 4); }), "expected [4, 4]")
  );
  EXPECT_TRUE(contains(
      model_error([&] { checkpoint.require_all_taken(); }),
      "got 2 tensors that this architecture doesn't use (\"ids\", \"model.language_model.norm"
  ));
  // A refused tensor can still be taken rightly.
  EXPECT_EQ(checkpoint.take("model.norm.weight", {4}).size(), 4);
  EXPECT_THROW(checkpoint.take("model.norm.weight", {4}), std::logic_error);
}

TEST(Checkpoint, ShowsOnlySomeOfManyUnusedTensors) {
  const WeightFolder folder;
  std::vector<test::RawTensor> tensors;
  for (int i = 0; i < 9; ++i) {
    tensors.push_back(zeros(fmt::format("t{}", i), {1}));
  }
  write_single(folder, tensors);
  const std::string text = model_error([&] { open(folder).require_all_taken(); });
  EXPECT_TRUE(contains(text, "got 9 tensors"));
  EXPECT_TRUE(contains(text, "\"t4\", ..."));
  EXPECT_FALSE(contains(text, "t5"));
}

TEST(Checkpoint, TakesF32F16AndBf16) {
  const WeightFolder folder;
  write_single(
      folder,
      {
          {"a", "F32", {1}, std::string("\0\0\x80\x3f", 4)},
          {"b", "F16", {1}, std::string("\0\x3c", 2)},
          {"c", "BF16", {1}, std::string("\x80\x3f", 2)},
      }
  );
  Checkpoint checkpoint = open(folder);
  for (const auto& [name, dtype] :
       {std::pair("a", mx::float32), std::pair("b", mx::float16), std::pair("c", mx::bfloat16)}) {
    const mx::array one = checkpoint.take(name, {1});
    EXPECT_EQ(one.dtype(), dtype);
    EXPECT_EQ(mx::astype(one, mx::float32).item<float>(), 1.0F);
  }
}

TEST(Checkpoint, IgnoresOldRotaryFrequencies) {
  const WeightFolder folder;
  write_single(
      folder,
      {
          zeros("model.layers.0.self_attn.rotary_emb.inv_freq", {4}),
          zeros("visual.rotary_pos_emb.inv_freq", {4}),
          zeros("model.norm.weight", {4}),
      }
  );
  Checkpoint checkpoint = open(folder);
  EXPECT_FALSE(checkpoint.has_under("visual."));  // a text-only model
  checkpoint.take("model.norm.weight", {4});
  EXPECT_NO_THROW(checkpoint.require_all_taken());
}

TEST(Checkpoint, RefusesTwoNamesOfOneTensor) {
  const WeightFolder folder;
  write_single(folder, {zeros("visual.a", {1}), zeros("vision_tower.a", {1})});
  const std::string text = model_error([&] { open(folder); });
  EXPECT_TRUE(contains(text, "\"visual.a\" and \"vision_tower.a\""));
}

TEST(Checkpoint, ShardsByTheirIndex) {
  const WeightFolder folder;
  write_shards(folder);
  write_index(
      folder, {{"a", "m-1.safetensors"}, {"b", "m-1.safetensors"}, {"c", "m-2.safetensors"}}
  );
  folder.write("consolidated.safetensors", "an extra file that the index doesn't name");
  Checkpoint checkpoint = open(folder);
  EXPECT_EQ(checkpoint.total_bytes(), 36);
  EXPECT_EQ(checkpoint.take("c", {4}).size(), 4);
  EXPECT_EQ(checkpoint.take("a", {2}).size(), 2);
  EXPECT_EQ(checkpoint.take("b", {3}).size(), 3);
  checkpoint.require_all_taken();
}

TEST(Checkpoint, IndexAndShardsHaveToAgree) {
  using Map = std::map<std::string, std::string>;
  const WeightFolder folder;
  write_shards(folder);
  const auto refusal = [&](const Map& map) {
    write_index(folder, map);
    return model_error([&] { open(folder); });
  };
  const Map good = {{"a", "m-1.safetensors"}, {"b", "m-1.safetensors"}, {"c", "m-2.safetensors"}};
  Map map = good;
  map["d"] = "m-2.safetensors";
  EXPECT_TRUE(contains(refusal(map), "m-2.safetensors] got no tensor \"d\""));
  map = good;
  map.erase("b");
  EXPECT_TRUE(contains(refusal(map), "m-1.safetensors] got the tensor \"b\""));
  map = good;
  map["b"] = "m-2.safetensors";
  EXPECT_TRUE(contains(refusal(map), "m-1.safetensors] got the tensor \"b\""));
  map = good;
  map["d"] = "m-3.safetensors";
  EXPECT_TRUE(contains(refusal(map), "m-3.safetensors] got no such file, expected a shard"));
  map = good;
  map["c"] = "../m-2.safetensors";
  EXPECT_TRUE(contains(refusal(map), "got the file \"../m-2.safetensors\""));

  std::filesystem::resize_file(folder.path() / "m-2.safetensors", 70);
  EXPECT_TRUE(contains(refusal(good), "m-2.safetensors]"));
  std::filesystem::remove(folder.path() / "m-2.safetensors");
  ASSERT_EQ(mkfifo((folder.path() / "m-2.safetensors").c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(good), "no regular file"));

  folder.write("model.safetensors", safetensors_bytes({zeros("a", {2})}));
  EXPECT_TRUE(contains(refusal(good), "got both model.safetensors and an index"));
}

TEST(Checkpoint, OneFileOfAnyNameWithoutIndex) {
  const WeightFolder folder;
  EXPECT_TRUE(contains(model_error([&] { open(folder); }), "a folder without weights"));
  folder.write("whimbrel-reference.safetensors", safetensors_bytes({zeros("r", {2})}));
  EXPECT_TRUE(contains(model_error([&] { open(folder); }), "a folder without weights"));
  folder.write("weights.safetensors", safetensors_bytes({zeros("a", {2})}));
  EXPECT_TRUE(open(folder).has("a"));
  folder.write("more.safetensors", safetensors_bytes({zeros("b", {2})}));
  EXPECT_TRUE(contains(
      model_error([&] { open(folder); }),
      "got 2 safetensors files (more.safetensors, weights.safetensors ...) without an index"
  ));
  folder.write("model.safetensors", safetensors_bytes({zeros("c", {2})}));
  EXPECT_TRUE(open(folder).has("c"));
}

TEST(Checkpoint, FileCutOffAtEachByteIsRefused) {
  const WeightFolder folder;
  const std::string bytes = safetensors_bytes({zeros("a", {2}), zeros("b", {3})});
  for (size_t size = 0; size < bytes.size(); ++size) {
    folder.write("model.safetensors", bytes.substr(0, size));
    EXPECT_THROW(open(folder), Error) << size;
  }
  folder.write("model.safetensors", bytes);
  EXPECT_NO_THROW(open(folder));
}

TEST(Checkpoint, WhatTheCheckAcceptsMlxReadsAlike) {
  const WeightFolder folder;
  const std::string good =
      safetensors_bytes({{"a", "F16", {2, 1}, "1234"}, {"b", "BF16", {3}, "567890"}});
  int accepted = 0;
  for (size_t at = 0; at + 10 < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      const std::filesystem::path file = folder.write("model.safetensors", bytes);
      std::vector<TensorInfo> tensors;
      try {
        tensors = read_safetensors_header(file);
      } catch (const Error&) {
        continue;
      }
      const std::unordered_map<std::string, mx::array> arrays =
          mx::load_safetensors(file.string()).first;
      ASSERT_EQ(arrays.size(), tensors.size());
      for (const TensorInfo& tensor : tensors) {
        const mx::array& array = arrays.at(tensor.name);
        EXPECT_EQ(array.shape(), mx::Shape(tensor.shape.begin(), tensor.shape.end()));
        EXPECT_EQ(array.nbytes(), tensor.bytes());
        mx::eval(array);
      }
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST(Checkpoint, FileThatChangesAfterTheCheckIsNoticed) {
  const WeightFolder folder;
  write_single(folder, {zeros("a", {2}), zeros("b", {3})});
  const auto changed = [&](const std::vector<test::RawTensor>& tensors) {
    write_single(folder, {zeros("a", {2}), zeros("b", {3})});
    Checkpoint checkpoint = open(folder);
    write_single(folder, tensors);
    return error_text(Fault::io, [&] { checkpoint.take("b", {3}); });
  };
  EXPECT_TRUE(contains(changed({zeros("a", {5})}), "got another tensor \"b\""));
  EXPECT_TRUE(contains(changed({zeros("b", {5})}), "got another tensor \"b\""));
  EXPECT_TRUE(contains(changed({{"b", "BF16", {3}, "123456"}}), "got another tensor \"b\""));

  write_single(folder, {zeros("a", {2})});
  Checkpoint checkpoint = open(folder);
  std::filesystem::remove(folder.path() / "model.safetensors");
  EXPECT_TRUE(contains(error_text(Fault::io, [&] { checkpoint.take("a", {2}); }), "got an error"));
}

TEST(Checkpoint, FileCutOffWhileLoadingFailsTheEvaluation) {
  const WeightFolder folder;
  write_single(folder, {zeros("a", {1024, 1024})});
  Checkpoint checkpoint = open(folder);
  mx::array array = checkpoint.take("a", {1024, 1024});
  std::filesystem::resize_file(folder.path() / "model.safetensors", 100'000);
  EXPECT_THROW(mx::eval(array), std::exception);
}

TEST(Checkpoint, ComparesBytesOfTensors) {
  const WeightFolder folder;
  const std::string long_bytes(3 << 20, 'x');
  std::string other_bytes = long_bytes;
  other_bytes.back() = 'y';
  folder.write(
      "m-1.safetensors",
      safetensors_bytes({{"a", "U8", {3 << 20}, long_bytes}, {"b", "U8", {3 << 20}, other_bytes}})
  );
  folder.write(
      "m-2.safetensors",
      safetensors_bytes({
          {"c", "U8", {2}, "12"},
          {"d", "U8", {3 << 20}, long_bytes},
          {"e", "I8", {3 << 20}, long_bytes},
          {"f", "U8", {3, 1 << 20}, long_bytes},
      })
  );
  write_index(
      folder,
      {{"a", "m-1.safetensors"},
       {"b", "m-1.safetensors"},
       {"c", "m-2.safetensors"},
       {"d", "m-2.safetensors"},
       {"e", "m-2.safetensors"},
       {"f", "m-2.safetensors"}}
  );
  const Checkpoint checkpoint = open(folder);
  EXPECT_TRUE(checkpoint.same_bytes("a", "d"));
  EXPECT_TRUE(checkpoint.same_bytes("none", "no other"));
  for (const char* other : {"b", "c", "e", "f", "none"}) {
    EXPECT_FALSE(checkpoint.same_bytes("a", other)) << other;
  }
}

TEST(Checkpoint, SummaryCountsByDtype) {
  const CheckpointSummary summary = open_bundled("tiny-qwen2-5-vl-4bit").summary();
  EXPECT_EQ(summary.files, 1);
  EXPECT_EQ(summary.tensors, 188);
  EXPECT_EQ(summary.bytes, 5'252'305 - 8 - 21'705);  // all of the file but its header
  ASSERT_EQ(summary.dtypes.size(), 2);
  EXPECT_GT(summary.dtypes[0].bytes, summary.dtypes[1].bytes);
  EXPECT_EQ(summary.dtypes[0].bytes + summary.dtypes[1].bytes, summary.bytes);
  EXPECT_EQ(summary.dtypes[0].tensors + summary.dtypes[1].tensors, summary.tensors);
  // Packed or not, it is the same model.
  EXPECT_EQ(summary.parameters, open_bundled("tiny-qwen2-5-vl").summary().parameters);
}

}  // namespace whimbrel
