#pragma once

#include <optional>

#include "engine/verify_inputs.h"
#include "engine/verify_result.h"

namespace whimbrel::verify {

/// The compiled-in texts become ids below vocab_size, and the ids the same texts.
CheckResult check_tokenizer(const Frontend& frontend);

/// There are ids that end an answer, all of them tokens below vocab_size.
CheckResult check_stop_ids(const Frontend& frontend);

/// The verdict on a checkpoint's template, and what it made of the compiled-in requests.
struct TemplateCheck {
  CheckResult result;
  std::optional<Inputs> inputs;  // nothing where it failed
};

/// The template renders all requests, with a placeholder for each picture.
TemplateCheck check_template(const Frontend& frontend, const ChatTemplate& chat_template);

}  // namespace whimbrel::verify
