// text_probe CHECKPOINT: answers requests on stdin (JSON Lines) with results on stdout, one line
// each, for compare_with_transformers.py. A request is {"op": …}; a failure is {"error": text}.
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace whimbrel {
namespace {

SpecialTokens special_tokens(const Json& request) {
  return request.at("skip_special").get<bool>() ? SpecialTokens::skip : SpecialTokens::keep;
}

class Probe {
 public:
  explicit Probe(std::string folder) : folder_(folder), tokenizer_(Tokenizer::load(folder)) {}

  Json answer(const Json& request) const {
    static const std::map<std::string, Json (Probe::*)(const Json&) const> kOps = {
        {"describe", &Probe::describe},
        {"encode_prompt", &Probe::encode_prompt},
        {"encode_text", &Probe::encode_text},
        {"decode", &Probe::decode},
        {"stream", &Probe::stream},
        {"render", &Probe::render},
    };
    try {
      return std::invoke(kOps.at(request.at("op").get<std::string>()), this, request);
    } catch (const std::exception& error) {
      return {{"error", error.what()}};
    }
  }

 private:
  Json describe(const Json&) const {
    Json answer = {{"size", tokenizer_.size()}, {"eos", nullptr}, {"added_tokens", Json::array()}};
    if (tokenizer_.eos()) {
      answer["eos"] = *tokenizer_.eos();
    }
    for (const AddedToken& token : tokenizer_.added_tokens()) {
      answer["added_tokens"].push_back({token.id, token.content, token.special});
    }
    return answer;
  }

  Json encode_prompt(const Json& request) const {
    const RenderedPrompt prompt{.marked = request.at("text").get<std::string>()};
    return {{"ids", tokenizer_.encode_prompt(prompt)}};
  }

  Json encode_text(const Json& request) const {
    return {{"ids", tokenizer_.encode_text(request.at("text").get<std::string>())}};
  }

  Json decode(const Json& request) const {
    const std::vector<int32_t> ids = request.at("ids").get<std::vector<int32_t>>();
    return {{"text", tokenizer_.decode(ids, special_tokens(request))}};
  }

  Json stream(const Json& request) const {
    StreamingDetokenizer detokenizer(tokenizer_, special_tokens(request));
    std::string text;
    for (const Json& id : request.at("ids")) {
      text += detokenizer.push(id.get<int32_t>());
    }
    text += detokenizer.finish();
    return {{"text", text}};
  }

  Json render(const Json& request) const {
    const ChatTemplate chat_template =
        request.contains("template")
            ? ChatTemplate::load_file(
                  request.at("template").get<std::string>(), folder_, tokenizer_
              )
            : ChatTemplate::load(folder_, tokenizer_);
    const RenderedPrompt prompt = chat_template.render({
        .messages = request.at("messages"),
        .tools = request.value("tools", Json()),
        .add_generation_prompt = request.value("add_generation_prompt", true),
        .kwargs = request.value("kwargs", Json::object()),
    });
    return {{"text", prompt.text()}, {"ids", tokenizer_.encode_prompt(prompt)}};
  }

  std::string folder_;
  Tokenizer tokenizer_;
};

int run(const std::string& folder) {
  const Probe probe(folder);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << probe.answer(Json::parse(line)).dump() << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace whimbrel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: text_probe CHECKPOINT < requests\n";
    return 2;
  }
  return whimbrel::run(argv[1]);
}
