#include "engine/feature_cache.h"

#include <algorithm>

namespace whimbrel {

namespace mx = mlx::core;

namespace {

uint64_t bytes_of(const nn::Features& features) {
  uint64_t bytes = 0;
  for (const mx::array& array : features.arrays()) {
    bytes += array.nbytes();
  }
  return bytes;
}

}  // namespace

std::optional<nn::Features> FeatureCache::find(
    const std::string& scope, const std::string& content
) {
  const auto entry = std::ranges::find_if(entries_, [&](const Entry& e) {
    return e.content == content && e.scope == scope;
  });
  if (entry == entries_.end()) {
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->features;
}

void FeatureCache::put(
    const std::string& scope, const std::string& content, const nn::Features& features
) {
  const uint64_t bytes = bytes_of(features);
  if (bytes > most_bytes_ || bytes > ledger_.left() + bytes_) {
    return;
  }
  while (bytes_ + bytes > most_bytes_) {
    drop_last();
  }
  make_room(bytes);
  entries_.push_front({scope, content, features, *ledger_.take(bytes)});
  bytes_ += bytes;
}

bool FeatureCache::make_room(uint64_t bytes) {
  if (ledger_.left() + bytes_ < bytes) {
    return false;
  }
  while (ledger_.left() < bytes) {
    drop_last();
  }
  return true;
}

void FeatureCache::drop_last() {
  bytes_ -= entries_.back().share.bytes();
  entries_.pop_back();
}

}  // namespace whimbrel
