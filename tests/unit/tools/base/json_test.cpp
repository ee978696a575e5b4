// Json compared with nlohmann's: equal values give the same text, and a text gives equal values.
#include "tools/base/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace oomrec::tools;
using Library = nlohmann::ordered_json;

namespace {

std::string library_text(const Library& value, int indent = -1) {
  return value.dump(indent, ' ', false, Library::error_handler_t::replace);
}

// The same value in both libraries.
std::pair<Json, Library> any_value(std::mt19937& random, int depth) {
  const std::vector<std::string> texts{"",
                                       "plain",
                                       "with \"quotes\" and \\",
                                       "\n\t\x01\x7f",
                                       "caf\xc3\xa9",
                                       "cut \xe2\x82",
                                       "\xff\xfe",
                                       "\xed\xa0\x80",
                                       "\xf0\x9f\x98\x80"};
  const std::vector<double> numbers{0.0,
                                    -0.0,
                                    1.0,
                                    0.1,
                                    -1.5e300,
                                    5e-324,
                                    1e22,
                                    123456789.125,
                                    std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};
  const auto below = [&](std::size_t count) { return random() % count; };
  switch (below(depth > 0 ? 8 : 6)) {
    case 0:
      return {nullptr, nullptr};
    case 1:
      return {true, true};
    case 2: {
      const auto number = static_cast<std::int64_t>(random()) << below(33);
      return {-number, -number};
    }
    case 3: {
      const std::uint64_t number = std::numeric_limits<std::uint64_t>::max() >> below(64);
      return {number, number};
    }
    case 4: {
      const double number = numbers[below(numbers.size())];
      return {number, number};
    }
    case 5: {
      const std::string& text = texts[below(texts.size())];
      return {text, text};
    }
    case 6: {
      std::pair<Json, Library> array{Json::array(), Library::array()};
      for (std::size_t left = below(4); left != 0; --left) {
        auto [ours, theirs] = any_value(random, depth - 1);
        array.first.push_back(std::move(ours));
        array.second.push_back(std::move(theirs));
      }
      return array;
    }
    default: {
      std::pair<Json, Library> object{Json::object(), Library::object()};
      for (std::size_t left = below(5); left != 0; --left) {
        const std::string& key = texts[below(texts.size())];
        auto [ours, theirs] = any_value(random, depth - 1);
        object.first[key] = std::move(ours);
        object.second[key] = std::move(theirs);
      }
      return object;
    }
  }
}

}  // namespace

TEST_CASE("the text is the same as nlohmann's, and parses to an equal value") {
  std::mt19937 random{7};
  int nested = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto [ours, theirs] = any_value(random, 4);
    nested += ours.is_array() || ours.is_object();
    for (const int indent : {-1, 0, 2}) REQUIRE(ours.dump(indent) == library_text(theirs, indent));
    const std::string text = ours.dump();
    REQUIRE(parse_json(text).dump() == text);
    const bool is_equal = Json(ours) == ours;
    REQUIRE(is_equal == (Library(theirs) == theirs));  // false if it contains NaN
  }
  CHECK(nested > 500);
}

TEST_CASE("both accept the same texts") {
  const std::vector<std::string> texts{"",
                                       "{",
                                       "}",
                                       "[1,]",
                                       "[1 2]",
                                       "{\"a\":1,\"a\":2}",
                                       "nul",
                                       "01",
                                       "-0",
                                       "1e400",
                                       "\"\\u00e9\"",
                                       "\"\\ud800\"",
                                       "\"\xff\"",
                                       " [1, -1, 18446744073709551616, 1.0] ",
                                       "[] []",
                                       "{\"a\" 1}",
                                       "NaN",
                                       "{\"b\":1,\"a\":{\"c\":[null,true,false]}}",
                                       "\xef\xbb\xbf{}",
                                       "\"a\nb\""};
  int valid = 0;
  for (const std::string& text : texts) {
    CAPTURE(text);
    const Json ours = parse_json(text);
    const Library theirs = Library::parse(text, nullptr, false);
    REQUIRE(ours.is_discarded() == theirs.is_discarded());
    if (theirs.is_discarded()) continue;
    ++valid;
    CHECK(ours.dump() == library_text(theirs));
    CHECK(ours.is_number_unsigned() == theirs.is_number_unsigned());
  }
  CHECK(valid == 6);
}

// Throws, where parse_json(text) only says that it is no JSON for us.
static Json parse_within_budget(std::string_view text) {
  JsonBudget budget;
  return parse_json(text, budget);
}

TEST_CASE("nesting is bounded") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK_FALSE(parse_json(nested(64)).is_discarded());
  CHECK(parse_json(nested(65)).is_discarded());
  CHECK(parse_json(nested(100'000)).is_discarded());
  JsonBudget budget;
  CHECK_FALSE(parse_json(nested(16), budget, 16).is_discarded());
  CHECK_THROWS_AS(parse_json(nested(17), budget, 16), std::length_error);
}

TEST_CASE("a repeated key keeps its first position and its last value") {
  for (const int count : {3, 15, 16, 17, 1000}) {
    CAPTURE(count);
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
    text += R"("k2":[1],"z":0,"k1":"b","k2":{"c":1}})";
    const Json value = parse_json(text);
    CHECK(value.dump() == library_text(Library::parse(text)));
    CHECK(value.size() == static_cast<std::size_t>(count) + 1);
  }
}

TEST_CASE("parsing is linear in keys and bounded in memory") {
  std::string keys = "{", pairs = "[";
  for (int i = 0; i < 300'000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  keys += "\"k\":0}";
  CHECK(parse_json(keys).size() == 300'001);  // minutes, if each key is compared with all others
  for (int i = 0; i < 10'000'000; ++i) pairs += "[],";
  pairs += "0]";
  CHECK_THROWS_AS(parse_within_budget(pairs), JsonTooLarge);
}

TEST_CASE("texts share a budget") {
  JsonBudget budget{48 << 20};
  const std::string text = '"' + std::string(12 << 20, 'x') + '"';
  for (int i = 0; i < 3; ++i) CHECK(parse_json(text, budget).is_string());
  CHECK_THROWS_AS(parse_json(text, budget), JsonTooLarge);
}

TEST_CASE("an initializer list of pairs is an object, any other an array") {
  CHECK(Json{{"a", 1}, {"b", {{"c", nullptr}}}}.dump() == R"({"a":1,"b":{"c":null}})");
  CHECK(Json{{"a", {1, 2.5, "x"}}}.dump() == R"({"a":[1,2.5,"x"]})");
  CHECK(Json{1, "a"}.dump() == R"([1,"a"])");
  CHECK(Json{}.is_null());
  CHECK(Json::array({{{"a", 1}}, {{"a", 2}}}).dump() == R"([{"a":1},{"a":2}])");
  CHECK(Json::array({{"a", 1}}).dump() == R"([["a",1]])");
  CHECK(Json{{"a", 1}, {"a", 2}}.dump() == R"({"a":2})");
}

TEST_CASE("members keep their order, and absent ones are null") {
  Json object;
  object["z"] = 1;
  object["a"]["b"] = "deep";
  object.update({{"z", 2}, {"m", true}});
  CHECK(object.dump() == R"({"z":2,"a":{"b":"deep"},"m":true})");
  CHECK(std::as_const(object)["none"].is_null());
  CHECK(object.size() == 3);
  object.erase("z");
  object.erase("none");
  CHECK_FALSE(object.contains("z"));
  CHECK(object.items().front().key == "a");
  CHECK_THROWS_AS(object.push_back(1), std::domain_error);
  CHECK_THROWS_AS(object["m"]["of a truth"], std::domain_error);
}

TEST_CASE("numbers convert to each other, other types do not") {
  CHECK(Json(-1).get<std::int64_t>() == -1);
  CHECK(Json(3U).get<double>() == 3.0);
  CHECK(Json(2.9).get<int>() == 2);
  CHECK(Json(1) == Json(1U));
  CHECK(Json(1) == Json(1.0));
  CHECK_FALSE(Json(1) == Json(true));
  CHECK_FALSE(Json(-1) == Json(std::numeric_limits<std::uint64_t>::max()));
  CHECK_FALSE(Json(1).is_number_unsigned());
  CHECK(Json(1).is_number_integer());
  CHECK_THROWS_AS(static_cast<void>(Json("1").get<int>()), std::domain_error);
  CHECK_THROWS_AS(static_cast<void>(Json(1).get<std::string>()), std::domain_error);
  CHECK_THROWS_AS(static_cast<void>(Json(1).get<bool>()), std::domain_error);
}

TEST_CASE("a copy is independent, and a moved-from value is null") {
  Json one{{"rows", {1, 2}}};
  Json other = one;
  other["rows"].push_back(3);
  CHECK(one["rows"].size() == 2);
  const Json moved = std::move(one);
  CHECK(one.is_null());
  CHECK(moved["rows"].size() == 2);
  other = other["rows"];  // a part of itself
  CHECK(other.dump() == "[1,2,3]");
}

TEST_CASE("a text that would take too much memory is refused") {
  const auto list_of = [](std::string_view element, std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text.append(element).append(",");
    return text + "0]";
  };
  CHECK_THROWS_AS(parse_within_budget(list_of("[]", 10'000'000)), JsonTooLarge);
  for (const std::string_view element : {"[]", "{\"a\":0}", "\"\""}) {
    JsonBudget budget{16 << 20};
    CHECK_THROWS_AS(parse_json(list_of(element, 1'000'000), budget), JsonTooLarge);
  }
  CHECK(parse_json(list_of("0", 1'000'000)).size() == 1'000'001);
}

TEST_CASE("an object with many members is read in linear time, its repeated keys as ever") {
  constexpr std::size_t kMembers = 300'000;
  std::string text = "{";
  for (std::size_t i = 0; i < kMembers; ++i) text += "\"key " + std::to_string(i) + "\":0,";
  text += "\"key 7\":1,\"key 299999\":2}";
  const Json value = parse_json(text);
  CHECK(value.size() == kMembers);
  CHECK(value["key 7"] == Json(1));
  CHECK(value["key 299999"] == Json(2));
  CHECK(value.items()[8].key == "key 8");
}
