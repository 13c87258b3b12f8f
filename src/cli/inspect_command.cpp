#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/input_files.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "engine/memory_estimate.h"
#include "media/decode.h"
#include "nn/kv_cache.h"

namespace whimbrel {

namespace {

struct InspectFlags {
  std::string model;
  std::vector<std::string> images;
  bool json = false;
};

Json picture_json(const std::string& file, const Frontend& frontend) {
  const MediaInput input = read_media_file(file, file, MediaKind::image);
  const ImageHeader header = read_image_header(input.bytes, file);
  if (!frontend.image_processor) {
    throw Error(
        Fault::input, file, "got a picture, expected none: the checkpoint has no vision tower"
    );
  }
  const ImageProcessor& processor = *frontend.image_processor;
  const Size resized = resized_size({header.height, header.width}, processor, file);
  const int factor = processor.patch_size * processor.merge_size;
  return {
      {"source", file},
      {"format", format_name(header.format)},
      {"size", {header.height, header.width}},
      {"resized", {resized.height, resized.width}},
      {"grid_thw",
       {1, resized.height / processor.patch_size, resized.width / processor.patch_size}},
      {"tokens", (resized.height / factor) * (resized.width / factor)}
  };
}

Json weights_json(const CheckpointSummary& summary) {
  Json dtypes = Json::object();
  for (const CheckpointSummary::OfDtype& stored : summary.dtypes) {
    dtypes[std::string(dtype_name(stored.dtype))] = stored.bytes;
  }
  return {
      {"files", summary.files},
      {"tensors", summary.tensors},
      {"parameters", summary.parameters},
      {"bytes", summary.bytes},
      {"bytes_by_dtype", dtypes}
  };
}

Json quantization_json(const ModelConfig& config) {
  return config.root.value("quantization", config.root.value("quantization_config", Json()));
}

Json sizes_json(const ModelShape& shape) {
  Json sizes = {
      {"layers", shape.layers},
      {"hidden_size", shape.hidden_size},
      {"intermediate_size", shape.intermediate_size},
      {"heads", shape.heads.heads},
      {"kv_heads", shape.heads.kv_heads},
      {"head_dim", shape.heads.head_dim},
      {"vocab_size", shape.vocab_size}
  };
  if (shape.vision) {
    sizes["vision_depth"] = shape.vision->depth;
    sizes["vision_hidden_size"] = shape.vision->hidden_size;
  }
  return sizes;
}

/// A prompt with these pictures, its text and answer one step of the cache; by grids alone.
Prompt prompt_like(const Frontend& frontend, const Json& pictures) {
  Prompt prompt;
  for (const Json& picture : pictures) {
    const int tokens = picture["tokens"].get<int>();
    MediaSpan span;
    span.runs = {{prompt.tokens(), tokens}};
    span.patches.grid_thw = picture["grid_thw"].get<std::array<int, 3>>();
    span.patches.count = int64_t{span.patches.grid_thw[1]} * span.patches.grid_thw[2];
    span.patches.width = patch_width(*frontend.image_processor);
    prompt.media.push_back(std::move(span));
    prompt.ids.resize(prompt.ids.size() + static_cast<size_t>(tokens));
  }
  prompt.ids.resize(prompt.ids.size() + nn::KVCache::kStep / 2);
  return prompt;
}

Json memory_json(
    const Frontend& frontend,
    const CheckpointSummary& summary,
    const ops::Ops& ops,
    const Json& pictures
) {
  const MemoryEstimate estimate =
      estimate_memory(frontend.shape, summary, ops, Prompt{}, GenerateOptions{});
  const uint64_t step = nn::kv_cache_bytes(
      frontend.shape.layers, frontend.shape.heads, {.dtype = ops.kv_dtype()}, nn::KVCache::kStep
  );
  const MemoryEstimate peak = estimate_memory(
      frontend.shape,
      summary,
      ops,
      prompt_like(frontend, pictures),
      {.max_tokens = nn::KVCache::kStep / 2}
  );
  return {
      {"weights", estimate.weights},
      {"kv_cache_per_token", step / nn::KVCache::kStep},
      {"peak", peak.total()}
  };
}

/// The layers that config.json states are those that the tensors are of.
void require_layers(const ModelConfig& config, int layers, const Checkpoint& checkpoint) {
  const auto has_layer = [&checkpoint](int layer) {
    return checkpoint.has_under(fmt::format("model.layers.{}.", layer));
  };
  if (!has_layer(layers - 1) || has_layer(layers)) {
    throw Error(
        Fault::model,
        config.source().where,
        "got num_hidden_layers {}, expected the number of layers among the tensors (model.layers.N)"
        "; config.json and weights are of different models",
        layers
    );
  }
}

Json inspect_json(const InspectFlags& flags) {
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  const Checkpoint checkpoint(frontend.config);
  require_layers(frontend.config, frontend.shape.layers, checkpoint);
  const CheckpointSummary summary = checkpoint.summary();
  const std::unique_ptr<const ops::Ops> ops = choose_ops(requested_ops(), summary);
  Json pictures = Json::array();
  for (const std::string& image : flags.images) {
    pictures.push_back(picture_json(image, frontend));
  }
  return {
      {"folder", frontend.config.folder.string()},
      {"model_type", frontend.config.model_type},
      {"sizes", sizes_json(frontend.shape)},
      {"context", frontend.shape.max_position_embeddings},
      {"quantization", quantization_json(frontend.config)},
      {"weights", weights_json(summary)},
      {"memory", memory_json(frontend, summary, *ops, pictures)},
      {"stop_ids", frontend.stop_ids},
      {"pictures", pictures},
      {"build", build_json(ops->name())}
  };
}

std::string quantization_text(const Json& quantization) {
  if (!quantization.is_object()) {
    return "none";
  }
  return fmt::format(
      "{} bit, groups of {}",
      quantization.value("bits", Json()).dump(),
      quantization.value("group_size", Json()).dump()
  );
}

std::string picture_text(const Json& picture) {
  return fmt::format(
      "\n{}: {} {}, resized {}, grid {}, {} tokens",
      picture["source"].get<std::string>(),
      picture["format"].get<std::string>(),
      picture["size"].dump(),
      picture["resized"].dump(),
      picture["grid_thw"].dump(),
      picture["tokens"].dump()
  );
}

std::string inspect_text(const Json& json) {
  std::string text = fmt::format("{:<14} {}\n", "folder", json["folder"].get<std::string>());
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<14} {}\n", name, value);
  };
  line("architecture", json["model_type"].get<std::string>());
  for (const auto& [key, value] : json["sizes"].items()) {
    line(key, value.dump());
  }
  line("context", json["context"].dump() + " tokens");
  line("quantisation", quantization_text(json["quantization"]));
  const Json& weights = json["weights"];
  line(
      "weights",
      fmt::format(
          "{} parameters, {} in {} file(s)",
          weights["parameters"].dump(),
          size_text(weights["bytes"].get<uint64_t>()),
          weights["files"].dump()
      )
  );
  const Json& memory = json["memory"];
  line(
      "memory",
      fmt::format(
          "{} for weights, {} KV cache for 1,000 tokens, peak {} for the pictures given, "
          "128 tokens of text and 128 of answer",
          size_text(memory["weights"].get<uint64_t>()),
          size_text(memory["kv_cache_per_token"].get<uint64_t>() * 1000),
          size_text(memory["peak"].get<uint64_t>())
      )
  );
  line("stop ids", fmt::format("{}", fmt::join(json["stop_ids"].get<std::vector<int>>(), ", ")));
  const Json& build = json["build"];
  line(
      "computes with",
      fmt::format(
          "{} operations on {}, BLAS {}",
          build["ops"].get<std::string>(),
          build["backend"].get<std::string>(),
          build["blas"].get<std::string>()
      )
  );
  for (const Json& picture : json["pictures"]) {
    text += picture_text(picture) + "\n";
  }
  return text;
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "Say what a model is, and what a picture becomes for it");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--image", flags->images, "Picture file; repeat for several")
      ->allow_extra_args(false);
  command->add_flag("--json", flags->json, "One line of JSON");
  command->footer(
      "Examples:\n"
      "  whimbrel inspect -m DIR\n"
      "  whimbrel inspect -m DIR --image photo.jpg --json"
  );
  command->callback([flags] {
    const Json json = inspect_json(*flags);
    write_stdout(flags->json ? json_line(json) : inspect_text(json));
  });
}

}  // namespace whimbrel
