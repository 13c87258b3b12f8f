#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/prepare.h"

namespace whimbrel::verify {

/// A compiled-in request: what `verify` runs through a checkpoint. Any change of texts or drawings
/// makes stored references incomparable.
struct Input {
  std::string name;
  Prompt prompt;
};

/// Requests with pictures drawn in memory. At least 45 words, and so tokens, stand behind the last
/// picture.
struct PictureInputs {
  Input shapes;            // a circle, a square and a triangle on 336 x 336 pixels
  Input colours;           // three pictures of one colour each
  Input reversed_colours;  // the same three, last one first
};

struct Inputs {
  Input text;                             // a question of at least 45 words
  Input long_text;                        // more than 300 words, and so tokens
  std::optional<PictureInputs> pictures;  // nothing for a model without vision tower

  /// Those whose stages are looked at and stored: pictures first, as a tower comes before a
  /// decoder, and none twice.
  std::vector<const Input*> recorded() const;

  /// The prompt that takes the most memory.
  const Prompt& largest() const;
};

/// The compiled-in texts in plain form, one of them in several scripts.
std::vector<std::string_view> plain_texts();

/// Renders, draws and tokenises all. Throws as prepare_chat does, and Error(Fault::input) where a
/// prompt is longer than the model's context.
Inputs make_inputs(const Frontend& frontend, const ChatTemplate& chat_template);

}  // namespace whimbrel::verify
