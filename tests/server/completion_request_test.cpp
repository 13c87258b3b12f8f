#include "server/completion_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "refusal.h"

namespace whimbrel::wire {
namespace {

CompletionRequest parsed(std::string_view members) {
  return parse_completion_request(fmt::format("{{{}}}", members), {});
}

std::string field_of(std::string_view members) {
  return refused_field([&] { parsed(members); });
}

std::string field_beside_prompt(std::string_view members) {
  return field_of(fmt::format(R"("prompt":"a",{})", members));
}

TEST(CompletionRequest, prompt_has_four_forms) {
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(parsed(R"("prompt":"ab")").prompts, std::vector<TextPrompt>{std::string("ab")});
  EXPECT_EQ(
      parsed(R"("prompt":["a","b"])").prompts,
      (std::vector<TextPrompt>{std::string("a"), std::string("b")})
  );
  EXPECT_EQ(
      parsed(R"("prompt":[1,2147483647])").prompts, std::vector<TextPrompt>{(Ids{1, 2147483647})}
  );
  EXPECT_EQ(
      parsed(R"("prompt":[[1,2],[3]])").prompts, (std::vector<TextPrompt>{Ids{1, 2}, Ids{3}})
  );
}

TEST(CompletionRequest, a_prompt_of_another_form_is_refused) {
  EXPECT_EQ(field_of(R"("model":"m")"), "prompt");
  for (const char* prompt : {"null", "\"\"", "[]", "{}", "5", "true"}) {
    EXPECT_EQ(field_of(fmt::format(R"("prompt":{})", prompt)), "prompt") << prompt;
  }
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"([""])", "prompt[0]"},
      {R"(["a",""])", "prompt[1]"},
      {R"(["a",1])", "prompt[1]"},
      {R"(["a",[1]])", "prompt[1]"},
      {R"(["a",null])", "prompt[1]"},
      {R"([[1],[]])", "prompt[1]"},
      {R"([[1],["a"]])", "prompt[1][0]"},
      {R"([1,"a"])", "prompt[1]"},
      {R"([1,-1])", "prompt[1]"},
      {R"([1,2147483648])", "prompt[1]"},
      {R"([1,18446744073709551615])", "prompt[1]"},
      {R"([1,1.5])", "prompt[1]"},
      {R"([true])", "prompt[0]"},
  };
  for (const auto& [prompt, field] : cases) {
    EXPECT_EQ(field_of(fmt::format(R"("prompt":{})", prompt)), field) << prompt;
  }
}

TEST(CompletionRequest, so_many_prompts_and_no_more) {
  const auto prompts = [](int count) {
    std::string list = "\"a\"";
    for (int i = 1; i < count; ++i) {
      list += ",\"a\"";
    }
    return fmt::format(R"("prompt":[{}])", list);
  };
  EXPECT_EQ(field_of(prompts(64)), "taken");
  EXPECT_EQ(field_of(prompts(65)), "prompt");
}

TEST(CompletionRequest, reads_what_it_shares_with_chat) {
  const CompletionRequest request =
      parsed(R"("prompt":"a","model":"m","max_tokens":3,"stop":"x","n":2,"stream":true,"odd":1)");
  EXPECT_EQ(request.generation.model, "m");
  EXPECT_EQ(request.generation.max_tokens, 3);
  EXPECT_EQ(request.generation.choices, 2);
  EXPECT_TRUE(request.generation.stream);
  EXPECT_EQ(request.ignored, std::vector<std::string>{"odd"});
}

TEST(CompletionRequest, logprobs_is_a_number) {
  EXPECT_EQ(parsed(R"("prompt":"a")").logprobs, std::nullopt);
  EXPECT_EQ(parsed(R"("prompt":"a","logprobs":0)").logprobs, 0);
  EXPECT_EQ(parsed(R"("prompt":"a","logprobs":20)").logprobs, 20);
  for (const char* value : {"-1", "21", "true", "\"1\"", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(field_beside_prompt(fmt::format(R"("logprobs":{})", value)), "logprobs") << value;
  }
}

TEST(CompletionRequest, n_predict_is_another_name_of_max_tokens) {
  EXPECT_EQ(parsed(R"("prompt":"a","n_predict":5)").generation.max_tokens, 5);
  EXPECT_EQ(parsed(R"("prompt":"a","n_predict":-1)").generation.max_tokens, std::nullopt);
  EXPECT_EQ(field_beside_prompt(R"("n_predict":5,"max_tokens":5)"), "taken");
  EXPECT_EQ(field_beside_prompt(R"("n_predict":5,"max_tokens":6)"), "n_predict");
  EXPECT_EQ(field_beside_prompt(R"("n_predict":0)"), "n_predict");
}

TEST(CompletionRequest, refuses_what_it_can_not_do) {
  EXPECT_TRUE(parsed(R"("prompt":"a","echo":true)").echo);
  EXPECT_EQ(field_beside_prompt(R"("echo":true,"logprobs":1)"), "echo");
  EXPECT_EQ(field_beside_prompt(R"("echo":1)"), "echo");
  EXPECT_EQ(field_beside_prompt(R"("suffix":"")"), "taken");
  EXPECT_EQ(field_beside_prompt(R"("suffix":null)"), "taken");
  EXPECT_EQ(field_beside_prompt(R"("suffix":"end")"), "suffix");
  EXPECT_EQ(field_beside_prompt(R"("best_of":1)"), "taken");
  EXPECT_EQ(field_beside_prompt(R"("best_of":2,"n":2)"), "taken");
  EXPECT_EQ(field_beside_prompt(R"("best_of":2)"), "best_of");
  EXPECT_EQ(field_beside_prompt(R"("best_of":"1")"), "best_of");
}

}  // namespace
}  // namespace whimbrel::wire
