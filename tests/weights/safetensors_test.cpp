#include "weights/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::contains;
using test::model_error;
using test::with_length;

std::vector<TensorInfo> parse(std::string_view json, size_t data_bytes = 0) {
  const std::string bytes = with_length(json, std::string(data_bytes, 'x'));
  return parse_safetensors_header(bytes, bytes.size(), "m.safetensors");
}

std::string entry(std::string_view name, std::string_view shape, int begin, int end) {
  return fmt::format(
      R"("{}":{{"dtype":"F16","shape":{},"data_offsets":[{},{}]}})", name, shape, begin, end
  );
}

/// A header with one thing wrong, and what the error has to say.
struct BrokenHeader {
  std::string json;
  size_t data_bytes;
  std::string complaint;
};

std::vector<BrokenHeader> headers_that_are_no_json() {
  return {
      {"", 0, "no JSON object"},
      {" {}", 0, "no JSON object"},
      {"\xef\xbb\xbf{}", 0, "no JSON object"},
      {"[]", 0, "no JSON object"},
      {"null", 0, "no JSON object"},
      {"{", 0, "invalid JSON at byte"},
      {"{}{}", 0, "invalid JSON at byte"},
      {"{} x", 0, "invalid JSON at byte"},
      {R"({"a":)", 0, "invalid JSON at byte"},
      {std::string("{}\0\0", 4), 0, "zero byte at 2"},
      {"{\"\xff\":{}}", 0, "invalid JSON at byte"},
      {R"({"\ud800":{}})", 0, "invalid JSON at byte"},
      {"{" + entry("a", "[01]", 0, 2) + "}", 2, "invalid JSON at byte"},
      {"{" + entry("a", "[NaN]", 0, 2) + "}", 2, "invalid JSON at byte"},
      {"{" + entry("a", "[1],", 0, 2) + "}", 2, "invalid JSON at byte"},
  };
}

std::vector<BrokenHeader> headers_with_bad_fields() {
  const auto fields = [](std::string_view text) { return fmt::format(R"({{"a":{{{}}}}})", text); };
  const std::string rest = R"("shape":[1],"data_offsets":[0,2])";
  return {
      {R"({"a":[]})", 0, "tensor \"a\": got a list"},
      {R"({"a":1})", 0, "got the number 1"},
      {R"({"a":null})", 0, "got null"},
      {fields(""), 0, "an entry without one of them"},
      {fields(rest), 2, "an entry without one of them"},
      {fields(R"("dtype":"F16","shape":[1])"), 2, "an entry without one of them"},
      {fields(R"("dtype":"F16","data_offsets":[0,2])"), 2, "an entry without one of them"},
      {fields(R"("dtype":"F16","dtype":"F16",)" + rest), 2, R"(the key "dtype")"},
      {fields(R"("dtype":"F16","shape":[1],)" + rest), 2, R"(the key "shape")"},
      {fields(R"("data_offsets":[0,2],"dtype":"F16",)" + rest), 2, R"(the key "data_offsets")"},
      {fields(R"("dtype":"F16","stride":[1],)" + rest), 2, R"(the key "stride")"},
      {fields(R"("dtype":"F4",)" + rest), 2, R"(got dtype "F4", expected a dtype of BOOL, U8)"},
      {fields(R"("dtype":"bf16",)" + rest), 2, R"(got dtype "bf16")"},
      {fields(R"("dtype":"F64",)" + rest), 2, R"(got dtype "F64")"},
      {fields(R"("dtype":"",)" + rest), 2, R"(got dtype "")"},
      {fields(R"("dtype":1,)" + rest), 2, "got the number 1"},
      {fields(R"("dtype":["F16"],)" + rest), 2, "got a list"},
      {R"({"__metadata__":"x"})", 0, "expected __metadata__ as an object"},
      {R"({"__metadata__":{"a":1}})", 0, "expected __metadata__ as an object"},
      {R"({"__metadata__":{"a":{}}})", 0, "expected __metadata__ as an object"},
      {R"({"__metadata__":{"a":null}})", 0, "expected __metadata__ as an object"},
      {R"({"__metadata__":{"a":"","a":""}})", 0, R"(the name "a" twice)"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, R"(the name "__metadata__" twice)"},
      {"{" + entry("a", "[1]", 0, 2) + "," + entry("a", "[1]", 2, 4) + "}", 4, R"("a" twice)"},
      {"{" + entry("a", "[1]", 0, 2) + "," + entry("\\u0061", "[1]", 2, 4) + "}",
       4,
       R"("a" twice)"},
  };
}

std::vector<BrokenHeader> headers_with_bad_shapes() {
  const auto shaped = [](std::string_view shape) { return "{" + entry("a", shape, 0, 2) + "}"; };
  return {
      {shaped("1"), 2, "got the number 1, expected a list as shape"},
      {shaped("{}"), 2, "expected a list as shape"},
      {shaped("null"), 2, "expected a list as shape"},
      {shaped("[-1]"), 2, "got the negative number -1"},
      {shaped("[1.0]"), 2, "got a fraction"},
      {shaped("[1e0]"), 2, "got a fraction"},
      {shaped("[\"1\"]"), 2, "got the string \"1\""},
      {shaped("[[1]]"), 2, "got a list"},
      {shaped("[true]"), 2, "got true or false"},
      {shaped("[2147483648]"), 2, "got the dimension 2147483648"},
      {shaped("[18446744073709551615]"), 2, "got the dimension 18446744073709551615"},
      {shaped("[18446744073709551616]"), 2, "got a fraction or a number too large"},
      {shaped("[1,1,1,1,1,1,1,1,1]"), 2, "got one more dimension"},
      {shaped("[2]"), 2, "tensor \"a\": got data_offsets [0, 2], expected 4 bytes for F16"},
      {shaped("[0]"), 2, "expected 0 bytes for F16 of shape [0]"},
      // 2^16 * 2^24 * 2^24 * 2 bytes is 2^65, which is 0 in 64 bits.
      {"{" + entry("a", "[65536,16777216,16777216]", 0, 0) + "}", 0, "a 64-bit number of bytes"},
      {shaped("[2147483647,2147483647,2147483647]"), 2, "a 64-bit number of bytes"},
  };
}

std::vector<BrokenHeader> headers_with_bad_offsets() {
  const auto offsets = [](std::string_view text) {
    return fmt::format(R"({{"a":{{"dtype":"F16","shape":[1],"data_offsets":{}}}}})", text);
  };
  return {
      {offsets("2"), 2, "expected data_offsets as a list of two"},
      {offsets("[]"), 2, "got a list of 0"},
      {offsets("[2]"), 2, "got a list of 1"},
      {offsets("[0,2,2]"), 2, "got a third number"},
      {offsets("[-2,0]"), 2, "got the negative number -2"},
      {offsets("[0,2.0]"), 2, "got a fraction"},
      {offsets("[0,18446744073709551616]"), 2, "got a fraction or a number too large"},
      {offsets("[2,0]"), 2, "got data_offsets [2, 0], expected 2 bytes"},
      {offsets("[18446744073709551614,18446744073709551615]"), 2, "expected 2 bytes"},
      {offsets("[18446744073709551613,18446744073709551615]"), 2, "it is cut off"},
      {offsets("[0,2]"), 1, "got an end at byte 2 of the data, expected at most 1"},
      {offsets("[2,4]"), 4, "got data from byte 2, expected 0"},
      {offsets("[0,2]"), 3, "got 3 bytes of data, expected 2"},
      {"{}", 1, "got 1 bytes of data, expected 0"},
      {"{" + entry("a", "[2]", 0, 4) + "," + entry("b", "[2]", 2, 6) + "}", 6, "they overlap"},
      {"{" + entry("a", "[1]", 0, 2) + "," + entry("b", "[1]", 0, 2) + "}", 2, "they overlap"},
      {"{" + entry("a", "[2]", 0, 4) + "," + entry("b", "[0]", 2, 2) + "}", 4, "they overlap"},
      {"{" + entry("a", "[1]", 0, 2) + "," + entry("b", "[1]", 4, 6) + "}", 6, "there is a hole"},
  };
}

void expect_refused(const std::vector<BrokenHeader>& headers) {
  for (const BrokenHeader& header : headers) {
    const std::string text = model_error([&] { parse(header.json, header.data_bytes); });
    EXPECT_TRUE(contains(text, header.complaint)) << header.json;
    EXPECT_TRUE(contains(text, "[m.safetensors]"));
    EXPECT_TRUE(contains(text, "expected"));
  }
}

std::string header_of(int tensors) {
  std::string json = "{";
  for (int i = 0; i < tensors; ++i) {
    json += i == 0 ? "" : ",";
    json += entry(fmt::format("model.layers.{}.mlp.gate_proj.weight", i), "[1]", 2 * i, 2 * i + 2);
  }
  return json + "}";
}

/// The least of three runs, in CPU seconds of this process.
template <typename Action>
double cpu_seconds(Action action) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 3; ++run) {
    const std::clock_t start = std::clock();
    action();
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

/// What a caller may rely on when a header was accepted.
void expect_fills_file(const std::vector<TensorInfo>& tensors, uint64_t data_bytes) {
  uint64_t position = 0;
  for (const TensorInfo& tensor : tensors) {
    uint64_t bytes = dtype_bytes(tensor.dtype);
    for (const int64_t dimension : tensor.shape) {
      ASSERT_GE(dimension, 0);
      bytes *= static_cast<uint64_t>(dimension);
    }
    ASSERT_EQ(tensor.begin, position);
    ASSERT_EQ(tensor.bytes(), bytes);
    position = tensor.end;
  }
  ASSERT_EQ(position, data_bytes);
}

}  // namespace

TEST(SafetensorsHeader, ReadsEveryDtype) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  int end = 0;
  const std::vector<std::pair<std::string, int>> dtypes = {
      {"BOOL", 1},
      {"U8", 1},
      {"I8", 1},
      {"F8_E4M3", 1},
      {"F8_E8M0", 1},
      {"U16", 2},
      {"I16", 2},
      {"F16", 2},
      {"BF16", 2},
      {"U32", 4},
      {"I32", 4},
      {"F32", 4},
      {"U64", 8},
      {"I64", 8},
      {"C64", 8},
  };
  for (const auto& [name, bytes] : dtypes) {
    json += fmt::format(
        R"(,"{0}":{{"dtype":"{0}","shape":[2,3],"data_offsets":[{1},{2}]}})",
        name,
        end,
        end + 6 * bytes
    );
    end += 6 * bytes;
  }
  const std::vector<TensorInfo> tensors = parse(json + "}   ", static_cast<size_t>(end));
  ASSERT_EQ(tensors.size(), dtypes.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(tensors[i].name, dtypes[i].first);
    EXPECT_EQ(dtype_name(tensors[i].dtype), dtypes[i].first);
    EXPECT_EQ(dtype_bytes(tensors[i].dtype), static_cast<uint64_t>(dtypes[i].second));
    EXPECT_EQ(tensors[i].shape, (std::vector<int64_t>{2, 3}));
  }
}

TEST(SafetensorsHeader, OrdersByDataAndTakesEmptyTensorsAndScalars) {
  const std::vector<TensorInfo> tensors = parse(
      "{" + entry("last", "[2]", 2, 6) + "," + entry("empty", "[0,5]", 2, 2) + "," +
          entry("scalar", "[]", 0, 2) + "}",
      6
  );
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(tensors[0].name, "scalar");
  EXPECT_EQ(tensors[1].name, "empty");
  EXPECT_EQ(tensors[2].name, "last");
  EXPECT_TRUE(parse("{}").empty());
  EXPECT_TRUE(parse(R"({"__metadata__":null})").empty());  // as MLX writes it
}

TEST(SafetensorsHeader, RefusesEachBrokenRule) {
  expect_refused(headers_that_are_no_json());
  expect_refused(headers_with_bad_fields());
  expect_refused(headers_with_bad_shapes());
  expect_refused(headers_with_bad_offsets());
}

TEST(SafetensorsHeader, RefusesBadLengths) {
  const auto refusal = [](std::string prefix, uint64_t file_size) {
    return model_error([&] { parse_safetensors_header(prefix, file_size, "m"); });
  };
  EXPECT_TRUE(contains(refusal("", 0), "got a file of 0 bytes"));
  EXPECT_TRUE(contains(refusal("1234567", 7), "got a file of 7 bytes"));
  EXPECT_TRUE(contains(refusal(std::string(8, '\xff') + "{}", 10), "18446744073709551615"));
  EXPECT_TRUE(contains(refusal(std::string("\3\0\0\0\0\0\0\0{}", 10), 10), "header of 3 bytes"));
  // The file says that there is more, but the caller has only read a part of it.
  EXPECT_TRUE(contains(refusal(std::string("\3\0\0\0\0\0\0\0{}", 10), 11), "no JSON object"));
  // 100,000,001 bytes in a file that could hold them.
  EXPECT_TRUE(contains(
      refusal(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10), uint64_t{1} << 40),
      "got a header of 100000001 bytes, expected at most 100000000"
  ));
}

TEST(SafetensorsHeader, EscapesAndShortensNames) {
  const std::string text =
      model_error([] { parse(R"({"a\n\u001b[31m)" + std::string(500, 'b') + R"(":1})"); });
  EXPECT_TRUE(contains(text, R"("a\n\u001b[31mbbb)"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_LT(text.size(), 400);
}

TEST(SafetensorsHeader, RefusesTooManyTensors) {
  const std::string text = model_error([] { parse(header_of(200'001), 400'002); });
  EXPECT_TRUE(contains(text, "got over 200000 tensors"));
}

// The yardstick is the JSON library's bare syntax check of the same bytes, so that a slow machine
// or a sanitizer moves both; a search through the tensors for each tensor takes thousands of times
// that.
TEST(SafetensorsHeader, ChecksManyTensorsInTheTimeOfAFewSyntaxChecks) {
  const std::string json = header_of(200'000);
  const double syntax = cpu_seconds([&json] { EXPECT_TRUE(Json::accept(json)); });
  const double whole = cpu_seconds([&json] { EXPECT_EQ(parse(json, 400'000).size(), 200'000); });
  EXPECT_LT(whole, 10 * syntax) << whole << " s, and " << syntax << " s for the syntax alone";
  RecordProperty("milliseconds", static_cast<int>(1000 * whole));
}

TEST(SafetensorsHeader, TakesNoFileThatIsCutOffOrTooLong) {
  const std::string bytes =
      with_length("{" + entry("a", "[2]", 0, 4) + "," + entry("b", "[1]", 4, 6) + "}", "123456");
  EXPECT_EQ(parse_safetensors_header(bytes, bytes.size(), "m").size(), 2);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(parse_safetensors_header(bytes.substr(0, size), size, "m"), Error) << size;
  }
  EXPECT_THROW(parse_safetensors_header(bytes, bytes.size() + 1, "m"), Error);
}

TEST(SafetensorsHeader, TakesOnlySoundHeadersWhateverByteIsChanged) {
  const std::string good =
      with_length("{" + entry("a", "[2]", 0, 4) + "," + entry("b", "[1]", 4, 6) + "}", "123456");
  int accepted = 0;
  for (size_t at = 0; at + 6 < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      try {
        const std::vector<TensorInfo> tensors = parse_safetensors_header(bytes, bytes.size(), "m");
        expect_fills_file(tensors, 6);
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::model);
      }
    }
  }
  EXPECT_GT(accepted, 100);  // other names, at least
}

TEST(SafetensorsFile, ReadsTheBundledModels) {
  const std::vector<TensorInfo> tensors =
      read_safetensors_header(test::bundled_model("tiny-qwen2-5-vl") / "model.safetensors");
  EXPECT_EQ(tensors.size(), 116);
  expect_fills_file(tensors, tensors.back().end);
  const auto found = std::find_if(tensors.begin(), tensors.end(), [](const TensorInfo& tensor) {
    return tensor.name == "model.embed_tokens.weight";
  });
  ASSERT_NE(found, tensors.end());
  EXPECT_EQ(found->dtype, StoredDtype::bf16);
  EXPECT_EQ(shape_text(found->shape), "[2048, 256]");
}

TEST(SafetensorsFile, RefusesWhatIsNoRegularFile) {
  const test::WeightFolder folder;
  const auto refusal = [](const std::filesystem::path& path) {
    return model_error([&] { read_safetensors_header(path); });
  };
  EXPECT_TRUE(contains(refusal(folder.path() / "none.safetensors"), "no such file"));
  EXPECT_TRUE(contains(refusal(folder.path()), "no regular file"));
  EXPECT_TRUE(contains(refusal("/dev/zero"), "no regular file"));
  const std::filesystem::path fifo = folder.path() / "fifo.safetensors";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(fifo), "no regular file"));
  EXPECT_TRUE(contains(refusal(folder.write("empty.safetensors", "")), "a file of 0 bytes"));
  EXPECT_TRUE(contains(refusal(folder.write("text", "just some text")), "no safetensors file"));
}

TEST(SafetensorsFile, FollowsLinks) {
  const test::WeightFolder folder;
  const std::filesystem::path link = folder.path() / "model.safetensors";
  std::filesystem::create_symlink(
      test::bundled_model("tiny-qwen2-5-vl") / "model.safetensors", link
  );
  EXPECT_EQ(read_safetensors_header(link).size(), 116);
}

}  // namespace whimbrel
