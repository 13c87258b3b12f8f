#include "engine/verify_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <vector>

#include "engine/verify_difference.h"
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

/// Feeds a prompt piece by piece and measures each piece's logits by those of the whole.
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

  const LogitDifference& found() const { return found_; }

 private:
  const Prompt& prompt() const { return whole_.input->prompt; }

  void feed(const nn::Chunk& chunk) {
    const int position = cache_.length();
    const mx::array logits = model_.logits(model_.forward(chunk, cache_));
    mx::eval(cache_.arrays());
    for (int first = 0; first < chunk.rows(); first += kRows) {
      const int end = std::min(first + kRows, chunk.rows());
      found_.add(logit_difference(
          rows_of(logits, first, end),
          rows_of(whole_.logits(), position + first, position + end),
          position + first
      ));
    }
  }

  const Model& model_;
  const Run& whole_;
  nn::KVCache cache_;
  LogitDifference found_;
};

Json figures_of(const LogitDifference& found, double tolerance) {
  return {
      {"difference", found.largest.relative},
      {"tolerance", tolerance},
      {"at", found.largest.row},
      {"positions", found.positions},
      {"decided", found.decided},
      {"changed", found.changed}
  };
}

CheckResult judge(
    std::string check, const LogitDifference& found, double tolerance, std::string_view ways
) {
  const Json figures = figures_of(found, tolerance);
  if (!found.changed.empty()) {
    return failed(
        std::move(check),
        fmt::format(
            "{}: another best token at {} of {} decided positions, first at {}",
            ways,
            found.changed.size(),
            found.decided,
            found.changed.front()
        ),
        figures
    );
  }
  std::string detail = fmt::format(
      "{}: {} logit rows differ by at most {:.2g} of their largest value, at token {}; {:.2g} "
      "allowed",
      ways,
      found.positions,
      found.largest.relative,
      found.largest.row,
      tolerance
  );
  return found.largest.within(tolerance) ? passed(std::move(check), std::move(detail), figures)
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
  LogitDifference found;
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
