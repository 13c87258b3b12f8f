#pragma once

#include <cstdint>

#include "nn/decoder.h"
#include "weights/checkpoint.h"

namespace whimbrel {

/// What decoding has to read, and what a model has to multiply: known from shapes. Weights count in
/// the form in which they are stored, whatever form an operation holds them in.
struct ModelWork {
  uint64_t shared_bytes = 0;  // weights that each step reads once, the head among them
  uint64_t expert_bytes = 0;  // of all layers' experts
  double experts_chosen = 0;  // share of them that one token is sent to
  uint64_t row_bytes = 0;     // of the embedding table, for each token
  uint64_t kv_bytes = 0;      // of keys and values, for each token of a context
  double layer_macs = 0;      // multiply-adds of all layers' matrices, for each token
  double head_macs = 0;       // of the head, for each token that logits are needed of
  double attention_macs = 0;  // for each token and each token that it sees
  double patch_macs = 0;      // of the tower's matrices, for each patch
};

/// Multiply-adds of the tower's matrices for each patch, `merged` of which make one token.
double tower_patch_macs(const Checkpoint& checkpoint, int merged);

/// `merged` is the number of patches that make one token. Attention inside the tower is left out of
/// its multiply-adds.
ModelWork model_work(
    const Checkpoint& checkpoint,
    const nn::DecoderConfig& config,
    const ops::KVFormat& kv,
    int merged
);

/// Bytes that one decode step of `rows` sequences reads, `context` tokens in each cache. Sequences
/// are taken to be sent to experts evenly and independently.
double step_bytes(const ModelWork& work, int rows, double context);

/// Multiply-adds of a prompt of `tokens` behind `depth` others, with the logits of its last.
double prefill_macs(const ModelWork& work, int tokens, int depth);

}  // namespace whimbrel
