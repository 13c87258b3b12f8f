#pragma once

#include <cstdint>

namespace whimbrel {

/// Tokens of an answer that can be guessed at a time: with its last token 16 rows, up to which a
/// forward is bound by what it reads.
constexpr int kMostGuesses = 15;

/// Bounds on what a serving engine does at a time.
struct ServingOptions {
  int context = 0;                   // tokens of a prompt and one answer
  int parallel = 16;                 // answers that are computed at a time
  int queue = 64;                    // requests that wait
  int64_t queue_tokens = 256 << 10;  // tokens of their prompts
  uint64_t queue_memory = 1 << 30;   // bytes of their pictures and videos
  double queue_seconds = 60;         // that a request waits at most; 0: as long as it takes
  double request_seconds = 3600;     // that it takes in all; 0: as long as it takes
  int prefill_chunk = 512;           // prompt tokens of a step
  int kv_bits = 0;                   // 8: keys and values in 8 bits
  int prompt_lookup = 0;  // tokens of an answer that are guessed at a time (PromptLookup)
  /// Tokens of an answer that there is room for when a request begins, and by which that grows:
  /// where memory ends, the last request gives way. 0: all of them, and nobody gives way.
  int answer_piece = 0;
  uint64_t memory = 0;          // bytes for caches, features and pictures
  uint64_t prefix_memory = 0;   // of these at most for prompts that were answered
  uint64_t feature_memory = 0;  // and for what towers made of pictures
};

/// What a serving engine is doing.
struct ServingStatus {
  int running = 0;  // requests
  int queued = 0;   // that have not begun
  int paused = 0;   // that gave way
  uint64_t memory_budget = 0;
  uint64_t memory_used = 0;
  uint64_t prefix_bytes = 0;
  uint64_t feature_bytes = 0;
  // Since the start:
  uint64_t finished = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t answer_tokens = 0;
  uint64_t guessed_tokens = 0;  // of answers, before they were drawn
  uint64_t guessed_right = 0;   // of these
  uint64_t prefixes_lost = 0;   // that could not be kept for want of memory
  uint64_t preempted = 0;       // requests that gave way, each time counted
  uint64_t pictures_encoded = 0;
  uint64_t pictures_cached = 0;
  uint64_t steps = 0;  // forwards, and blocks of towers
};

}  // namespace whimbrel
