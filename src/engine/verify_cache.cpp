#include "engine/verify_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <vector>

#include "engine/verify_difference.h"
#include "engine/verify_layers.h"
#include "engine/verify_tolerance.h"
#include "models/prompt_chunk.h"

namespace whimbrel::verify {

namespace {

constexpr int kDecodeSteps = 32;
constexpr int kChunkSizes[] = {1, 7, 64};

/// Rows that are compared at once: logits of a whole prompt may be hundreds of MB.
constexpr int kRows = 64;

mx::array rows_of(const mx::array& logits, int first, int end) {
  const mx::Shape start{first, 0};
  const mx::Shape stop{end, logits.shape(1)};
  return mx::slice(logits, start, stop);
}

/// How pieces of a prompt lie from the whole.
struct PiecesDifference {
  LogitDifference logits = {};
  LayerDifference layers = {};  // of a model with experts

  void add(const PiecesDifference& next) {
    logits.add(next.logits);
    layers.add(next.layers);
  }

  bool within(double tolerance) const {
    return logits.largest.within(tolerance) && layers.largest.within(tolerance);
  }
};

/// Feeds a prompt piece by piece and measures each piece's logits by those of the whole; where
/// there are experts each layer's rows by the whole's, which every layer is given.
class PieceByPiece {
 public:
  PieceByPiece(const Model& model, const Run& whole)
      : model_(model), whole_(whole), cache_(model.make_cache()) {}

  void prefill(int end, int chunk) {
    for (int first = cache_.length(); first < end; first = cache_.length()) {
      feed(prompt_chunk(prompt(), whole_.features, first, std::min(first + chunk, end)));
    }
  }

  void decode() {
    while (cache_.length() < prompt().tokens()) {
      const int32_t& id = prompt().ids[static_cast<size_t>(cache_.length())];
      feed(next_chunk(prompt(), cache_.length(), id));
    }
  }

  const PiecesDifference& found() const { return found_; }

 private:
  const Prompt& prompt() const { return whole_.input->prompt; }

  void feed(const nn::Chunk& chunk) {
    const int position = cache_.length();
    const mx::array hidden =
        whole_.routers.empty() ? model_.forward(chunk, cache_) : forward_by_layers(chunk);
    const mx::array logits = model_.logits(hidden);
    mx::eval(cache_.arrays());
    for (int first = 0; first < chunk.rows(); first += kRows) {
      const int end = std::min(first + kRows, chunk.rows());
      found_.logits.add(logit_difference(
          rows_of(logits, first, end),
          rows_of(whole_.logits(), position + first, position + end),
          position + first
      ));
    }
  }

  mx::array forward_by_layers(const nn::Chunk& chunk) {
    const int position = cache_.length();
    DecoderStages stages;
    const mx::array hidden = model_.forward(chunk, cache_, stages.listener(), [&](int layer) {
      const mx::array& rows = whole_.decoder[static_cast<size_t>(layer) + 1].output;
      return rows_of(rows, position, position + chunk.rows());
    });
    mx::eval(stages.arrays());
    const int per_token = model_.config().moe->num_experts_per_tok;
    found_.layers.add(layer_difference(stages, whole_, position, per_token));
    return hidden;
  }

  const Model& model_;
  const Run& whole_;
  nn::KVCache cache_;
  PiecesDifference found_;
};

Json figures_of(const PiecesDifference& found, double tolerance) {
  const LogitDifference& logits = found.logits;
  Json figures = {
      {"difference", logits.largest.relative},
      {"tolerance", tolerance},
      {"at", logits.largest.row},
      {"positions", logits.positions},
      {"decided", logits.decided},
      {"changed", logits.changed}
  };
  if (!found.layers.stage.empty()) {
    figures["layers"] = {
        {"difference", found.layers.largest.relative},
        {"at", found.layers.largest.row},
        {"stage", found.layers.stage},
        {"near_ties", found.layers.near_ties}
    };
  }
  return figures;
}

std::string detail_of(const PiecesDifference& found, double tolerance, std::string_view ways) {
  const LogitDifference& logits = found.logits;
  std::string detail = fmt::format(
      "{}: {} logit rows differ by at most {:.2g} of their largest value, at token {}",
      ways,
      logits.positions,
      logits.largest.relative,
      logits.largest.row
  );
  if (!found.layers.stage.empty()) {
    detail += fmt::format(
        ", layers each by itself by {:.2g}, at token {} in {} ({} near ties of experts left out)",
        found.layers.largest.relative,
        found.layers.largest.row,
        found.layers.stage,
        found.layers.near_ties
    );
  }
  return detail + fmt::format("; {:.2g} allowed", tolerance);
}

CheckResult judge(
    std::string check, const PiecesDifference& found, double tolerance, std::string_view ways
) {
  const Json figures = figures_of(found, tolerance);
  const LogitDifference& logits = found.logits;
  if (!logits.changed.empty()) {
    return failed(
        std::move(check),
        fmt::format(
            "{}: another best token at {} of {} decided positions, first at {}",
            ways,
            logits.changed.size(),
            logits.decided,
            logits.changed.front()
        ),
        figures
    );
  }
  std::string detail = detail_of(found, tolerance, ways);
  return found.within(tolerance) ? passed(std::move(check), std::move(detail), figures)
                                 : failed(std::move(check), std::move(detail), figures);
}

}  // namespace

CheckResult check_cached(std::string check, const Model& model, const Run& whole) {
  PieceByPiece pieces(model, whole);
  const int tokens = whole.input->prompt.tokens();
  pieces.prefill(tokens - kDecodeSteps, tokens);
  pieces.decode();
  const std::string ways =
      fmt::format("{} decode steps behind {} tokens", kDecodeSteps, tokens - kDecodeSteps);
  return judge(
      std::move(check), pieces.found(), tolerance_of(whole.logits().dtype(), model.rounding()), ways
  );
}

CheckResult check_chunks(std::string check, const Model& model, const Run& whole) {
  PiecesDifference found;
  for (const int size : kChunkSizes) {
    PieceByPiece pieces(model, whole);
    pieces.prefill(whole.input->prompt.tokens(), size);
    found.add(pieces.found());
  }
  const std::string ways = fmt::format("chunks of {}", fmt::join(kChunkSizes, ", "));
  return judge(
      std::move(check), found, tolerance_of(whole.logits().dtype(), model.rounding()), ways
  );
}

}  // namespace whimbrel::verify
