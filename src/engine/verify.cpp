#include "engine/verify.h"

#include <algorithm>
#include <stdexcept>

#include "engine/verify_cache.h"
#include "engine/verify_order.h"
#include "engine/verify_reference.h"
#include "engine/verify_stages.h"

namespace whimbrel::verify {

namespace {

const Run& run_of(std::span<const Run> runs, const Input& input) {
  const auto run = std::ranges::find(runs, &input, &Run::input);
  if (run == runs.end()) {
    throw std::logic_error("[verify] got no run of " + input.name);
  }
  return *run;
}

void check_texts(
    const Subject& subject, std::span<const Run> runs, const ResultListener& on_result
) {
  const Inputs& inputs = subject.inputs;
  on_result(check_cached("cached_text", subject.model, run_of(runs, inputs.long_text)));
  on_result(check_chunks("chunks_text", subject.model, run_of(runs, inputs.text)));
}

void check_pictures(
    const Subject& subject, std::span<const Run> runs, const ResultListener& on_result
) {
  const PictureInputs& pictures = *subject.inputs.pictures;
  const Model& model = subject.model;
  const Run& shapes = run_of(runs, pictures.shapes);
  const Run& colours = run_of(runs, pictures.colours);
  on_result(check_cached("cached_picture", model, shapes));
  on_result(check_chunks("chunks_picture", model, shapes));
  on_result(check_text_after_picture(model, run_of(runs, subject.inputs.text), pictures.shapes));
  const auto encode = [&model](const Patches& patches) { return model.encode(patches); };
  on_result(check_picture_order(encode, pictures.colours.prompt));
  const Run reversed = run_whole(model, pictures.reversed_colours);
  const Run* const both[] = {&colours, &reversed};
  on_result(check_picture_rows(both, *subject.frontend.media));
}

void skip_pictures(const ResultListener& on_result) {
  for (const char* check : {
           "cached_picture", "chunks_picture", "text_after_picture", "picture_order", "picture_rows"
       }) {
    on_result(not_applicable(check, "the checkpoint has no vision tower"));
  }
}

}  // namespace

std::vector<Run> run_inputs(const Model& model, const Inputs& inputs) {
  // First of all, so that nothing of a picture can be in it.
  const Run text = run_whole(model, inputs.text);
  std::vector<Run> runs;
  for (const Input* input : inputs.recorded()) {
    runs.push_back(input == &inputs.text ? text : run_whole(model, *input));
  }
  return runs;
}

void check_model(
    const Subject& subject,
    std::span<const Run> runs,
    const std::optional<Reference>& reference,
    const ResultListener& on_result
) {
  on_result(check_finite(runs));
  on_result(check_dtype(runs, subject.activations));
  on_result(
      reference ? check_reference(*reference, runs)
                : not_applicable("reference", "none given and none in the checkpoint's folder")
  );
  check_texts(subject, runs, on_result);
  if (subject.inputs.pictures) {
    check_pictures(subject, runs, on_result);
  } else {
    skip_pictures(on_result);
  }
}

bool all_passed(std::span<const CheckResult> results) {
  const auto has = [results](Outcome outcome) {
    return std::ranges::find(results, outcome, &CheckResult::outcome) != results.end();
  };
  return has(Outcome::passed) && !has(Outcome::failed);
}

}  // namespace whimbrel::verify
