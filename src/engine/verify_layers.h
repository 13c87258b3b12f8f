#pragma once

#include <string>

#include "engine/verify_difference.h"
#include "engine/verify_run.h"

namespace whimbrel::verify {

/// How far the layers of a forward lie from those of another one, each given the other's rows: an
/// error of one is not handed on to the next.
struct LayerDifference {
  Difference largest = {};  // its row is the position
  std::string stage = {};   // which it is
  int near_ties = 0;        // rows of a layer that weren't compared behind their experts

  void add(const LayerDifference& next);
};

/// Compares the stages of a forward of some rows, the first of which stands at `position`, with the
/// whole run's. Which experts a row is sent to is no continuous function of it: where the last
/// chosen one leads by no more than the router's logits differ here and there, and by their own
/// rounding, either choice is right. What is behind those experts is not compared then; what is in
/// front of them is always, by the router's logits.
LayerDifference layer_difference(
    const DecoderStages& found, const Run& whole, int position, int experts_per_token
);

}  // namespace whimbrel::verify
