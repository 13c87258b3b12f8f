#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "engine/memory_ledger.h"
#include "engine/prefix_key.h"
#include "nn/kv_cache.h"

namespace whimbrel {

/// Keys and values of prompts that were answered, for prompts that begin alike. Least recently used
/// ones go first. Never shared between scopes.
class PrefixCache {
 public:
  /// Holds at most `most_bytes`, which it takes from the ledger.
  PrefixCache(MemoryLedger& ledger, uint64_t most_bytes)
      : ledger_(ledger), most_bytes_(most_bytes) {}

  struct Found {
    std::optional<nn::KVCache> cache = std::nullopt;  // a fork that ends with the last common token
    std::string not_cached = {};                      // why it ends there, for people
  };

  /// Of all entries the one that has most tokens in common with the key; of these at most `most`.
  Found find(const std::string& scope, const PrefixKey& key, int most);

  /// Keeps a cache that holds exactly the key's tokens, where there is room for it.
  void put(const std::string& scope, PrefixKey key, nn::KVCache cache);

  /// Gives up entries until the ledger has so many bytes left; none, and false, where all of them
  /// are not enough.
  bool make_room(uint64_t bytes);

  void clear();

  uint64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string scope;
    PrefixKey key;
    nn::KVCache cache;
    MemoryLedger::Share share;
  };

  void drop_last();
  void drop_prefixes_of(const std::string& scope, const PrefixKey& key);

  MemoryLedger& ledger_;
  uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // the last used in front
};

}  // namespace whimbrel
