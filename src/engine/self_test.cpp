#include "engine/self_test.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/prepare.h"
#include "generate/generate.h"
#include "media/decode.h"

namespace whimbrel {

namespace {

/// 168 x 168 pixels of one blue.
constexpr std::string_view kPicture =
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAKgAAACoCAIAAAD7KTLjAAABGElEQVR42u3RAQEAMAQAwVkaccQW"
    "Sw/uI/xFVj/d61sAXuAFXuAFXuAFXuAFXuAFXuAFXuAFXuAFXuAFXuAFXuAFHrzAC7zAC7zAC7zA"
    "C7zAC7zAC7zAC7zAC7zAC7zAC7zACzx4gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd4"
    "gQcv8AIv8AIv8AIv8AIv8AIv8AIv8AIv8AIv8AIv8AIv8AIPXuAFXuAFXuAFXuAFXuAFXuAFXuAF"
    "XuAFXuAFXuAFXuAFXuDBC7zAC7zAC7zAC7zAC7zAC7zAC7zAC7zAC7zAC7zAC7zAgxd4gRd4gRd4"
    "gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd4gRd48AKv/Q0rnwKQtw46gAAAAABJRU5ErkJggg==";
constexpr int kPictureSide = 168;
constexpr std::array<uint8_t, 3> kPictureColour = {40, 80, 200};
constexpr std::string_view kPictureQuestion = "What colour is this image?";

// Small enough for a scalar loop, large enough for every kernel's blocks and remainders.
constexpr int kRows = 33;
constexpr int kInputs = 520;
constexpr int kOutputs = 264;
constexpr ops::HeadShape kHeads = {.heads = 4, .kv_heads = 2, .head_dim = 64};
constexpr int kCachedRows = 70;
constexpr int kCacheCapacity = 128;

/// Numbers from -1 to 1, the same on every machine.
std::vector<float> numbers(int count, uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
  }
  return values;
}

/// Rounded to the dtype that operations compute in, so that only the operations are judged.
mx::array matrix_of(const std::vector<float>& values, int rows, mx::Dtype dtype) {
  const int columns = static_cast<int>(values.size()) / rows;
  return mx::astype(mx::array(values.begin(), {rows, columns}), dtype);
}

std::vector<float> values_of(const mx::array& array) {
  mx::array values = mx::contiguous(mx::astype(array, mx::float32));
  values.eval();
  return {values.data<float>(), values.data<float>() + values.size()};
}

double tolerance_of(mx::Dtype dtype) {
  return dtype == mx::float32 ? 1e-4 : 3e-2;
}

/// The largest error as text. Throws where it is over the dtype's tolerance.
std::string judged(
    std::span<const float> found, std::span<const double> expected, mx::Dtype dtype
) {
  double largest = 0;
  double scale = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(found[i] - expected[i]);
    largest = std::isfinite(error) ? std::max(largest, error) : INFINITY;
    scale = std::max(scale, std::abs(expected[i]));
  }
  if (found.size() != expected.size() || largest > tolerance_of(dtype) * scale) {
    throw Error(
        Fault::check,
        "self-test",
        "got an error of {:.2g}, expected at most {:.2g}",
        largest,
        tolerance_of(dtype) * scale
    );
  }
  return fmt::format("largest error {:.2g} against float64", largest);
}

std::vector<double> scalar_product(std::span<const float> x, std::span<const float> weight) {
  std::vector<double> output;
  for (int row = 0; row < kRows; ++row) {
    for (int out = 0; out < kOutputs; ++out) {
      double sum = 0;
      for (int i = 0; i < kInputs; ++i) {
        sum += double{x[static_cast<size_t>(row) * kInputs + static_cast<size_t>(i)]} *
               weight[static_cast<size_t>(out) * kInputs + static_cast<size_t>(i)];
      }
      output.push_back(sum);
    }
  }
  return output;
}

std::string matmul(const ops::Ops& ops) {
  const mx::array x = matrix_of(numbers(kRows * kInputs, 1), kRows, ops.dtype());
  const mx::array weight = matrix_of(numbers(kOutputs * kInputs, 2), kOutputs, ops.dtype());
  const std::vector<double> expected = scalar_product(values_of(x), values_of(weight));
  const mx::array found = ops.linear(ops::decode_rows(x), *ops.pack({.weight = weight}));
  return judged(values_of(found), expected, ops.dtype());
}

/// One query row over all keys, by the definition; k and v [rows, kv_heads * head_dim].
std::vector<double> scalar_attention(
    std::span<const float> q, std::span<const float> k, std::span<const float> v, int rows
) {
  std::vector<double> output;
  const auto at = [](std::span<const float> x, int row, int kv_head, int i) {
    const int index = (row * kHeads.kv_heads + kv_head) * kHeads.head_dim + i;
    return double{x[static_cast<size_t>(index)]};
  };
  for (int head = 0; head < kHeads.heads; ++head) {
    const int kv_head = head * kHeads.kv_heads / kHeads.heads;
    std::vector<double> weights;
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      double score = 0;
      for (int i = 0; i < kHeads.head_dim; ++i) {
        score += q[static_cast<size_t>(head) * kHeads.head_dim + static_cast<size_t>(i)] *
                 at(k, row, kv_head, i);
      }
      weights.push_back(std::exp(score / std::sqrt(kHeads.head_dim)));
      total += weights.back();
    }
    for (int i = 0; i < kHeads.head_dim; ++i) {
      double sum = 0;
      for (int row = 0; row < rows; ++row) {
        sum += weights[static_cast<size_t>(row)] / total * at(v, row, kv_head, i);
      }
      output.push_back(sum);
    }
  }
  return output;
}

/// A plan that rotates nothing: the rotation has its own tests.
ops::RopePlan no_rotation(int rows) {
  const mx::array cos = mx::ones({rows, kHeads.head_dim / 2});
  return {mx::ones({kHeads.head_dim / 2}), 0, ops::RopeTables{cos, mx::zeros_like(cos)}};
}

mx::array rows_of(const mx::array& x, int first, int end) {
  return mx::slice(x, {first, 0}, {end, x.shape(1)});
}

/// Many rows at once, then one behind them, as in prefill and decode. The last row is judged: it
/// sees what both wrote.
std::string attention(const ops::Ops& ops) {
  const int rows = kCachedRows + 1;
  const int q_width = kHeads.heads * kHeads.head_dim;
  const int kv_width = kHeads.kv_heads * kHeads.head_dim;
  const mx::array q = matrix_of(numbers(rows * q_width, 3), rows, ops.dtype());
  const mx::array k = matrix_of(numbers(rows * kv_width, 4), rows, ops.dtype());
  const mx::array v = matrix_of(numbers(rows * kv_width, 5), rows, ops.dtype());
  const auto part = [&](int first, int end) -> ops::Qkv {
    return {rows_of(q, first, end), rows_of(k, first, end), rows_of(v, first, end)};
  };
  const mx::array empty =
      mx::zeros({1, kHeads.kv_heads, kCacheCapacity, kHeads.head_dim}, ops.kv_dtype());
  ops::KVBuffer cache{{empty}, {empty}, {.dtype = ops.kv_dtype()}};
  const auto attend = [&](int first, int end) {
    const ops::RopePlan rope = no_rotation(end - first);
    const ops::AttentionRows sequence[] = {{0, end - first, rope, cache, first, first == 0}};
    ops::AttentionResult result = ops.attention(part(first, end), kHeads, std::nullopt, sequence);
    cache = result.caches[0];
    return result.output;
  };
  attend(0, kCachedRows);
  const mx::array last = attend(kCachedRows, rows);
  const std::vector<float> query = values_of(rows_of(q, kCachedRows, rows));
  const std::vector<double> expected = scalar_attention(query, values_of(k), values_of(v), rows);
  return judged(values_of(last), expected, ops.kv_dtype());
}

void require(bool fits, std::string_view found, std::string_view want) {
  if (!fits) {
    throw Error(Fault::check, "self-test", "got {}, expected {}", found, want);
  }
}

std::string picture() {
  const Image image =
      decode_image(read_data_url(kPicture, MediaKind::image).bytes, "compiled-in picture");
  require(
      image.height == kPictureSide && image.width == kPictureSide,
      fmt::format("{} x {} pixels", image.height, image.width),
      "168 x 168"
  );
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    require(image.pixels[i] == kPictureColour[i % 3], "another colour", "its own blue");
  }
  return "168 x 168 pixels, every one right";
}

std::string tokenizer_round_trip(const Tokenizer& tokenizer) {
  constexpr std::string_view kText = "Seven plus eight is 15.\n  Größe 大小 🦆";
  const std::vector<int32_t> ids = tokenizer.encode_text(kText);
  const std::string back = tokenizer.decode(ids, SpecialTokens::keep);
  require(back == kText, fmt::format("\"{}\"", back), fmt::format("\"{}\"", kText));
  return fmt::format("{} tokens and back", ids.size());
}

ChatInput question(bool with_picture) {
  ChatInput input;
  Json content = Json::array();
  if (with_picture) {
    input.media.push_back(read_data_url(kPicture, MediaKind::image));
    content.push_back(Json::object({{"type", "image"}}));
  }
  content.push_back(Json::object({{"type", "text"}, {"text", std::string(kPictureQuestion)}}));
  input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
  return input;
}

/// With the picture where the model takes pictures.
Prompt question_prompt(const Frontend& frontend) {
  const ChatTemplate chat_template = ChatTemplate::load(frontend.config.folder, frontend.tokenizer);
  return prepare_chat(frontend, chat_template, question(frontend.media.has_value())).prompt;
}

std::string template_prompt(const Frontend& frontend) {
  const Prompt prompt = question_prompt(frontend);
  if (!frontend.media) {
    return fmt::format("{} tokens of text", prompt.tokens());
  }
  require(prompt.media.size() == 1, "no picture in the prompt", "one");
  return fmt::format(
      "{} tokens, {} of them the picture's", prompt.tokens(), prompt.media[0].tokens()
  );
}

std::string colour_answer(const Frontend& frontend, std::string_view requested_ops) {
  Checkpoint checkpoint(frontend.config);
  const Engine engine(
      frontend, checkpoint, choose_ops(requested_ops, checkpoint.summary()), LoadEvents{}
  );
  GenerateOptions options{.max_tokens = 8, .stop_ids = frontend.stop_ids};
  options.sampling.temperature = 0;
  return generate(engine.model(), frontend.tokenizer, question_prompt(frontend), options, {}).text;
}

}  // namespace

Check run_check(const std::string& name, const std::function<std::string()>& body) {
  const Stopwatch watch;
  Check check{.name = name};
  try {
    check.detail = body();
    check.ok = true;
  } catch (const std::exception& error) {
    check.detail = error.what();
  }
  check.milliseconds = watch.milliseconds();
  return check;
}

std::vector<Check> check_ops(const ops::Ops& ops) {
  return {
      run_check("matrix product", [&ops] { return matmul(ops); }),
      run_check("attention", [&ops] { return attention(ops); })
  };
}

Check check_picture() {
  return run_check("picture", picture);
}

std::vector<Check> check_frontend(const Frontend& frontend) {
  return {
      run_check("tokenizer", [&] { return tokenizer_round_trip(frontend.tokenizer); }),
      run_check("template", [&] { return template_prompt(frontend); })
  };
}

Check check_answer(
    const Frontend& frontend, std::string_view requested_ops, std::string_view expected
) {
  return run_check("answer", [&] {
    const std::string text = colour_answer(frontend, requested_ops);
    require(text == expected, fmt::format("\"{}\"", text), fmt::format("\"{}\"", expected));
    return fmt::format("\"{}\" to \"{}\"", text, kPictureQuestion);
  });
}

}  // namespace whimbrel
