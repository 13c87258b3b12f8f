// What must hold for every family: looped over the registry with small random models, and over the
// trained models in models/.

#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "models/family.h"
#include "nn/kv_cache_file.h"
#include "ops/graph.h"
#include "tests/support/exact_ops.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"
#include "tests/support/source_dir.h"
#include "tests/support/tiny_model.h"
#include "text/chat_template.h"

namespace whimbrel::test {
namespace {

// Of float32 logits of the same tokens by another order of sums.
/// How far logits may lie apart that would be equal in exact arithmetic.
constexpr float kSameInReference = 2e-3F;
constexpr float kSameInKernels = 2e-2F;  // activations in 16 bits, keys and values in bfloat16

const std::string kShapes = "examples/shapes.png";
const std::string kOther = "tests/golden/reference/media/wide.png";

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const Family* family : families()) {
    names.emplace_back(family->model_type);
  }
  for (const auto& entry : std::filesystem::directory_iterator(bundled_model(""))) {
    if (std::filesystem::exists(entry.path() / "config.json")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

/// Those with a tower; what they see is asserted before each test.
std::vector<std::string> vision_models() {
  std::vector<std::string> names = models();
  std::erase_if(names, [](const std::string& name) { return name.find("vl") == name.npos; });
  return names;
}

std::filesystem::path folder_of(const std::string& name) {
  return name.starts_with("tiny-") ? bundled_model(name) : tiny_model(name);
}

/// Tokens that are no media placeholders, the same in each run.
std::vector<int32_t> some_ids(int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(100 + (i * 37) % 800);
  }
  return ids;
}

class Invariants : public testing::TestWithParam<std::string> {
 protected:
  explicit Invariants(std::unique_ptr<const ops::Ops> ops = exact_ops())
      : loaded_(folder_of(GetParam()), std::move(ops)) {}

  float same() const {
    return loaded_.engine.ops_name() == "reference" ? kSameInReference : kSameInKernels;
  }

  /// What other rows in a forward may change in a prompt's or answer's rows: nothing in our
  /// kernels; MLX's products of many rows add up in another order than those of few.
  float beside() const { return loaded_.engine.ops_name() == "cpu" ? 0.0F : same(); }

  const Model& model() const { return loaded_.model(); }

  bool sees() const { return loaded_.frontend.media.has_value(); }

  /// Behind a picture for models with a tower, and behind text.
  std::vector<Prompt> prompts() const {
    std::vector<Prompt> all = {loaded_.prompt({}, "What is seven plus eight? Count from 3 to 40.")};
    if (sees()) {
      all.push_back(loaded_.prompt({kShapes}, "Describe this image."));
    }
    return all;
  }

  /// Two pictures with a video of four frames between them.
  Prompt picture_video_picture() const {
    const auto read = [](const std::string& name) {
      return read_file(source_dir() / name, Fault::input);
    };
    MediaInput video{.source = "clip", .kind = MediaKind::video, .fps = 2.0};
    for (int i = 0; i < 4; ++i) {
      const std::string frame = fmt::format("tests/golden/reference/media/clip-{}.png", i);
      video.frames.push_back({frame, read(frame)});
    }
    ChatInput input;
    input.media = {
        {.source = kShapes, .bytes = read(kShapes)},
        video,
        {.source = kOther, .bytes = read(kOther)}
    };
    Json content = Json::array();
    for (const std::string type : {"image", "video", "image"}) {
      content.push_back(Json::object({{"type", type}}));
    }
    content.push_back(Json::object({{"type", "text"}, {"text", "Compare."}}));
    input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
    const ChatTemplate chat_template =
        ChatTemplate::load(loaded_.frontend.config.folder, loaded_.frontend.tokenizer);
    return prepare_chat(loaded_.frontend, chat_template, input).prompt;
  }

  mx::array whole(const Prompt& prompt) const {
    nn::KVCache cache = model().make_cache();
    const int tokens = prompt.tokens();
    return run_chunks(model(), prompt, loaded_.encode(prompt), cache, 0, tokens, tokens);
  }

  /// The cache behind the whole prompt.
  nn::KVCache prefilled(const Prompt& prompt) const {
    nn::KVCache cache = model().make_cache();
    const int tokens = prompt.tokens();
    run_chunks(model(), prompt, loaded_.encode(prompt), cache, 0, tokens, tokens);
    mx::eval(cache.arrays());
    return cache;
  }

  /// Logits of a few more tokens behind a cache, one a step as in decoding.
  mx::array decode(
      const Prompt& prompt, nn::KVCache& cache, const std::vector<int32_t>& ids
  ) const {
    std::vector<mx::array> logits;
    for (const int32_t id : ids) {
      logits.push_back(
          model().logits(model().forward(next_chunk(prompt, cache.tokens(), id), cache))
      );
      logits.back().eval();
    }
    return mx::astype(mx::concatenate(logits, 0), mx::float32);
  }

  std::multiset<std::string> decode_operations(const Prompt& prompt, int behind) const {
    nn::KVCache cache = prefilled(prompt);
    decode(prompt, cache, some_ids(behind));
    const int32_t id = 5;
    const nn::Chunk chunk = next_chunk(prompt, cache.tokens(), id);
    return ops::operations({model().logits(model().forward(chunk, cache))});
  }

  LoadedModel loaded_;
};

/// Where rounded keys would hide what is asked.
class PositionInvariants : public Invariants {
 protected:
  PositionInvariants() : Invariants(ops::make_ops("reference", mx::float32)) {}
};

class VisionInvariants : public Invariants {
 protected:
  void SetUp() override { ASSERT_TRUE(sees()); }
};

mx::array rows_from(const mx::array& x, int first) {
  const mx::Shape start = {first, 0};
  return mx::slice(x, start, x.shape());
}

TEST_P(Invariants, cached_decode_is_one_full_prefill) {
  const std::vector<int32_t> ids = some_ids(64);
  for (const Prompt& prompt : prompts()) {
    nn::KVCache cache = prefilled(prompt);
    const mx::array stepwise = decode(prompt, cache, ids);
    const mx::array at_once = rows_from(whole(followed_by(prompt, ids)), prompt.tokens());
    EXPECT_LT(largest_difference(stepwise, at_once), same()) << prompt.media.size() << " media";
  }
}

TEST_P(Invariants, any_chunk_size_gives_the_same_logits) {
  for (const Prompt& prompt : prompts()) {
    const std::vector<nn::Features> features = loaded_.encode(prompt);
    const mx::array expected = whole(prompt);
    for (const int size : {1, 7, 64}) {
      nn::KVCache cache = model().make_cache();
      const mx::array chunked =
          run_chunks(model(), prompt, features, cache, 0, prompt.tokens(), size);
      EXPECT_LE(largest_difference(chunked, expected), beside()) << "chunks of " << size;
    }
  }
}

/// Prefill chunks and decode rows of several sequences in one forward.
TEST_P(Invariants, a_row_in_a_batch_is_the_row_alone) {
  std::vector<Prompt> all = prompts();
  all.push_back(loaded_.prompt({}, "Hello."));
  std::vector<std::vector<nn::Features>> features;
  std::vector<nn::KVCache> caches;
  std::vector<nn::Chunk> chunks;
  std::vector<nn::KVCache*> pointers;
  for (const Prompt& prompt : all) {
    features.push_back(loaded_.encode(prompt));
    caches.push_back(model().make_cache());
  }
  // The last sequence is one step ahead: it decodes while the others read their prompts.
  const int32_t id = 7;
  caches.back() = prefilled(all.back());
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    chunks.push_back(prompt_chunk(all[i], features[i], 0, all[i].tokens()));
  }
  chunks.push_back(next_chunk(all.back(), caches.back().tokens(), id));
  for (nn::KVCache& cache : caches) {
    pointers.push_back(&cache);
  }
  const mx::array batch =
      mx::astype(model().logits(model().forward(chunks, pointers)), mx::float32);
  std::vector<mx::array> alone;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    alone.push_back(whole(all[i]));
  }
  nn::KVCache cache = prefilled(all.back());
  alone.push_back(decode(all.back(), cache, {id}));
  EXPECT_LE(largest_difference(batch, mx::concatenate(alone, 0)), beside());
  // And each sequence goes on as if it had been alone.
  nn::KVCache fresh = prefilled(all.front());
  EXPECT_LE(
      largest_difference(
          decode(all.front(), caches.front(), some_ids(3)), decode(all.front(), fresh, some_ids(3))
      ),
      beside()
  );
}

/// As many as a prompt's step has rows, which are rounded where these are not.
TEST_P(Invariants, an_answer_among_many_is_the_answer_alone) {
  const Prompt prompt = prompts().back();
  const nn::KVCache start = prefilled(prompt);
  const std::vector<int32_t> ids = some_ids(40);
  std::vector<nn::KVCache> caches(ids.size(), start);
  std::vector<nn::KVCache*> pointers;
  std::vector<nn::Chunk> chunks;
  for (size_t i = 0; i < ids.size(); ++i) {
    pointers.push_back(&caches[i]);
    chunks.push_back(next_chunk(prompt, start.tokens(), ids[i]));
  }
  const mx::array batch =
      mx::astype(model().logits(model().forward(chunks, pointers)), mx::float32);
  std::vector<mx::array> alone;
  for (const int32_t id : ids) {
    nn::KVCache cache = start;
    alone.push_back(decode(prompt, cache, {id}));
  }
  EXPECT_LE(largest_difference(batch, mx::concatenate(alone, 0)), beside());
}

TEST_P(Invariants, prompts_stand_in_front_of_answers) {
  const Prompt prompt = prompts().front();
  nn::KVCache ahead = prefilled(prompt);
  nn::KVCache empty = model().make_cache();
  const int32_t id = 7;
  const std::vector<nn::Chunk> chunks = {
      next_chunk(prompt, ahead.tokens(), id), prompt_chunk(prompt, {}, 0, prompt.tokens())
  };
  const std::vector<nn::KVCache*> caches = {&ahead, &empty};
  EXPECT_THROW(model().forward(chunks, caches), std::logic_error);
}

TEST_P(VisionInvariants, two_pictures_keep_their_features_in_both_orders) {
  const auto rows = [&](const std::vector<std::string>& pictures) {
    std::vector<mx::array> each;
    for (const nn::Features& features : loaded_.encode(loaded_.prompt(pictures, "Compare."))) {
      each.push_back(features.rows);
    }
    return each;
  };
  const std::vector<mx::array> there = rows({kShapes, kOther});
  const std::vector<mx::array> back = rows({kOther, kShapes});
  EXPECT_EQ(largest_difference(there[0], back[1]), 0.0F);
  EXPECT_EQ(largest_difference(there[1], back[0]), 0.0F);
  EXPECT_EQ(largest_difference(there[0], rows({kShapes})[0]), 0.0F);
  // The order is seen: the last token's logits differ.
  const mx::array first = whole(loaded_.prompt({kShapes, kOther}, "Compare."));
  const mx::array second = whole(loaded_.prompt({kOther, kShapes}, "Compare."));
  EXPECT_GT(
      largest_difference(
          rows_from(first, first.shape(0) - 1), rows_from(second, second.shape(0) - 1)
      ),
      same()
  );
}

TEST_P(Invariants, a_text_request_behind_a_picture_request_is_a_fresh_one) {
  const std::vector<Prompt> all = prompts();
  const mx::array fresh = whole(all.front());
  whole(all.back());
  EXPECT_EQ(largest_difference(whole(all.front()), fresh), 0.0F);
}

TEST_P(Invariants, a_saved_cache_goes_on_as_the_original) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      fmt::format("whimbrel-cache-{}-{}.safetensors", GetParam(), getpid());
  for (const Prompt& prompt : prompts()) {
    nn::KVCache cache = prefilled(prompt);
    nn::save_kv_cache(cache, file);
    nn::KVCache read = nn::read_kv_cache(
        file, model().config().num_hidden_layers, model().config().attention.heads
    );
    EXPECT_EQ(read.tokens(), cache.tokens());
    const mx::array expected = decode(prompt, cache, some_ids(4));
    EXPECT_EQ(largest_difference(decode(prompt, read, some_ids(4)), expected), 0.0F);
  }
  std::filesystem::remove(file);
}

TEST_P(Invariants, a_fork_leaves_the_original_alone) {
  for (const Prompt& prompt : prompts()) {
    nn::KVCache cache = prefilled(prompt);
    nn::KVCache untouched = prefilled(prompt);
    nn::KVCache fork = cache;
    decode(prompt, fork, {11, 12, 13});
    const mx::array expected = decode(prompt, untouched, some_ids(4));
    EXPECT_EQ(largest_difference(decode(prompt, cache, some_ids(4)), expected), 0.0F);
  }
}

TEST_P(Invariants, a_truncated_cache_goes_on_as_if_nothing_had_followed) {
  for (const Prompt& prompt : prompts()) {
    nn::KVCache cache = prefilled(prompt);
    nn::KVCache untouched = prefilled(prompt);
    decode(prompt, cache, {11, 12, 13});
    cache.truncate(prompt.tokens());
    const mx::array expected = decode(prompt, untouched, some_ids(4));
    EXPECT_EQ(largest_difference(decode(prompt, cache, some_ids(4)), expected), 0.0F);
  }
}

TEST_P(VisionInvariants, a_prompt_may_end_on_a_picture) {
  Prompt prompt = loaded_.prompt({kShapes}, "Describe this image.");
  const int end = prompt.media[0].end_token();
  prompt.ids.resize(static_cast<size_t>(end));
  for (std::vector<int32_t>& axis : prompt.positions.axes) {
    axis.resize(static_cast<size_t>(end));
  }
  int32_t largest = 0;
  for (const std::vector<int32_t>& axis : prompt.positions.axes) {
    largest = std::max(largest, *std::ranges::max_element(axis));
  }
  prompt.positions.delta = largest + 1 - end;
  nn::KVCache cache = prefilled(prompt);
  const mx::array stepwise = decode(prompt, cache, some_ids(8));
  const mx::array at_once = rows_from(whole(followed_by(prompt, some_ids(8))), end);
  EXPECT_LT(largest_difference(stepwise, at_once), same());
}

TEST_P(Invariants, every_layer_keeps_the_activation_dtype) {
  for (const mx::Dtype dtype : {mx::bfloat16, mx::float16}) {
    for (const ops::Arithmetic arithmetic : {ops::Arithmetic::native, ops::Arithmetic::float32}) {
      const LoadedModel narrow(folder_of(GetParam()), ops::make_reference_ops(dtype, arithmetic));
      std::set<std::string> wrong;
      int stages = 0;
      const nn::StageListener listen = [&](std::string_view stage, const mx::array& output) {
        ++stages;
        if (output.dtype() != dtype) {
          wrong.emplace(stage);
        }
      };
      const Prompt prompt = narrow.prompt(
          sees() ? std::vector<std::string>{kShapes} : std::vector<std::string>{}, "Describe this."
      );
      std::vector<nn::Features> features;
      for (const MediaSpan& span : prompt.media) {
        features.push_back(narrow.model().encode(span.patches, listen));
      }
      nn::KVCache cache = narrow.model().make_cache();
      const nn::Chunk chunk = prompt_chunk(prompt, features, 0, prompt.tokens());
      narrow.model().forward(chunk, cache, listen);
      EXPECT_EQ(wrong, std::set<std::string>());
      EXPECT_GE(stages, narrow.model().config().num_hidden_layers + (sees() ? 3 : 1));
    }
  }
}

TEST_P(Invariants, a_decode_step_does_the_same_at_any_context) {
  for (const Prompt& prompt : prompts()) {
    EXPECT_EQ(decode_operations(prompt, 1), decode_operations(prompt, 40));
  }
}

TEST_P(Invariants, a_decode_step_behind_a_picture_is_one_behind_text) {
  const std::vector<Prompt> all = prompts();
  const std::multiset<std::string> behind = decode_operations(all.back(), 1);
  EXPECT_EQ(behind, decode_operations(all.front(), 1));
  EXPECT_EQ(behind.count("Select"), 0U) << "a mask at one query row";
}

/// Cosines and sines are made on the host, one pair a forward: all layers read the same two arrays.
TEST_P(VisionInvariants, rope_tables_are_made_once_a_forward) {
  const Prompt prompt = loaded_.prompt({kShapes}, "Describe this image.");
  const std::vector<nn::Features> features = loaded_.encode(prompt);
  for (const nn::Features& of_medium : features) {
    mx::eval(of_medium.arrays());
  }
  const auto tables = [&](int first, int end, nn::KVCache& cache) {
    const mx::Shape shape = {end - first, model().config().attention.heads.head_dim / 2};
    const nn::Chunk chunk = prompt_chunk(prompt, features, first, end);
    std::set<std::uintptr_t> found;
    ops::walk_graph({model().forward(chunk, cache)}, [&](const mx::array& node) {
      if (!node.has_primitive() && node.dtype() == mx::float32 && node.shape() == shape) {
        found.insert(node.id());
      }
    });
    return found.size();
  };
  nn::KVCache cache = model().make_cache();
  const int behind = prompt.media[0].end_token();
  EXPECT_EQ(tables(0, behind, cache), 2U);
  const size_t for_text = loaded_.engine.ops().rotates_by_tables() ? 2 : 0;
  EXPECT_EQ(tables(behind, prompt.tokens(), cache), for_text) << "text behind a picture";
}

/// Nothing between the cache and attention has as many heads as the queries: with fewer key than
/// query heads, a repeat would show in a node of the cache's length.
TEST_P(Invariants, nothing_repeats_keys_and_values) {
  const ops::HeadShape& heads = model().config().attention.heads;
  ASSERT_GT(heads.heads, heads.kv_heads) << "this model can't show a repeat";
  const Prompt prompt = prompts().back();
  nn::KVCache cache = prefilled(prompt);
  const int32_t id = 5;
  const mx::array hidden = model().forward(next_chunk(prompt, cache.tokens(), id), cache);
  const int rows = cache.length();
  const auto repeated = static_cast<size_t>(rows) * static_cast<size_t>(heads.heads) *
                        static_cast<size_t>(heads.head_dim);
  ops::walk_graph({hidden}, [&](const mx::array& node) {
    if (node.has_primitive() && node.ndim() >= 3) {
      const std::string name = node.primitive().name();
      EXPECT_FALSE(node.size() == repeated && name != "Broadcast") << name;
    }
  });
}

/// Several rows at an offset behind a cache that lost rows in the middle, with a picture among the
/// rows that stayed.
TEST_P(Invariants, a_trimmed_cache_takes_chunks_as_it_takes_single_rows) {
  const Prompt prompt = prompts().back();
  const Prompt longer = followed_by(prompt, some_ids(40));
  const int keep = sees() ? prompt.media[0].end_token() : 4;
  const auto behind_a_gap = [&](int size) {
    nn::KVCache cache = prefilled(followed_by(prompt, some_ids(20)));
    cache.drop(keep, 9);
    const int first = cache.tokens();
    const std::vector<nn::Features> features = loaded_.encode(longer);
    return run_chunks(model(), longer, features, cache, first, longer.tokens(), size);
  };
  const mx::array single = behind_a_gap(1);
  EXPECT_EQ(single.shape(0), 20);
  EXPECT_LT(largest_difference(behind_a_gap(7), single), same());
  EXPECT_LT(largest_difference(behind_a_gap(20), single), same());
}

/// Nothing that a prompt's positions depend on is made anew for a chunk: neither the rows of a cut
/// picture nor the distance by which decoding goes on.
TEST_P(Invariants, decoding_behind_chunks_is_decoding_behind_one_prefill) {
  const Prompt prompt = prompts().back();
  nn::KVCache at_once = prefilled(prompt);
  const mx::array expected = decode(prompt, at_once, some_ids(8));
  for (const int size : {7, 64}) {
    nn::KVCache cache = model().make_cache();
    run_chunks(model(), prompt, loaded_.encode(prompt), cache, 0, prompt.tokens(), size);
    EXPECT_EQ(cache.tokens(), at_once.tokens() - 8);
    EXPECT_LT(largest_difference(decode(prompt, cache, some_ids(8)), expected), same()) << size;
  }
}

/// Causality goes by a token's place in the prompt, never by its positions: those of one picture's
/// tokens share a time.
TEST_P(VisionInvariants, a_later_patch_changes_nothing_before_it) {
  const Prompt prompt = loaded_.prompt({kShapes}, "Describe this image.");
  std::vector<nn::Features> features = loaded_.encode(prompt);
  const int rows = prompt.media[0].tokens();
  const int changed = rows / 2;
  const mx::array at = mx::reshape(mx::arange(rows), {rows, 1});
  const mx::array bump =
      mx::where(mx::equal(at, mx::array(changed)), mx::array(1.0F), mx::array(0.0F));
  const mx::array before = whole(prompt);
  features[0].rows = mx::add(features[0].rows, bump);
  for (mx::array& layer : features[0].deepstack) {
    layer = mx::add(layer, bump);
  }
  nn::KVCache cache = model().make_cache();
  const int tokens = prompt.tokens();
  const mx::array after = run_chunks(model(), prompt, features, cache, 0, tokens, tokens);
  const int row = prompt.media[0].first_token() + changed;
  const mx::Shape start = {0, 0};
  const mx::Shape stop = {row, before.shape(1)};
  EXPECT_LT(
      largest_difference(mx::slice(before, start, stop), mx::slice(after, start, stop)),
      kSameInReference
  );
  EXPECT_GT(largest_difference(rows_from(before, row), rows_from(after, row)), same());
}

/// Attention sees differences of positions alone, on each axis.
TEST_P(PositionInvariants, a_shift_of_all_positions_changes_nothing) {
  for (const Prompt& prompt : prompts()) {
    Prompt shifted = prompt;
    for (std::vector<int32_t>& axis : shifted.positions.axes) {
      for (int32_t& position : axis) {
        position += 200;
      }
    }
    shifted.positions.delta += 200;
    EXPECT_LT(largest_difference(whole(shifted), whole(prompt)), same());
    nn::KVCache cache = prefilled(prompt);
    nn::KVCache moved = prefilled(shifted);
    const mx::array expected = decode(prompt, cache, some_ids(4));
    EXPECT_LT(largest_difference(decode(shifted, moved, some_ids(4)), expected), same());
  }
}

/// What a cache of prompt prefixes will rest on: rows may be kept up to any token of a picture.
TEST_P(VisionInvariants, a_prefix_may_end_anywhere_in_a_picture) {
  const Prompt prompt = loaded_.prompt({kShapes}, "Describe this image.");
  const std::vector<nn::Features> features = loaded_.encode(prompt);
  const mx::array expected = whole(prompt);
  const int first = prompt.media[0].first_token();
  const int end = prompt.media[0].end_token();
  for (const int kept : {first, first + 1, (first + end) / 2, end - 1, end, end + 1}) {
    nn::KVCache cache = prefilled(prompt);
    cache.truncate(kept);
    const mx::array rest = run_chunks(model(), prompt, features, cache, kept, prompt.tokens(), 512);
    EXPECT_LT(largest_difference(rest, rows_from(expected, kept)), same()) << kept << " kept";
  }
}

/// Nothing is kept by a path or by token ids, which are the same for all pictures of one size.
TEST_P(VisionInvariants, a_file_written_anew_is_another_picture) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      fmt::format("whimbrel-picture-{}-{}.png", GetParam(), getpid());
  const auto ask = [&](const std::string& picture) {
    std::filesystem::copy_file(
        source_dir() / "tests/golden/reference/media" / picture,
        file,
        std::filesystem::copy_options::overwrite_existing
    );
    return loaded_.prompt({file.string()}, "What colour is this image?");
  };
  const Prompt blue = ask("blue.png");
  const mx::array of_blue = whole(blue);
  const Prompt green = ask("green.png");
  EXPECT_EQ(green.ids, blue.ids);
  EXPECT_EQ(green.positions.axes, blue.positions.axes);
  EXPECT_GT(largest_difference(whole(green), of_blue), same());
  EXPECT_EQ(largest_difference(whole(ask("blue.png")), of_blue), 0.0F);
  std::filesystem::remove(file);
}

TEST_P(VisionInvariants, pictures_and_videos_take_their_own_features) {
  const Prompt prompt = picture_video_picture();
  ASSERT_EQ(prompt.media.size(), 3U);
  const MediaKind kinds[] = {MediaKind::image, MediaKind::video, MediaKind::image};
  const std::vector<nn::Features> features = loaded_.encode(prompt);
  const nn::Chunk chunk = prompt_chunk(prompt, features, 0, prompt.tokens());
  size_t next = 0;
  for (size_t i = 0; i < prompt.media.size(); ++i) {
    const MediaSpan& span = prompt.media[i];
    EXPECT_EQ(span.kind, kinds[i]);
    EXPECT_EQ(features[i].rows.shape(0), span.tokens());
    int row = 0;
    for (const TokenRun& run : span.runs) {
      const nn::FeatureRows& placed = chunk.media.at(next++);
      EXPECT_EQ(placed.first, run.first);
      const mx::array own = features[i].slice(row, row + run.tokens).rows;
      EXPECT_EQ(largest_difference(placed.features.rows, own), 0.0F) << i;
      row += run.tokens;
    }
  }
  EXPECT_EQ(next, chunk.media.size());
  const mx::array alone = loaded_.encode(loaded_.prompt({kOther}, "Compare."))[0].rows;
  EXPECT_EQ(largest_difference(features[2].rows, alone), 0.0F);
}

TEST_P(Invariants, a_packed_cache_is_close_to_a_plain_one) {
  if (model().config().attention.heads.head_dim % 32 != 0) {
    EXPECT_THROW(model().make_cache(8), Error) << "no group of 32 fits a head";
    return;
  }
  const Prompt prompt = prompts().back();
  nn::KVCache packed = model().make_cache(8);
  const std::vector<nn::Features> features = loaded_.encode(prompt);
  const mx::array found = run_chunks(model(), prompt, features, packed, 0, prompt.tokens(), 16);
  const mx::array expected = whole(prompt);
  const float scale = mx::max(mx::abs(expected)).item<float>();
  EXPECT_LT(largest_difference(found, expected), 0.05F * scale);
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(models, Invariants, testing::ValuesIn(models()), test_name);
INSTANTIATE_TEST_SUITE_P(models, PositionInvariants, testing::ValuesIn(models()), test_name);
INSTANTIATE_TEST_SUITE_P(models, VisionInvariants, testing::ValuesIn(vision_models()), test_name);

}  // namespace
}  // namespace whimbrel::test
