#include "engine/trace_file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

const std::string kSum(64, 'a');

TraceHeader header(int positions) {
  return {
      .build = Json::object({{"build_id", "1234"}, {"isa", "scalar"}}),
      .model = kSum,
      .input = std::string(64, '0'),
      .ops = "reference",
      .dtype = "float32",
      .depth = 5,
      .width = 2,
      .positions = positions,
  };
}

TraceRow row(int pos, int32_t id, int32_t target) {
  return {
      .pos = pos,
      .id = id,
      .target = target,
      .nll = 0.1,
      .top_ids = {target, 1, 2},
      .top_logits = {3.3F, 1.0F, 1.0F},
  };
}

std::string whole() {
  return trace_line(header(2)) + "\n" + trace_line(row(5, 10, 11)) + "\n" +
         trace_line(row(6, 11, 12)) + "\n";
}

/// `whole` with its first `from` made `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = whole();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Why a text is refused; empty where it isn't.
std::string complaint(const std::string& text) {
  try {
    parse_trace(text, "t.jsonl");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  return "";
}

TEST(TraceFile, is_what_was_written) {
  const Trace read = parse_trace(whole(), "t.jsonl");
  EXPECT_EQ(trace_line(read.header), trace_line(header(2)));
  ASSERT_EQ(read.rows.size(), 2U);
  EXPECT_EQ(trace_line(read.rows[1]), trace_line(row(6, 11, 12)));
  EXPECT_EQ(read.rows[0].top_logits[0], 3.3F);
  EXPECT_FALSE(read.header.prefill_int8);
  std::string rounded = whole();
  rounded.insert(rounded.find(R"(,"depth")"), R"(,"prefill_int8":true)");
  EXPECT_TRUE(parse_trace(rounded, "t.jsonl").header.prefill_int8);
}

TEST(TraceFile, lines_are_those_of_the_contract) {
  EXPECT_EQ(
      trace_line(header(2)),
      R"({"whimbrel_trace":1,"build":{"build_id":"1234","isa":"scalar"},"model":")" + kSum +
          R"(","input":")" + std::string(64, '0') +
          R"(","ops":"reference","dtype":"float32","depth":5,"width":2,"positions":2})"
  );
  TraceHeader rounded = header(2);
  rounded.prefill_int8 = true;
  EXPECT_NE(trace_line(rounded).find(R"("positions":2,"prefill_int8":true})"), std::string::npos);
  TraceRow simple = row(5, 10, 11);
  simple.nll = 0.5;
  simple.top_logits = {3.5F, 1.0F, -0.25F};
  EXPECT_EQ(
      trace_line(simple),
      R"({"pos":5,"id":10,"target":11,"nll":0.5,"top_ids":[11,1,2],"top_logits":[3.5,1.0,-0.25]})"
  );
}

TEST(TraceFile, refuses_what_is_not_whole) {
  const std::string text = whole();
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint("\n"), "");
  // The last line end is all that may be missing.
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_NE(complaint(text.substr(0, size)), "") << "cut at " << size;
  }
  EXPECT_NE(complaint(trace_line(header(2)) + "\n"), "");
  EXPECT_NE(complaint(text + trace_line(row(7, 12, 13)) + "\n"), "");
  EXPECT_NE(complaint(text + "\n"), "");
}

TEST(TraceFile, refuses_an_empty_trace) {
  EXPECT_NE(complaint(trace_line(header(0)) + "\n"), "");
}

TEST(TraceFile, refuses_wrong_values) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {R"("whimbrel_trace":1)", R"("whimbrel_trace":2)"},
      {R"("build_id":"1234")", R"("id":"1234")"},
      {R"("model":"aa)", R"("model":"a)"},
      {R"("input":"00)", R"("input":"xx)"},
      {R"("ops":"reference",)", ""},
      {R"("dtype":"float32")", R"("dtype":"")"},
      {R"("depth":5)", R"("depth":-5)"},
      {R"("width":2)", R"("width":0)"},
      {R"("width":2)", R"("width":2,"prefill_int8":1)"},
      {R"("pos":5)", R"("pos":6)"},
      {R"("id":11)", R"("id":10)"},
      {R"("nll":0.1)", R"("nll":null)"},
      {R"("nll":0.1)", R"("nll":-0.1)"},
      {R"("nll":0.1)", R"("nll":1e999)"},
      {R"("nll":0.1)", R"("nll":"0.1")"},
      {R"("top_ids":[11,1,2],)", ""},
      {R"("top_ids":[11,1,2])", R"("top_ids":[])"},
      {R"("top_ids":[11,1,2])", R"("top_ids":[11,1,1])"},
      {R"("top_ids":[11,1,2])", R"("top_ids":[11,1])"},
      {R"("top_ids":[11,1,2])", R"("top_ids":[11,1,4294967307])"},
      {R"("top_logits":[3.299999952316284,1.0,1.0])", R"("top_logits":[3.3,null,1.0])"},
      {R"("top_logits":[3.299999952316284,1.0,1.0])", R"("top_logits":[1e300,1.0,1.0])"},
      {R"("top_logits":[3.299999952316284,1.0,1.0])", R"("top_logits":[1.0,1.0,3.3])"},
      {R"("top_logits":[3.299999952316284,1.0,1.0])", R"("top_logits":null)"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_NE(complaint(changed(from, to)), "") << from << " -> " << to;
  }
}

TEST(TraceFile, says_the_line) {
  EXPECT_NE(
      complaint(changed(R"("pos":6)", R"("pos":9)")).find("t.jsonl line 3"), std::string::npos
  );
}

TEST(InputSha256, is_of_ids_and_media) {
  Prompt prompt;
  prompt.ids = {1, 2, 3};
  const std::string text = input_sha256(prompt, {});
  EXPECT_EQ(text.size(), 64U);
  EXPECT_EQ(text, input_sha256(prompt, {}));
  const std::string picture = input_sha256(prompt, {{"a.png", "bytes"}});
  EXPECT_NE(picture, text);
  EXPECT_EQ(picture, input_sha256(prompt, {{"elsewhere/b.png", "bytes"}}));
  EXPECT_NE(picture, input_sha256(prompt, {{"a.png", "other"}}));
  prompt.ids = {1, 2, 4};
  EXPECT_NE(text, input_sha256(prompt, {}));
}

}  // namespace
}  // namespace whimbrel
