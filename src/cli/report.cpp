#include "cli/report.h"

#include <mlx/utils.h>

#include <sstream>

#include "base/build_info.h"
#include "ops/device.h"

namespace whimbrel {

namespace {

double per_second(size_t count, double milliseconds) {
  return milliseconds > 0 ? static_cast<double>(count) * 1000.0 / milliseconds : 0;
}

Json timings_json(const Prompt& prompt, const RunTimings& timings) {
  const GenerateTimings& generate = timings.generate;
  return {
      {"load", timings.load},
      {"media_decode", timings.media_decode},
      {"preprocess", timings.preprocess},
      {"tower", generate.tower},
      {"prefill", generate.prefill},
      {"first_token", generate.first_token},
      {"decode", generate.decode},
      {"per_token", generate.per_token},
      {"prompt_per_second", per_second(prompt.ids.size(), generate.prefill)},
      {"decode_per_second", per_second(generate.per_token.size(), generate.decode)}
  };
}

}  // namespace

Json build_json(std::string_view ops) {
  const BuildInfo& build = build_info();
  return {
      {"version", build.version},
      {"commit", build.commit},
      {"dirty", build.dirty},
      {"build_id", build.build_id},
      {"compiler", build.compiler},
      {"flags", build.flags},
      {"mlx", build.mlx},
      {"backend", ops::backend_name()},
      {"ops", ops},
      {"isa", ops::cpu::isa_name(ops::chosen_isa())},
      {"blas", ops::blas_description()}
  };
}

std::string dtype_text(mlx::core::Dtype dtype) {
  std::ostringstream text;
  text << dtype;
  return text.str();
}

Json media_json(const MediaSpan& span) {
  const Patches& patches = span.patches;
  return {
      {"kind", span.kind == MediaKind::image ? "image" : "video"},
      {"source", span.source},
      {"size", {patches.original.height, patches.original.width}},
      {"resized", {patches.resized.height, patches.resized.width}},
      {"grid_thw", patches.grid_thw},
      {"tokens", span.tokens()},
      {"first_token", span.first_token()}
  };
}

Json answer_json(
    const Prompt& prompt,
    const Generation& generation,
    const RunTimings& timings,
    std::string_view ops
) {
  Json media = Json::array();
  for (const MediaSpan& span : prompt.media) {
    media.push_back(media_json(span));
  }
  Json answer = {
      {"text", generation.text},
      {"finish_reason", generation.finish_reason == FinishReason::stop ? "stop" : "length"},
      {"prompt_tokens", prompt.tokens()},
      {"generated_tokens", generation.ids.size()},
      {"ids", generation.ids},
      {"rope_delta", prompt.positions.delta},
      {"media", media},
      {"timings", timings_json(prompt, timings)},
      {"build", build_json(ops)}
  };
  if (generation.dropped) {
    answer["dropped"] = {
        {"first_token", generation.dropped->first},
        {"tokens", generation.dropped->end - generation.dropped->first}
    };
  }
  return answer;
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace whimbrel
