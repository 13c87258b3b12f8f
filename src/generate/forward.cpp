#include "generate/forward.h"

#include <mlx/mlx.h>

namespace whimbrel {

std::vector<nn::Features> encode_media(
    const Model& model, const Prompt& prompt, size_t count, const std::function<void()>& before_each
) {
  std::vector<nn::Features> features;
  for (size_t i = 0; i < count; ++i) {
    before_each();
    features.push_back(model.encode(prompt.media[i].patches));
    mx::eval(features.back().arrays());
  }
  return features;
}

std::vector<float> evaluated_logits(const Model& model, const mx::array& hidden) {
  mx::array logits = mx::astype(model.logits(hidden), mx::float32);
  logits.eval();
  return {logits.data<float>(), logits.data<float>() + logits.size()};
}

NextLogits::NextLogits(const Model& model, const mx::array& hidden)
    : logits_(mx::astype(model.logits(hidden), mx::float32)), peaks_(model.peaks(logits_)) {
  mx::eval(logits_, peaks_);
}

RankedLogits NextLogits::row(int index) {
  const auto values = static_cast<size_t>(logits_.shape(1));
  const auto peaks = static_cast<size_t>(peaks_.shape(1));
  const auto place = static_cast<size_t>(index);
  return {
      {logits_.data<float>() + place * values, values},
      {peaks_.data<float>() + place * peaks, peaks}
  };
}

}  // namespace whimbrel
