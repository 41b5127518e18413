#include <random>
#include <set>
#include <string>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/canonical_json.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/mutate.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using Json = nlohmann::ordered_json;

namespace {

// The error that `read` throws, or nothing.
template <class Read>
std::optional<Error> error_of(Read read) {
  try {
    static_cast<void>(read());
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("parse_python_literal reads what ast.literal_eval reads, except documented forms") {
  // Python reads these; the reader documents that it does not.
  const std::set<std::string> refused = {"0x10",          "1_000", "0b1", "0o7",
                                         "'\\N{BULLET}'", "'a',",  "1,"};
  int read = 0, rejected = 0;
  for (const auto& row : test::read_jsonl(test::own_data("tools/python_literals.jsonl"))) {
    const bool is_text     = row.contains("text");
    const std::string text = row[is_text ? "text" : "repr"].string();
    INFO(text);
    if (!row.contains("value") || refused.count(text) != 0) {
      const auto error = error_of([&] { return parse_python_literal(text); });
      REQUIRE(error);
      CHECK(error->code() == Errc::malformed_call);
      CHECK(error->where().starts_with("byte "));
      ++rejected;
      continue;
    }
    const JsonValue value = parse_python_literal(text);
    CHECK(canonical_json(value) == canonical_json(row["value"]));
    if (!is_text) {
      CHECK(value.type() == row["value"].type());
      CHECK(canonical_json(parse_json(row["dumps"].get<std::string>())) ==
            canonical_json(row["value"]));
    }
    ++read;
  }
  CHECK(read > 430);
  CHECK(rejected > 40);
}

TEST_CASE("parse_python_literal reads an integer beyond 64 bits as a double") {
  CHECK(parse_python_literal("18446744073709551615") == 18446744073709551615ULL);
  CHECK(parse_python_literal("-9223372036854775808") == INT64_MIN);
  CHECK(parse_python_literal("100000000000000000000").is_number_float());
  CHECK(parse_python_literal("100000000000000000000") == 1e20);
}

TEST_CASE("parse_python_literal errors name the byte") {
  const auto where = [](std::string_view text) {
    return error_of([&] { return parse_python_literal(text); })->where();
  };
  CHECK(where("[1, 2") == "byte 5");
  CHECK(where("[1, x]") == "byte 4");
  CHECK(where("{'a': 1, 'a': 2}") == "byte 9");
  CHECK(where("'a\xff'") == "byte 2");
  CHECK(where("1 2") == "byte 2");
  CHECK(where("12x") == "byte 2");
  CHECK(where("'\\ud800'") == "byte 1");
}

TEST_CASE("parse_python_literal throws limit_exceeded for nesting deeper than 200") {
  for (const char open : {'[', '(', '{'}) {
    for (const std::size_t depth : {std::size_t{199}, std::size_t{201}, std::size_t{1'000'000}}) {
      std::string text;
      for (std::size_t i = 0; i < depth; ++i) {
        text += open;
        if (open == '{') text += "'a':";
      }
      const auto error = error_of([&] { return parse_python_literal(text); });
      REQUIRE(error);
      CHECK(error->code() == (depth > 200 ? Errc::limit_exceeded : Errc::malformed_call));
    }
  }
  const std::string allowed = std::string(200, '[') + std::string(200, ']');
  CHECK(parse_json(allowed).text() == allowed);
}

TEST_CASE("parse_json accepts strict JSON only") {
  for (const std::string text : {"",
                                 " ",
                                 "[1,]",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "'a'",
                                 "01",
                                 "1.",
                                 ".5",
                                 "+1",
                                 "- 1",
                                 "1e",
                                 "-",
                                 "True",
                                 "nul",
                                 "nulls",
                                 "\"\x01\"",
                                 "\"\\x41\"",
                                 "\"\\ud800\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\udc00\"",
                                 "\"a\" \"b\"",
                                 "1 2",
                                 "[1] x",
                                 "(1)",
                                 "1e400",
                                 "\"\xff\"",
                                 "{\"a\":1,\"\\u0061\":2}",
                                 "\f1"}) {
    INFO(text);
    const auto error = error_of([&] { return parse_json(text); });
    REQUIRE(error);
    CHECK(error->code() == Errc::malformed_json);
  }
  CHECK(parse_json(R"( {"a" : [1, -0.5e1 , "\u00e9\ud83d\ude00\/"]} )").text() ==
        "{\"a\":[1,-5.0,\"\xC3\xA9\xF0\x9F\x98\x80/\"]}");
}

TEST_CASE("parse_json of mutated texts agrees with nlohmann's parser") {
  const std::string seeds[] = {
      R"({"name": "f", "arguments": {"a": [1, -2.5e-3, 0], "b": "x\n\u00e9\ud83d\ude00", "c": {}}})",
      R"([true, false, null, "", [], [[{}]], 1e5, -0, 0.0, 12345678901234567890123])"};
  const std::string_view alphabet = "{}[]\",:\\ue0123456789dDbn-+.truefalsn \n\t\x01\xC3\xA9\xff";
  int read                        = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    std::string text = seeds[seed % 2];
    test::mutate(text, alphabet, random() % 3, random);
    CAPTURE(seed, text);
    std::optional<Json> expected;
    try {
      expected = Json::parse(text);
    } catch (const Json::exception&) {}
    std::optional<Json> actual;
    const auto error = error_of([&] { return *(actual = parse_json(text)); });
    if (!actual && expected) {
      // only repeated keys may pass nlohmann's parser and fail here
      REQUIRE(std::string(error->what()).find("occurs twice") != std::string::npos);
      continue;
    }
    REQUIRE(actual == expected);
    read += actual ? 1 : 0;
  }
  CHECK(read > 5000);
}

TEST_CASE(
    "ValueReader rejects a repeated key, or takes its last value if repeated keys are allowed",
    "[tools]") {
  const std::string text = R"({"a": 1, "b": 2, "a": {"": 0, "": 3}})";
  ValueReader strict(text, ValueReader::Language::json, Errc::malformed_document);
  CHECK_THROWS_AS(strict.value(), Error);
  ValueReader lenient(text, ValueReader::Language::json, Errc::malformed_document);
  lenient.allow_repeated_keys();
  CHECK(lenient.value().text() == R"({"a":{"":3},"b":2})");
  for (const int keys : {1, 15, 16, 17, 40}) {
    for (int again = 0; again < keys; ++again) {
      INFO(keys << " keys, key " << again << " repeated");
      nlohmann::ordered_json expected;
      std::string all = "{";
      for (int key = 0; key < keys; ++key) {
        expected[std::to_string(key)] = key;
        all += '"' + std::to_string(key) + "\":" + std::to_string(key) + ',';
      }
      expected[std::to_string(again)] = nullptr;
      all += '"' + std::to_string(again) + "\":null}";
      ValueReader first(all, ValueReader::Language::json, Errc::malformed_document);
      CHECK_THROWS_AS(first.value(), Error);
      ValueReader second(all, ValueReader::Language::json, Errc::malformed_document);
      second.allow_repeated_keys();
      CHECK(second.value() == expected);
    }
  }
}

TEST_CASE("parse_exact_json keeps numbers that parse_json rounds") {
  const std::string text = R"({"const": 18446744073709551617, "x": [0.1, 1e-7, 1e308]})";
  const auto exact       = parse_exact_json(text);
  CHECK(exact["const"].text() == "18446744073709551617");
  CHECK(write_json(exact) == R"({"const": 18446744073709551617, "x": [0.1, 1e-07, 1e+308]})");
  CHECK(exact["x"] == parse_json(text)["x"]);
  CHECK(ExactNumber::rounded(exact) == parse_json(text));
  CHECK_THROWS_AS(parse_exact_json("1e400"), Error);
  CHECK_THROWS_AS(parse_exact_json("[1] 2"), Error);
}

TEST_CASE("ValueReader::keep_integers keeps the digits of integers beyond 64 bits alone") {
  const auto read = [](std::string_view text, ValueReader::Language language) {
    ValueReader reader(text, language, Errc::malformed_call);
    reader.keep_integers();
    return reader.only_value();
  };
  using Language = ValueReader::Language;
  for (const auto language : {Language::json, Language::python}) {
    for (const char* kept :
         {"18446744073709551616", "-9223372036854775809", "100000000000000000000"}) {
      INFO(kept);
      const auto value = read(kept, language);
      CHECK(value.is_exact());
      CHECK(value.text() == kept);
      CHECK(value.get<double>() == std::stod(kept));
    }
    CHECK(read("18446744073709551615", language).is_number_unsigned());
    CHECK(read("1e20", language).is_number_float());
    CHECK(read("0.12345678901234567891", language).is_number_float());
    CHECK(read("[[18446744073709551616]]", language)[0][0].is_exact());
  }
}

TEST_CASE("ValueReader reads half a surrogate pair as U+FFFD only where it is asked to") {
  const auto read = [](std::string_view json, bool replaces) {
    ValueReader reader(json, ValueReader::Language::json, Errc::malformed_json);
    if (replaces) reader.replace_half_pairs();
    return reader.only_value();
  };
  const std::string half = "\xEF\xBF\xBD";
  CHECK(read(R"("\ud83d\ude00")", true) == "\xF0\x9F\x98\x80");
  CHECK(read(R"("a\ud83d")", true) == "a" + half);
  CHECK(read(R"("\ud83db")", true) == half + "b");
  CHECK(read(R"("\ude00")", true) == half);
  CHECK(read(R"("\ud83d\u0041")", true) == half + "A");
  CHECK(read(R"("\ud83d\ud83d\ude00")", true) == half + "\xF0\x9F\x98\x80");
  CHECK(read(R"("\\ud83d")", true) == "\\ud83d");
  for (const char* json : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")"}) {
    CAPTURE(json);
    CHECK_THROWS_AS(read(json, false), Error);
  }
  CHECK_THROWS_AS(read(R"("\ud83d\uzzzz")", true), Error);
}

TEST_CASE("ValueReader::for_each_item reads the items, and refuses the texts, of parse_json") {
  for (const char* json :
       {"[]", " [ ] ", "[1]", R"([1, "a" ,{"b":[2]}, [ ], null])", "[[[3]]]", "[", "[1", "[1,",
        "[1,]", "[,1]", "[1 2]", "[1]]", "[1] 2", "1", R"([{"a":1,"a":2}])", "[\"\x01\"]"}) {
    CAPTURE(json);
    Json items = Json::array(), texts = Json::array();
    const auto read = [&] {
      ValueReader reader(json, ValueReader::Language::json, Errc::malformed_json);
      reader.skip_space();
      reader.for_each_item([&](Json item, std::string_view text) {
        items.push_back(std::move(item));
        texts.push_back(parse_json(text));
      });
      reader.expect_end();
    };
    const auto whole = find_json(json);
    if (whole && whole->is_array()) {
      REQUIRE_NOTHROW(read());
      CHECK(items == *whole);
      CHECK(texts == *whole);
    } else {
      CHECK_THROWS_AS(read(), Error);
    }
  }
}
