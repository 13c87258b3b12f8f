#include "engine/verify_reference.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/verify_difference.h"
#include "engine/verify_tolerance.h"

namespace whimbrel::verify {

namespace {

constexpr const char* kCheck = "reference";

/// Rows of logits that are kept: those of all positions would outweigh the rest of the file.
constexpr int kLogitRows = 16;

/// One array of a reference, and the stage's name and place for people.
struct Entry {
  std::string key;
  std::string stage;
  std::string where;
  mx::array array;
};

mx::array int_array(const std::vector<int32_t>& values, mx::Shape shape) {
  return mx::array(values.begin(), std::move(shape));
}

/// What has to be equal for two references to be comparable.
struct Identity {
  std::string key;
  mx::array array;
};

std::vector<Identity> identity_of(const Input& input) {
  const Prompt& prompt = input.prompt;
  std::vector<Identity> identity = {
      {input.name + "/ids", int_array(prompt.ids, {prompt.tokens()})}
  };
  if (!prompt.media.empty()) {
    std::vector<int32_t> grids;
    for (const MediaSpan& span : prompt.media) {
      grids.insert(grids.end(), span.patches.grid_thw.begin(), span.patches.grid_thw.end());
    }
    const mx::Shape shape{static_cast<int>(prompt.media.size()), 3};
    identity.push_back({input.name + "/grid_thw", int_array(grids, shape)});
  }
  return identity;
}

mx::array positions_of(const Prompt& prompt) {
  std::vector<int32_t> rows;
  for (const std::vector<int32_t>& axis : prompt.positions.axes) {
    rows.insert(rows.end(), axis.begin(), axis.end());
  }
  return int_array(rows, {3, prompt.tokens()});
}

mx::array patches_of(const MediaSpan& span) {
  const mx::Shape shape{static_cast<int>(span.patches.count), static_cast<int>(span.patches.width)};
  return mx::array(span.patches.values.begin(), shape);
}

mx::array last_rows(const mx::array& logits) {
  const int rows = logits.shape(0);
  const mx::Shape start{std::max(0, rows - kLogitRows), 0};
  return mx::slice(logits, start, logits.shape());
}

std::vector<Entry> picture_stages(const Run& run, size_t index) {
  const std::string prefix = fmt::format("{}/picture.{}/", run.input->name, index);
  const std::string where = fmt::format("({}, picture {})", run.input->name, index + 1);
  const MediaSpan& span = run.input->prompt.media[index];
  std::vector<Entry> entries = {{prefix + "patches", "patches", where, patches_of(span)}};
  for (const Stage& stage : run.pictures[index]) {
    entries.push_back({prefix + stage.name, stage.name, where, stage.output});
  }
  return entries;
}

/// A run's stages in the order of computing.
std::vector<Entry> stages_of(const Run& run) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < run.pictures.size(); ++i) {
    const std::vector<Entry> of_picture = picture_stages(run, i);
    entries.insert(entries.end(), of_picture.begin(), of_picture.end());
  }
  const std::string prefix = run.input->name + "/";
  const std::string where = fmt::format("({})", run.input->name);
  entries.push_back({prefix + "positions", "positions", where, positions_of(run.input->prompt)});
  for (const Stage& stage : run.decoder) {
    entries.push_back({prefix + stage.name, stage.name, where, stage.output});
  }
  entries.back().array = last_rows(run.logits());
  return entries;
}

std::vector<Entry> stages_of(std::span<const Run> runs) {
  std::vector<Entry> entries;
  for (const Run& run : runs) {
    const std::vector<Entry> of_run = stages_of(run);
    entries.insert(entries.end(), of_run.begin(), of_run.end());
  }
  return entries;
}

bool is_identity(std::string_view key) {
  return key.ends_with("/ids") || key.ends_with("/grid_thw");
}

Error other_inputs(const Reference& reference, std::string_view key) {
  return Error(
      Fault::usage,
      reference.where,
      "got a reference that differs in {}, expected one of the same inputs: its tokenizer, "
      "template "
      "or picture sizes are others; record it anew",
      key
  );
}

Error other_model(const Reference& reference, std::string_view key) {
  return Error(
      Fault::usage,
      reference.where,
      "got a reference of a model of another shape: it differs in {}; record it anew",
      key
  );
}

bool is_integer(const mx::array& array) {
  return !mx::issubdtype(array.dtype(), mx::floating);
}

/// The reference's array for an entry; it has the entry's shape, and is a number of its kind.
mx::array expected_of(const Reference& reference, const Entry& entry) {
  const auto found = reference.arrays.find(entry.key);
  if (found == reference.arrays.end() || found->second.shape() != entry.array.shape() ||
      is_integer(found->second) != is_integer(entry.array)) {
    throw other_model(reference, entry.key);
  }
  return found->second;
}

/// Positions are whole numbers and have to be equal.
double tolerance_for(const Entry& entry, const mx::array& expected) {
  return is_integer(entry.array) ? 0 : tolerance_of(entry.array.dtype(), expected.dtype());
}

CheckResult first_difference(const Entry& entry, const Difference& found, double tolerance) {
  return failed(
      kCheck,
      fmt::format(
          "{} {} is the first stage that differs: row {} by {:.2g} of its largest value; {:.2g} "
          "allowed",
          entry.stage,
          entry.where,
          found.row,
          found.relative,
          tolerance
      ),
      {{"first", entry.stage},
       {"key", entry.key},
       {"row", found.row},
       {"difference", found.relative},
       {"absolute", found.absolute},
       {"tolerance", tolerance}}
  );
}

/// A reference with more stages than the model is of another one.
void require_no_more(const Reference& reference, const std::vector<Entry>& entries) {
  std::set<std::string_view> known;
  for (const Entry& entry : entries) {
    known.insert(entry.key);
  }
  for (const auto& [key, array] : reference.arrays) {
    if (!is_identity(key) && !known.contains(key)) {
      throw other_model(reference, key);
    }
  }
}

}  // namespace

Arrays reference_arrays(std::span<const Run> runs) {
  Arrays arrays;
  for (const Entry& entry : stages_of(runs)) {
    arrays.emplace(entry.key, entry.array);
  }
  for (const Run& run : runs) {
    for (const Identity& identity : identity_of(*run.input)) {
      arrays.emplace(identity.key, identity.array);
    }
  }
  return arrays;
}

void require_comparable(
    const Reference& reference, std::string_view model_type, const Inputs& inputs
) {
  if (reference.model_type != model_type) {
    throw Error(
        Fault::usage,
        reference.where,
        "got a reference of model_type \"{}\", expected \"{}\"",
        reference.model_type,
        model_type
    );
  }
  std::set<std::string> known;
  for (const Input* input : inputs.recorded()) {
    for (const Identity& identity : identity_of(*input)) {
      const auto found = reference.arrays.find(identity.key);
      if (found == reference.arrays.end() ||
          !mx::array_equal(found->second, identity.array).item<bool>()) {
        throw other_inputs(reference, identity.key);
      }
      known.insert(identity.key);
    }
  }
  for (const auto& [key, array] : reference.arrays) {
    if (is_identity(key) && !known.contains(key)) {
      throw other_inputs(reference, key);
    }
  }
}

CheckResult check_reference(const Reference& reference, std::span<const Run> runs) {
  const std::vector<Entry> entries = stages_of(runs);
  require_no_more(reference, entries);
  double largest = 0;
  std::string where;
  for (const Entry& entry : entries) {
    const mx::array expected = expected_of(reference, entry);
    const Difference found = difference(entry.array, expected);
    const double tolerance = tolerance_for(entry, expected);
    if (!found.within(tolerance)) {
      return first_difference(entry, found, tolerance);
    }
    if (found.relative >= largest) {
      largest = found.relative;
      where = fmt::format("{} {}", entry.stage, entry.where);
    }
  }
  return passed(
      kCheck,
      fmt::format("{} stages, largest difference {:.2g}, at {}", entries.size(), largest, where),
      {{"stages", entries.size()}, {"difference", largest}, {"at", where}}
  );
}

}  // namespace whimbrel::verify
