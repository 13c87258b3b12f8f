#pragma once

#include <memory>
#include <optional>

#include "ablations/defective_ops.h"
#include "models/family.h"
#include "models/model.h"
#include "models/prompt.h"
#include "weights/checkpoint.h"
#include "weights/config.h"

namespace whimbrel::ablations {

/// A model on operations that can be made defective.
struct Subject {
  std::unique_ptr<const ops::Ops> backend;
  std::unique_ptr<DefectiveOps> ops;
  Model model;
  std::optional<MediaRules> media;  // nothing for a text model
};

/// Loads all weights. Throws Error(Fault::model).
Subject load_subject(
    const ModelConfig& config, Checkpoint& checkpoint, std::unique_ptr<const ops::Ops> backend
);

/// A context that a token is decoded behind.
struct Context {
  int tokens;
  bool behind_picture;
};

/// A context that is prefilled: what its cache holds, and where decoding goes on.
struct Prefilled {
  Context context;
  Prompt prompt;
  nn::KVCache cache;
};

/// Random text; behind a picture its first half and more is one, of random features (a decode step
/// doesn't depend on what the tower says, so that isn't run). Throws Error(Fault::usage) where
/// there is no room for a picture, or the model sees none.
Prefilled prefill(const Subject& subject, const Context& context);

}  // namespace whimbrel::ablations
