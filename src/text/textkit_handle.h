#pragma once

#include <textkit.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace whimbrel::textkit {

/// Owns an object of textkit.
template <typename T, void (*kFree)(T*)>
class Handle {
 public:
  explicit Handle(T* object) : object_(object) {}
  T* get() const { return object_.get(); }

 private:
  struct Free {
    void operator()(T* object) const { kFree(object); }
  };
  std::unique_ptr<T, Free> object_;
};

class TokenizerHandle : public Handle<textkit_tokenizer, textkit_tokenizer_free> {
  using Handle::Handle;
};

class TemplateHandle : public Handle<textkit_template, textkit_template_free> {
  using Handle::Handle;
};

class DetokenizerHandle : public Handle<textkit_detokenizer, textkit_detokenizer_free> {
  using Handle::Handle;
};

class GrammarCompilerHandle
    : public Handle<textkit_grammar_compiler, textkit_grammar_compiler_free> {
  using Handle::Handle;
};

class GrammarHandle : public Handle<textkit_grammar, textkit_grammar_free> {
  using Handle::Handle;
};

class GrammarStateHandle : public Handle<textkit_grammar_state, textkit_grammar_state_free> {
  using Handle::Handle;
};

/// Throws Error(fault) with the text of an error that textkit returned, and frees it; does nothing
/// for NULL.
void check(char* error, Fault fault, std::string_view where);

/// What textkit returned, copied and freed.
std::string take(textkit_text text);
std::vector<int32_t> take(textkit_ids ids);

}  // namespace whimbrel::textkit
