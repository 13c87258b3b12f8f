#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "engine/memory_ledger.h"
#include "nn/chunk.h"

namespace whimbrel {

/// What towers made of pictures and videos. Least recently used ones go first. Never shared between
/// scopes.
class FeatureCache {
 public:
  /// Holds at most `most_bytes`, which it takes from the ledger.
  FeatureCache(MemoryLedger& ledger, uint64_t most_bytes)
      : ledger_(ledger), most_bytes_(most_bytes) {}

  /// Of a picture by its content (media_content).
  std::optional<nn::Features> find(const std::string& scope, const std::string& content);

  /// Keeps features, where there is room for them.
  void put(const std::string& scope, const std::string& content, const nn::Features& features);

  /// Gives up entries until the ledger has so many bytes left; none, and false, where all of them
  /// are not enough.
  bool make_room(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string scope;
    std::string content;
    nn::Features features;
    MemoryLedger::Share share;
  };

  void drop_last();

  MemoryLedger& ledger_;
  uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // the last used in front
};

}  // namespace whimbrel
