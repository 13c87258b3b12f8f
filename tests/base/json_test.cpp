#include "base/json.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

const JsonSource kSource{"config.json"};

std::string failure(std::string_view bytes, JsonLimits limits = {}) {
  try {
    parse_json(bytes, "test.json", Fault::input, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return error.what();
  }
  return "";
}

TEST(ParseJson, keeps_key_order_and_number_text) {
  EXPECT_EQ(
      parse_json(R"({"b": 1.0, "a": [1, -2]})", "test", Fault::input).dump(),
      R"({"b":1.0,"a":[1,-2]})"
  );
}

TEST(ParseJson, refuses_with_the_place) {
  for (const char* bytes :
       {"", "{", "{\"a\":}", "nul", "{'a':1}", "[1,]", "\xff", "\"\xc3\"", "1 2"}) {
    EXPECT_TRUE(failure(bytes).starts_with("[test.json] got invalid JSON")) << bytes;
  }
}

TEST(ParseJson, a_nul_byte_is_not_the_end) {
  EXPECT_NE(failure(std::string_view("{}\0{}", 5)).find("NUL"), std::string::npos);
}

TEST(ParseJson, refuses_a_repeated_key_of_one_object_only) {
  EXPECT_NE(failure(R"({"a": 1, "b": {"c": 1, "c": 2}})").find("\"c\" twice"), std::string::npos);
  EXPECT_EQ(failure(R"({"a": {"a": 1}, "b": {"a": 1}})"), "");
}

TEST(ParseJson, depth_and_size_are_bounded) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_EQ(failure(deep.substr(1, 128)), "");
  EXPECT_NE(failure(deep).find("deeper than 64"), std::string::npos);
  EXPECT_NE(failure(std::string(100'000, '[')).find("deeper"), std::string::npos);
  EXPECT_NE(failure("[1,2,3,4]", {.nodes = 3}).find("over 3 values"), std::string::npos);
}

TEST(GetInt, accepts_integers_in_range_only) {
  const Json object = Json::parse(
      R"({"a": 7, "float": 7.0, "text": "7", "none": null, "huge": 18446744073709551615, "neg": -1})"
  );
  EXPECT_EQ(get_int(object, "a", kSource), 7);
  EXPECT_EQ(get_int_or(object, "none", 3, kSource), 3);
  EXPECT_EQ(get_int_or(object, "absent", 3, kSource), 3);
  EXPECT_EQ(get_int(object, "neg", kSource, -1), -1);
  for (const char* key : {"float", "text", "none", "huge", "neg", "absent"}) {
    EXPECT_THROW(get_int(object, key, kSource), Error) << key;
  }
  EXPECT_THROW(get_int_or(object, "huge", 3, kSource), Error);
  EXPECT_THROW(get_int(object, "a", kSource, 1, 6), Error);
}

TEST(GetInt, names_file_and_key) {
  try {
    get_int(Json::parse(R"({"hidden_size": -5})"), "hidden_size", kSource);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[config.json] got \"hidden_size\": -5, expected an integer from 1 to 2147483647"
    );
  }
}

TEST(Getters, check_types) {
  const Json object = Json::parse(R"({"n": 1.5, "b": true, "s": "x", "o": {"k": 1}, "l": [1, 2]})");
  EXPECT_EQ(get_number(object, "n", kSource), 1.5);
  EXPECT_EQ(get_number_or(object, "absent", 2.5, kSource), 2.5);
  EXPECT_TRUE(get_bool_or(object, "b", false, kSource));
  EXPECT_EQ(get_string(object, "s", kSource), "x");
  EXPECT_EQ(get_ints(object, "l", kSource), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(get_ints(object, "absent", kSource).empty());
  EXPECT_EQ(get_object_or_empty(object, "o", kSource).size(), 1U);
  EXPECT_TRUE(get_object_or_empty(object, "absent", kSource).empty());
  EXPECT_THROW(get_number(object, "s", kSource), Error);
  EXPECT_THROW(get_bool_or(object, "n", false, kSource), Error);
  EXPECT_THROW(get_string(object, "n", kSource), Error);
  EXPECT_THROW(get_ints(object, "s", kSource), Error);
  EXPECT_THROW(get_object_or_empty(object, "l", kSource), Error);
}

}  // namespace
}  // namespace whimbrel
