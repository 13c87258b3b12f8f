#include "engine/prefix_cache.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>

namespace whimbrel {

namespace mx = mlx::core;

namespace {

uint64_t bytes_of(const nn::KVCache& cache) {
  uint64_t bytes = 0;
  for (const mx::array& array : cache.arrays()) {
    bytes += array.nbytes();
  }
  return bytes;
}

}  // namespace

PrefixCache::Found PrefixCache::find(const std::string& scope, const PrefixKey& key, int most) {
  auto best = entries_.end();
  int common = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const int tokens = entry->scope == scope ? common_tokens(entry->key, key) : 0;
    if (tokens > common) {
      best = entry;
      common = tokens;
    }
  }
  if (best == entries_.end()) {
    return {.not_cached = "no prompt that is kept begins like this one"};
  }
  entries_.splice(entries_.begin(), entries_, best);
  const int tokens = std::min(common, most);
  nn::KVCache fork = best->cache;
  fork.truncate(tokens);
  fork.shrink();
  return {
      std::move(fork),
      tokens < common ? "the last token is always computed"
      : common == static_cast<int>(best->key.ids.size())
          ? fmt::format("the prompt that is kept ends behind token {}", common)
          : fmt::format("token {} differs from those of the prompt that is kept", common)
  };
}

void PrefixCache::put(const std::string& scope, PrefixKey key, nn::KVCache cache) {
  cache.truncate(static_cast<int>(key.ids.size()));
  cache.shrink();
  mx::eval(cache.arrays());
  const uint64_t bytes = bytes_of(cache);
  if (bytes > most_bytes_ || bytes > ledger_.left() + bytes_) {
    return;
  }
  drop_prefixes_of(scope, key);
  while (bytes_ + bytes > most_bytes_) {
    drop_last();
  }
  make_room(bytes);
  entries_.push_front({scope, std::move(key), std::move(cache), *ledger_.take(bytes)});
  bytes_ += bytes;
}

bool PrefixCache::make_room(uint64_t bytes) {
  if (ledger_.left() + bytes_ < bytes) {
    return false;
  }
  while (ledger_.left() < bytes) {
    drop_last();
  }
  return true;
}

void PrefixCache::clear() {
  entries_.clear();
  bytes_ = 0;
}

void PrefixCache::drop_last() {
  bytes_ -= entries_.back().share.bytes();
  entries_.pop_back();
}

/// Whatever they would be found for, the longer one is found for too.
void PrefixCache::drop_prefixes_of(const std::string& scope, const PrefixKey& key) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool covered = entry->scope == scope &&
                         common_tokens(entry->key, key) == static_cast<int>(entry->key.ids.size());
    if (covered) {
      bytes_ -= entry->share.bytes();
      entry = entries_.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace whimbrel
