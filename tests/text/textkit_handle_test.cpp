#include "text/textkit_handle.h"

#include "tests/text/text_folder.h"

namespace whimbrel {
namespace {

TEST(TextkitCheck, carries_the_text_and_the_fault) {
  textkit_tokenizer* tokenizer = nullptr;
  const Error error = error_of([&] {
    textkit::check(textkit_tokenizer_new("nonsense", 8, &tokenizer), Fault::model, "somewhere");
  });
  EXPECT_EQ(error.fault(), Fault::model);
  EXPECT_TRUE(std::string(error.what()).starts_with("[somewhere] expected ident")) << error.what();
  EXPECT_EQ(tokenizer, nullptr);
}

TEST(TextkitCheck, passes_where_there_is_no_error) {
  EXPECT_NO_THROW(textkit::check(nullptr, Fault::model, "somewhere"));
}

}  // namespace
}  // namespace whimbrel
