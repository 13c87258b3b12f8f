#include "generate/sampling_defaults.h"

namespace whimbrel {

SamplingOptions sampling_defaults(const ModelConfig& config) {
  const Json& file = config.generation;
  const JsonSource source{(config.folder / "generation_config.json").string()};
  const bool do_sample = get_bool_or(file, "do_sample", false, source);
  SamplingOptions options{
      .temperature = do_sample ? get_number_or(file, "temperature", 1.0, source) : 0.0,
      .top_k = static_cast<int>(get_int_or(file, "top_k", 0, source, 0)),
      .top_p = get_number_or(file, "top_p", 1.0, source),
      .min_p = get_number_or(file, "min_p", 0.0, source),
      .repetition_penalty = get_number_or(file, "repetition_penalty", 1.0, source),
  };
  try {
    require_valid(options);
  } catch (const Error& error) {
    throw Error(Fault::model, source.where, "{}", error.what());
  }
  return options;
}

}  // namespace whimbrel
