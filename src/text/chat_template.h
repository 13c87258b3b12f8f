#pragma once

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "text/rendered_prompt.h"
#include "text/tokenizer.h"
#include "text/tool_format.h"

namespace whimbrel {

namespace textkit {
class TemplateHandle;  // text/textkit_handle.h
}

/// What a chat template sees, in the form of transformers' `apply_chat_template`.
struct ChatRequest {
  Json messages = Json::array();  // of objects; parts: {"type":"image"}, {"type":"text","text":…}
  Json tools = nullptr;           // an array of function schemas, or null
  bool add_generation_prompt = true;
  Json kwargs = Json::object();  // further variables of the template, such as enable_thinking
};

/// A checkpoint's chat template, run as transformers runs it (Jinja in a bounded sandbox).
/// Const after load; copies share it; usable from several threads at once.
class ChatTemplate {
 public:
  /// The folder's template: chat_template.jinja, else chat_template.json, else "chat_template" of
  /// tokenizer_config.json (a string, or the entry named "default" of a list). Throws
  /// Error(Fault::model) where there is none or its syntax is wrong.
  static ChatTemplate load(const std::filesystem::path& folder, const Tokenizer& tokenizer);

  /// The template in `file` (Jinja text) with the folder's special tokens (bos_token, …).
  static ChatTemplate load_file(
      const std::filesystem::path& file,
      const std::filesystem::path& folder,
      const Tokenizer& tokenizer
  );

  /// Renders the request. Added tokens spelled in its strings stay text (RenderedPrompt); those of
  /// assistant messages only where they are special, so that a model's own `<think>` and
  /// `<tool_call>` keep working. Throws Error(Fault::input) with the template's message where it
  /// calls raise_exception, fails, or exceeds a bound (10 M steps, depth 100, 8 MiB output).
  RenderedPrompt render(const ChatRequest& request) const;

  /// How the template has a model call tools.
  ToolFormat tool_format() const { return tool_format_; }

 private:
  ChatTemplate() = default;

  std::shared_ptr<const textkit::TemplateHandle> handle_;
  ToolFormat tool_format_ = ToolFormat::none;
};

}  // namespace whimbrel
