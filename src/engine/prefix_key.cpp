#include "engine/prefix_key.h"

#include <algorithm>
#include <span>

#include "base/digest.h"

namespace whimbrel {

namespace {

template <typename T>
std::string_view bytes_of(const T& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0])};
}

std::string positions_digest(const Prompt& prompt, int first, int end) {
  Digest digest;
  for (const std::vector<int32_t>& axis : prompt.positions.axes) {
    const auto part =
        std::span(axis).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first));
    digest.update(bytes_of(part));
  }
  return digest.hex();
}

/// First token of a medium that is not the same in the other key.
int first_of_other_medium(const PrefixKey& a, const PrefixKey& b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a.media, b.media);
  int first = static_cast<int>(std::max(a.ids.size(), b.ids.size()));
  if (in_a != a.media.end()) {
    first = std::min(first, in_a->first);
  }
  if (in_b != b.media.end()) {
    first = std::min(first, in_b->first);
  }
  return first;
}

}  // namespace

std::string media_content(const Patches& patches) {
  Digest digest;
  digest.update(bytes_of(patches.grid_thw)).update(bytes_of(patches.values));
  return digest.hex();
}

PrefixKey prefix_key(const Prompt& prompt) {
  PrefixKey key{.ids = prompt.ids, .media = {}};
  for (const MediaSpan& span : prompt.media) {
    const int first = span.first_token();
    const int end = span.end_token();
    key.media.push_back(
        {first, end, media_content(span.patches), positions_digest(prompt, first, end)}
    );
  }
  return key;
}

int common_tokens(const PrefixKey& a, const PrefixKey& b) {
  const auto ids = std::ranges::mismatch(a.ids, b.ids);
  const int same = static_cast<int>(ids.in1 - a.ids.begin());
  return std::min(same, first_of_other_medium(a, b));
}

}  // namespace whimbrel
