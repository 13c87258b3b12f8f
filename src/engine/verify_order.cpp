#include "engine/verify_order.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace whimbrel::verify {

namespace {

bool same_bits(const mx::array& left, const mx::array& right) {
  // NaN is the finite check's business.
  return mx::array_equal(left, right, true).item<bool>();
}

bool same_bits(const nn::Features& left, const nn::Features& right) {
  return std::ranges::equal(
      left.arrays(), right.arrays(), [](const mx::array& one, const mx::array& other) {
        return same_bits(one, other);
      }
  );
}

/// Features of pictures, taken from the tower in `order`; evaluated one by one as in a request.
std::vector<nn::Features> encode_in(
    const Encode& encode, const Prompt& prompt, const std::vector<size_t>& order
) {
  std::vector<std::optional<nn::Features>> taken(order.size());
  for (const size_t index : order) {
    taken[index] = encode(prompt.media[index].patches);
    mx::eval(taken[index]->arrays());
  }
  std::vector<nn::Features> features;
  for (std::optional<nn::Features>& of_picture : taken) {
    features.push_back(*std::move(of_picture));
  }
  return features;
}

/// The first picture that has not the features that it should have.
std::optional<size_t> first_other(
    const std::vector<nn::Features>& found, const std::vector<nn::Features>& expected
) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!same_bits(found[i], expected[i])) {
      return i;
    }
  }
  return std::nullopt;
}

bool are_distinct(const std::vector<nn::Features>& features) {
  for (size_t i = 0; i < features.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (same_bits(features[i], features[j])) {
        return false;
      }
    }
  }
  return true;
}

/// Indexes of the tokens that stand for pictures.
mx::array picture_tokens(const Prompt& prompt, const MediaRules& rules) {
  std::vector<int32_t> indexes;
  for (int i = 0; i < prompt.tokens(); ++i) {
    if (prompt.ids[static_cast<size_t>(i)] == rules.image_token_id) {
      indexes.push_back(i);
    }
  }
  return mx::array(indexes.begin(), {static_cast<int>(indexes.size())});
}

mx::array all_rows(const std::vector<nn::Features>& features) {
  std::vector<mx::array> rows;
  rows.reserve(features.size());
  for (const nn::Features& of_picture : features) {
    rows.push_back(of_picture.rows);
  }
  return mx::concatenate(rows, 0);
}

}  // namespace

CheckResult check_text_after_picture(const Model& model, const Run& text, const Input& picture) {
  const char* const check = "text_after_picture";
  run_whole(model, picture);
  const Run again = run_whole(model, *text.input);
  if (!same_bits(again.logits(), text.logits())) {
    return failed(check, "got other logits for a text behind a picture request than before it");
  }
  return passed(check, "a text's logits are the same bit for bit behind a picture request");
}

CheckResult check_picture_order(const Encode& encode, const Prompt& prompt) {
  const char* const check = "picture_order";
  std::vector<size_t> order(prompt.media.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const std::vector<nn::Features> in_order = encode_in(encode, prompt, order);
  std::ranges::reverse(order);
  const std::vector<nn::Features> reversed = encode_in(encode, prompt, order);
  if (const std::optional<size_t> other = first_other(reversed, in_order)) {
    return failed(
        check,
        fmt::format(
            "got other features for picture {} ({}) in reverse order",
            *other + 1,
            prompt.media[*other].source
        )
    );
  }
  if (!are_distinct(in_order)) {
    return failed(check, "got the same features for pictures of different colours");
  }
  return passed(
      check,
      fmt::format("features of {} pictures are the same bit for bit in both orders", order.size()),
      {{"pictures", order.size()}}
  );
}

CheckResult check_picture_rows(std::span<const Run* const> runs, const MediaRules& rules) {
  const char* const check = "picture_rows";
  int rows = 0;
  for (const Run* run : runs) {
    const mx::array indexes = picture_tokens(run->input->prompt, rules);
    const mx::array found = mx::take(run->decoder.front().output, indexes, 0);
    if (!mx::array_equal(found, all_rows(run->features), true).item<bool>()) {
      return failed(
          check, fmt::format("got other rows than the pictures' features in {}", run->input->name)
      );
    }
    rows += indexes.shape(0);
  }
  return passed(
      check,
      fmt::format("{} rows of features stand at their pictures' tokens", rows),
      {{"rows", rows}}
  );
}

}  // namespace whimbrel::verify
