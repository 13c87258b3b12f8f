#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/verify_inputs.h"
#include "models/model.h"

namespace whimbrel::verify {

/// What one stage of a model put out, evaluated.
struct Stage {
  std::string name;  // as the stage listener hears it, such as visual.blocks.2
  mx::array output;
};

/// What one forward of a decoder put out.
struct DecoderStages {
  std::vector<Stage> outputs = {};
  std::vector<Stage> routers = {};  // of layers with experts: their routers' logits

  /// Fills them; evaluates nothing.
  nn::StageListener listener();

  std::vector<mx::array> arrays() const;
};

/// One input that went through the model whole, in one forward.
struct Run {
  const Input* input;
  std::vector<std::vector<Stage>> pictures = {};  // of the tower, for each picture
  std::vector<Stage> decoder = {};                // the last one is `logits` [tokens, vocab_size]
  std::vector<Stage> routers = {};                // beside it: logits of the layers' routers
  std::vector<nn::Features> features = {};        // of each picture

  const mx::array& logits() const { return decoder.back().output; }
};

/// The input lives as long as the run.
Run run_whole(const Model& model, const Input& input);

/// Calls `visit` for each stage of a run in the order of computing; `where` names the stage for
/// people: "visual.blocks.2 (shapes, picture 1)".
void for_each_stage(
    const Run& run, const std::function<void(const std::string& where, const Stage& stage)>& visit
);

}  // namespace whimbrel::verify
