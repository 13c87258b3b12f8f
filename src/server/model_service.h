#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/prepare.h"
#include "engine/serving_engine.h"
#include "server/generation_fields.h"
#include "server/limits.h"
#include "server/media_sources.h"
#include "server/models_json.h"
#include "server/token_text.h"
#include "text/chat_template.h"
#include "text/grammar.h"

namespace whimbrel {

struct ModelServiceOptions {
  std::string name = {};  // what clients call the model
  ServingOptions serving = {};
  MediaOptions media = {};
  http::ServerLimits limits = {};
  http::MediaSources sources = {};
};

/// A loaded model that many clients ask: everything that their requests share. Safe from several
/// threads.
class ModelService {
 public:
  /// Throws Error(Fault::model) where the checkpoint has no usable chat template.
  ModelService(Frontend frontend, Engine engine, const ModelServiceOptions& options);

  const std::string& name() const { return options_.name; }
  const Frontend& frontend() const { return frontend_; }
  const ChatTemplate& chat_template() const { return chat_template_; }
  const GrammarCompiler& grammars() const { return grammars_; }
  const ModelServiceOptions& options() const { return options_; }
  const Engine& engine() const { return engine_; }
  ServingEngine& serving() { return serving_; }
  const ServingEngine& serving() const { return serving_; }

  /// Bytes of tokens, for log probabilities.
  const wire::TokenBytes& token_bytes() const { return token_bytes_; }

  /// As prepare_chat, with what is asked of media over the service's own options. Throws as
  /// require_short.
  Prepared prepare(const ChatInput& input, const MediaOptions& asked) const;

  /// Refuses a text of so many bytes before it is tokenised, where it is too long whatever it says:
  /// ApiException (400, `context_length_exceeded`).
  void require_short(size_t bytes) const;

  /// What clients are told of the model.
  wire::ServedModel served() const;

  /// A request for this prompt: what is asked, over the checkpoint's own sampling and end tokens.
  /// An answer is never longer than the context leaves room for. Throws ApiException (400,
  /// `context_length_exceeded`) where the prompt leaves none, and on a logit_bias for no token.
  Request request(Prompt prompt, const wire::GenerationFields& asked) const;

 private:
  Frontend frontend_;
  Engine engine_;
  ModelServiceOptions options_;
  int64_t created_;  // seconds since 1970
  ChatTemplate chat_template_;
  GrammarCompiler grammars_;
  wire::TokenBytes token_bytes_;
  ServingEngine serving_;  // last: its thread uses the others
};

/// Bytes that a service may spend on requests once its model is loaded: most of what the machine
/// has left. Nothing where the system doesn't say.
std::optional<uint64_t> memory_for_requests();

}  // namespace whimbrel
