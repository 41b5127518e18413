#include <string>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/tiktoken.hpp>

#include <support/data.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;

namespace {

const std::string lines = "YQ== 0\nYg== 1\nIA== 2\nYWI= 3\n";  // a, b, a space, ab

std::string what(const std::string& text, std::string_view name = "cl100k_base") {
  try {
    static_cast<void>(td::vocabulary::parse_tiktoken(text, name));
  } catch (const td::Error& error) {
    return error.what();
  }
  return "accepted";
}
std::string what_of_tekken(const std::string& text) {
  try {
    static_cast<void>(td::vocabulary::parse_tekken(text));
  } catch (const td::Error& error) {
    return error.what();
  }
  return "accepted";
}
std::string tekken(const std::string& special) {
  return R"({"config": {"pattern": " ?[a-z]+", "default_vocab_size": 7, "default_num_special_tokens": 3},
             "vocab": [{"rank": 0, "token_bytes": "YQ=="}, {"rank": 1, "token_bytes": "Yg=="},
                       {"rank": 2, "token_bytes": "IA=="}, {"rank": 3, "token_bytes": "YWI="},
                       {"rank": 4, "token_bytes": "YmE="}])" +
         special + "}";
}

}  // namespace

TEST_CASE("parse_tiktoken reads ranks and adds the special tokens of a known encoding") {
  const td::Tokenizer tokenizer = td::vocabulary::parse_tiktoken(lines, "cl100k_base");
  CHECK(tokenizer.encode("ab ba") == Ids{3, 2, 1, 0});
  CHECK(tokenizer.vocabulary().token_count() == 100258);
  CHECK(tokenizer.vocabulary().type(50) == td::TokenType::unused);
  CHECK(tokenizer.vocabulary().is_end(100257));
  CHECK(tokenizer.encode("a<|endoftext|>", {.parse_special = true}) == Ids{0, 100257});
  const td::Tokenizer other = td::vocabulary::parse_tiktoken("YQ== 0\r\n\nYg== 1", "mine");
  CHECK(other.vocabulary().token_count() == 2);
  CHECK(other.vocabulary().end_tokens().empty());
  CHECK_THROWS_WITH(other.encode("a"), td::test::contains("\"mine\" is not known"));
}

TEST_CASE("parse_tiktoken encodes as the merges that were derived from the same tokens") {
  TOOLDECODE_REQUIRE_SHARED(path, "vocab/cl100k_base.json.gz");
  const nlohmann::json compact = nlohmann::json::parse(td::test::read_text(path));
  std::string text;
  for (std::size_t i = 0; i < compact.at("n_base_tokens").get<std::size_t>(); ++i)
    text += compact["tokens_b64"][i].get<std::string>() + ' ' + std::to_string(i) + '\n';
  const td::Tokenizer ours   = td::vocabulary::parse_tiktoken(text, "cl100k_base");
  const td::Tokenizer merges = td::vocabulary::parse_compact_vocabulary(td::test::read_text(path));
  TOOLDECODE_REQUIRE_SHARED(rows, "vocab/tests/gpt-2.jsonl");
  for (const auto& row : td::test::read_jsonl(rows)) {
    const auto one = row.at("text").get<std::string>();
    INFO(nlohmann::json(one).dump());
    CHECK(ours.encode(one) == merges.encode(one));
  }
}

TEST_CASE("parse_tiktoken errors name the line") {
  const std::string form = "must be a token in base64, a space and its rank";
  CHECK(what("YQ==\n") == "line 1: " + form);
  CHECK(what("YQ== 0\nYg== x\n") == "line 2: " + form);
  CHECK(what("YQ== 0\nYg== 1 2") == "line 2: " + form);
  CHECK(what("YQ= 0") == "line 1: must be base64");
  const std::string range =
      ": must be above that of the line before, and at most 65536 more than there are tokens before "
      "it, 1";
  CHECK(what("YQ== 0\nYg== 0") == "line 2: rank 0" + range);
  CHECK(what("YQ== 0\nYg== 65538") == "line 2: rank 65538" + range);
  CHECK(what("YQ== 0\nYg== 18446744073709551615") == "line 2: rank 18446744073709551615" + range);
}

TEST_CASE("parse_tiktoken with ranks left out, as of p50k_base, leaves those tokens unused") {
  std::string text;
  for (const int rank : {0, 1, 2, 3, 50255, 50257}) {
    const char* token = rank == 0       ? "YQ=="
                        : rank == 1     ? "Yg=="
                        : rank == 2     ? "IA=="
                        : rank == 3     ? "YWI="
                        : rank == 50255 ? "ICA="   // two spaces
                                        : "ICAg";  // three
    text += std::string(token) + ' ' + std::to_string(rank) + '\n';
  }
  const td::Tokenizer tokenizer = td::vocabulary::parse_tiktoken(text, "p50k_base");
  CHECK(tokenizer.vocabulary().token_count() == 50258);
  CHECK(tokenizer.vocabulary().type(4) == td::TokenType::unused);
  CHECK(tokenizer.vocabulary().name(50256) == "<|endoftext|>");
  CHECK(tokenizer.vocabulary().is_end(50256));
  CHECK(tokenizer.encode("ab   ") == Ids{3, 50257});
}

TEST_CASE("parse_tekken puts special tokens before all others") {
  const td::Tokenizer old = td::vocabulary::parse_tekken(tekken(""));
  CHECK(old.vocabulary().token_count() == 7);  // without the last of its tokens
  CHECK(old.encode("ab ba") == Ids{6, 5, 4, 3});
  CHECK(old.vocabulary().name(2) == "</s>");
  CHECK(old.vocabulary().is_end(2));
  CHECK(old.vocabulary().begin_token() == 1);
  const td::Tokenizer listed = td::vocabulary::parse_tekken(
      tekken(R"(, "special_tokens": [{"rank": 0, "token_str": "<x>", "is_control": false},
                                     {"rank": 1, "token_str": "</s>", "is_control": true}])"));
  CHECK(listed.vocabulary().type(0) == td::TokenType::user_defined);
  CHECK(listed.vocabulary().is_end(1));
  CHECK(listed.vocabulary().type(2) == td::TokenType::unused);
}

TEST_CASE("parse_tekken errors name the place") {
  CHECK(what_of_tekken("{}") == "#/config: must be an object");
  CHECK(
      what_of_tekken(R"({"config": {"pattern": "a", "default_vocab_size": 9,
                           "default_num_special_tokens": 3}, "vocab": []})") ==
      "#/config/default_vocab_size: 9: must be from the number of special tokens, 3, to that of all, 3");
  CHECK(what_of_tekken(R"({"config": {"pattern": "a", "default_vocab_size": 2305843009213693952,
                          "default_num_special_tokens": 2305843009213693952}, "vocab": []})") ==
        "#/config/default_num_special_tokens: must be at most 65536");
  CHECK(what_of_tekken(tekken(R"(, "special_tokens": [{"rank": 3, "token_str": "<x>"}])")) ==
        "#/special_tokens/0/rank: 3: must be below 3");
  std::string wrong = tekken("");
  wrong.replace(wrong.find("\"rank\": 1"), 9, "\"rank\": 2");
  CHECK(what_of_tekken(wrong) == "#/vocab/1/rank: must be 1");
}
