#include "engine/verify_inputs.h"

#include <algorithm>

#include "engine/verify_drawings.h"
#include "media/encode_png.h"

namespace whimbrel::verify {

namespace {

/// At least 45 words: whatever the tokenizer, more than 32 tokens stand behind a picture.
constexpr std::string_view kQuestion =
    "Describe what you notice first, then go through the rest in order, from left to right and "
    "from top to bottom. Say which colour each part has, how large it seems, and what stands "
    "beside it. If something can not be told for certain, say so plainly and give your best guess.";

/// In composed form (NFC), which tokenizers keep as it is.
constexpr std::string_view kScripts =
    "Grüße aus Zürich; naïve café, 50 € ≤ x² · 10⁻³.\n\tif (a[0] != b) { return -1; }\n"
    "你好，世界！ こんにちは。 Привет, мир! مرحبا بالعالم 🙂👍🏽   three spaces, and 1234567890.";

/// More than 300 words.
constexpr std::string_view kStory =
    "The ferry leaves the old harbour every morning at six, long before the shops open. "
    "A man in a grey coat carries two baskets of bread on board and sits down near the window. "
    "Behind the lighthouse the water is calm, and the gulls follow the boat without a sound. "
    "On the island there is one street, one school, and a garden with forty apple trees. "
    "The teacher counts the children twice, since the youngest likes to hide under the stairs. "
    "At noon somebody rings the bell by hand, seven strokes for a full week and one for luck. "
    "A letter from the city says that the bridge will be finished within three years. "
    "Nobody believes it, but the baker puts the letter into a frame and hangs it above the oven. "
    "In the afternoon the wind turns, and the fishermen bring their nets in earlier than planned. "
    "They have caught eleven herring, four crabs, and a bottle with a map inside. "
    "The map shows the same island, only larger, with a second harbour on the northern side. "
    "Two sisters borrow a lamp and a rope and walk along the cliffs until the sun goes down. "
    "Where the map shows the harbour they find a narrow stair, cut into the rock, wet and steep. "
    "At its end lies a round pool, and in the pool a small boat that is painted white and green. "
    "Its name has been scratched away, but the first letter may have been an M or an N. "
    "They row it once around the pool, tie it up with their rope, and promise to tell no one. "
    "The next morning the ferry leaves at six, and the man in the grey coat is not on board. "
    "His baskets stand at the pier, filled with apples, and a note says that they are for "
    "everyone. "
    "The baker reads the note aloud, looks at the frame above the oven, and begins to laugh. "
    "How many things in this story are counted, and which of them could not be seen from the boat?";

constexpr int kShapesSide = 336;
constexpr int kColourSide = 112;

MediaInput drawing(std::string name, const Image& image) {
  return {.source = std::move(name), .bytes = encode_png(image)};
}

/// One user turn: the pictures, then the text.
Input request(
    const Frontend& frontend,
    const ChatTemplate& chat_template,
    std::string name,
    std::string_view text,
    std::vector<MediaInput> pictures = {}
) {
  Json content = Json::array();
  for (size_t i = 0; i < pictures.size(); ++i) {
    content.push_back(Json::object({{"type", "image"}}));
  }
  content.push_back(Json::object({{"type", "text"}, {"text", text}}));
  // Templates of text models know no parts.
  const Json spoken = pictures.empty() ? Json(text) : content;
  ChatInput input;
  input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", spoken}}));
  input.media = std::move(pictures);
  Prompt prompt = prepare_chat(frontend, chat_template, input).prompt;
  require_room(prompt, frontend.shape.max_position_embeddings);
  return {std::move(name), std::move(prompt)};
}

PictureInputs make_pictures(const Frontend& frontend, const ChatTemplate& chat_template) {
  const MediaInput shapes = drawing("shapes", draw_shapes(kShapesSide));
  const MediaInput red = drawing("red", draw_colour(kColourSide, kRed));
  const MediaInput green = drawing("green", draw_colour(kColourSide, kGreen));
  const MediaInput blue = drawing("blue", draw_colour(kColourSide, kBlue));
  const auto ask = [&](std::string name, std::vector<MediaInput> pictures) {
    return request(frontend, chat_template, std::move(name), kQuestion, std::move(pictures));
  };
  return {
      .shapes = ask("shapes", {shapes}),
      .colours = ask("colours", {red, green, blue}),
      .reversed_colours = ask("reversed_colours", {blue, green, red})
  };
}

}  // namespace

std::vector<const Input*> Inputs::recorded() const {
  if (!pictures) {
    return {&text, &long_text};
  }
  return {&pictures->shapes, &pictures->colours, &text, &long_text};
}

const Prompt& Inputs::largest() const {
  const std::vector<const Input*> all = recorded();
  const auto tokens = [](const Input* input) { return input->prompt.tokens(); };
  return (*std::ranges::max_element(all, {}, tokens))->prompt;
}

std::vector<std::string_view> plain_texts() {
  return {kQuestion, kScripts, kStory};
}

Inputs make_inputs(const Frontend& frontend, const ChatTemplate& chat_template) {
  Inputs inputs{
      .text = request(frontend, chat_template, "text", kQuestion),
      .long_text = request(frontend, chat_template, "long_text", kStory),
      .pictures = std::nullopt
  };
  if (frontend.media) {
    inputs.pictures = make_pictures(frontend, chat_template);
  }
  return inputs;
}

}  // namespace whimbrel::verify
