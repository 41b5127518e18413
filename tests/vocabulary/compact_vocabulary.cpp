#include <filesystem>
#include <string>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>

#include <support/cases.hpp>
#include <support/data.hpp>

namespace td = tooldecode;
using nlohmann::json;

namespace {

// Checks the cases of a file: ids of the original tokenizer, which decode to the text.
void check_cases(const td::Tokenizer& tokenizer, const std::filesystem::path& path) {
  std::size_t wrong = 0;
  std::size_t count = 0;
  for (const json row : td::test::read_jsonl(path)) {
    const auto text = row.at("text").get<std::string>();
    const auto ids  = row.at("ids").get<std::vector<td::TokenId>>();
    ++count;
    if (tokenizer.encode(text, {.add_space_prefix = true}) != ids) {
      ++wrong;
      UNSCOPED_INFO("differs: " << json(text).dump().substr(0, 200));
    }
    // The tokens may include a space prefix.
    const std::string decoded = tokenizer.decode(ids);
    CHECK((decoded == text || decoded == " " + text));
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  CHECK(count > 0);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("parse_compact_vocabulary gives the published ids for nine vocabularies", "[published]") {
  for (const std::string name : {"gpt-2", "mpt", "falcon", "qwen2", "o200k_harmony", "cl100k_base",
                                 "phi-3", "mistral-v1", "mistral-v3"}) {
    TOOLDECODE_REQUIRE_SHARED(file, "vocab/" + name + ".json.gz");
    INFO(name);
    const td::Tokenizer tokenizer =
        td::vocabulary::parse_compact_vocabulary(td::test::read_text(file));
    if (const auto cases = td::test::shared_data("vocab/tests/" + name + ".jsonl")) {
      check_cases(tokenizer, *cases);
    }
    TOOLDECODE_REQUIRE_SHARED(derived, "vocab/tests/derived/" + name + ".jsonl.gz");
    check_cases(tokenizer, derived);
  }
}

TEST_CASE("parse_compact_vocabulary pads a vocabulary to the model's number of logits") {
  TOOLDECODE_REQUIRE_SHARED(file, "vocab/qwen2.json.gz");
  const td::Tokenizer tokenizer =
      td::vocabulary::parse_compact_vocabulary(td::test::read_text(file));
  CHECK(tokenizer.vocabulary().size() == 151936);
  CHECK(tokenizer.vocabulary().token_count() == 151669);
  CHECK(tokenizer.vocabulary().end_tokens()[0] == 151645);
  CHECK(tokenizer.encode("<tool_call><|im_end|>").front() == 151657);
  CHECK(tokenizer.encode("<tool_call><|im_end|>").size() > 2);
  CHECK(tokenizer.encode("<tool_call><|im_end|>", {.parse_special = true}) ==
        std::vector<td::TokenId>{151657, 151645});
}

TEST_CASE("parse_compact_vocabulary rejects each inconsistent member with its error code") {
  const json good               = {{"type", "bpe-bytelevel"},
                                   {"tokens_b64", {"YQ==", "Yg==", "YWI=", "PGU+"}},
                                   {"token_types", {1, 1, 1, 3}},
                                   {"merges", {"a b"}},
                                   {"eos_id", 3}};
  const td::Tokenizer tokenizer = td::vocabulary::parse_compact_vocabulary(good.dump());
  CHECK(tokenizer.encode("aba") == std::vector<td::TokenId>{2, 0});
  CHECK(tokenizer.vocabulary().is_end(3));

  const auto code = [&](const char* pointer, json value) {
    json changed                         = good;
    changed[json::json_pointer(pointer)] = std::move(value);
    try {
      static_cast<void>(td::vocabulary::parse_compact_vocabulary(changed.dump()));
    } catch (const td::Error& error) {
      CHECK_FALSE(error.where().empty());
      return std::string(td::name(error.code()));
    }
    return std::string("accepted");
  };
  CHECK(code("/tokens_b64/1", "Y!==") == "malformed_vocabulary");
  CHECK(code("/tokens_b64/1", 3) == "malformed_vocabulary");
  CHECK(code("/token_types/2", 7) == "malformed_vocabulary");
  CHECK(code("/token_types", json::array({1})) == "malformed_vocabulary");
  CHECK(code("/merges/0", "a c") == "malformed_vocabulary");
  CHECK(code("/merges/0", "ab") == "malformed_vocabulary");
  CHECK(code("/type", "unigram") == "malformed_vocabulary");
  CHECK(code("/eos_id", -1) == "malformed_vocabulary");
  CHECK(code("/eos_id", 9) == "malformed_vocabulary");
  CHECK(code("/eos_id", 1e300) == "malformed_vocabulary");
  CHECK(code("/eos_id", 3.5) == "malformed_vocabulary");
  CHECK(code("/model_vocab_size", -1) == "malformed_vocabulary");
  CHECK(code("/pre_tokenizer", {{"regex", {"("}}}) == "malformed_pattern");
  CHECK_THROWS_AS(td::vocabulary::parse_compact_vocabulary("{"), td::Error);
  CHECK_THROWS_AS(td::vocabulary::parse_compact_vocabulary(R"({"type": 1e999})"), td::Error);
}

TEST_CASE("parse_compact_vocabulary errors name the place and the requirement") {
  const json good{{"type", "bpe-bytelevel"},
                  {"tokens_b64", {"YQ==", "Yg==", "YWI=", "PGU+"}},
                  {"token_types", {1, 1, 1, 3}},
                  {"merges", {"a b"}},
                  {"eos_id", 3}};
  const auto text = [&](const char* pointer, json value) {
    json changed                         = good;
    changed[json::json_pointer(pointer)] = std::move(value);
    try {
      static_cast<void>(td::vocabulary::parse_compact_vocabulary(changed.dump()));
    } catch (const td::Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(text("/tokens_b64", 3) == "#/tokens_b64: must be an array");
  CHECK(text("/pre_tokenizer", 3) == "#/pre_tokenizer: must be an object");
  CHECK(text("/eos_ie", 3) == "#/eos_ie: must not be there: this form has no such member");
  CHECK(text("/eos_id", 3.5) == "#/eos_id: must be a whole number");
  CHECK(text("/n_tokens", -4) == "#/n_tokens: must be a whole number, 0 or more");
  CHECK(text("/merges", 3) == "#/merges: must be there, and of its type");
  CHECK(text("/token_types", json::array({1})) ==
        "#/token_types: 1 types: must be as long as tokens_b64, 4");
  CHECK(text("/n_tokens", 5) == "#/n_tokens: 5: must be the number of tokens, 4");
  CHECK(text("/tokens_b64/1", 3) ==
        "#/tokens_b64/1: must be a string, and its type a whole number");
  CHECK(text("/tokens_b64/1", "Y!==") == "#/tokens_b64/1: must be base64");
  CHECK(text("/token_types/2", 7) == "#/tokens_b64/2: type 7: must be from 1 to 6");
  CHECK(text("/tokens_b64/1", "YQ==") == "#/tokens_b64/1: must write other bytes than token 0");
  CHECK(text("/eos_id", 9) == "#/eos_id: 9: must be a token's id, below 4");
  CHECK(text("/model_vocab_size", 1'000'000) ==
        "#/model_vocab_size: 1000000: must be at most 65536 more than twice the tokens, 4");
  CHECK(text("/type", "unigram") == "#/type: \"unigram\": must be bpe-bytelevel or spm-bpe");
  CHECK(text("/merges/0", "ab") ==
        "merge 0: must be two texts in the byte alphabet with a space between them");
  CHECK_THROWS_WITH(td::vocabulary::parse_compact_vocabulary("{"),
                    "byte 1: is not JSON: expected a string");
  CHECK_THROWS_WITH(td::vocabulary::parse_compact_vocabulary(R"({"type": 1e999})"),
                    "byte 9: is not JSON: the number is too large");
}

TEST_CASE("parse_compact_vocabulary of altered text throws only Error") {
  const std::string good = json{
      {"type", "bpe-bytelevel"},
      {"tokens_b64", {"YQ==", "Yg==", "YWI=", "PGU+"}},
      {"token_types", {1, 1, 1, 3}},
      {"merges", {"a b"}},
      {"pre_tokenizer", {{"regex", {"a+|b"}}}},
      {"eos_id", 3}}.dump();
  std::uint64_t seed = 11;
  const auto draw    = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed >> 33) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    if (round % 2 == 0) text.resize(draw(text.size()));
    if (!text.empty()) text[draw(text.size())] = static_cast<char>(draw(256));
    INFO("round " << round << ": " << text);
    try {
      const td::Tokenizer tokenizer = td::vocabulary::parse_compact_vocabulary(text);
      static_cast<void>(tokenizer.encode("a"));
    } catch (const td::Error&) {
      // the only exception that is allowed
    }
  }
}

TEST_CASE("parse_compact_vocabulary compares redundant members and bounds sizes") {
  const json good{{"type", "bpe-bytelevel"},
                  {"n_tokens", 4},
                  {"tokens_b64", {"YQ==", "Yg==", "YWI=", "PGU+"}},
                  {"token_types", {1, 1, 1, 3}},
                  {"merges", {"a b"}},
                  {"eos_id", 3}};
  const auto message = [&](const char* key, const json& value) {
    json file = good;
    file[key] = value;
    try {
      static_cast<void>(td::vocabulary::parse_compact_vocabulary(file.dump()));
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::malformed_vocabulary);
      return std::string(error.where());
    }
    return std::string("accepted");
  };
  CHECK(message("n_tokens", 4) == "accepted");
  for (const json& wrong : {json(5), json(3), json(-4), json("4"), json(1e9), json(4.0)}) {
    CHECK(message("n_tokens", wrong) == "#/n_tokens");
  }
  CHECK(message("model_vocab_size", 64) == "accepted");
  CHECK(message("model_vocab_size", 1'000'000'000) == "#/model_vocab_size");
  CHECK(message("eos_ie", 3) == "#/eos_ie");
  CHECK(message("tokens_b64", {"YQ==", "YQ==", "YWI=", "PGU+"}) == "#/tokens_b64/1");
  for (const char* wrong : {"YWJ=", "YWI", "Y=WI", "YWI=YWI=", "Y===", "====", "YWI*"}) {
    INFO(wrong);
    CHECK(message("tokens_b64", {"YQ==", "Yg==", wrong, "PGU+"}) == "#/tokens_b64/2");
  }
}

TEST_CASE("parse_compact_vocabulary rejects each flipped bit in the tokens of GPT-2") {
  TOOLDECODE_REQUIRE_SHARED(file, "vocab/gpt-2.json.gz");
  const std::string good = td::test::read_text(file);
  std::uint64_t seed     = 3;
  INFO("seed " << seed);
  const std::size_t first = good.find("\"tokens_b64\""), last = good.find(']', first);
  REQUIRE(last != std::string::npos);
  std::size_t refused           = 0;
  constexpr std::uint32_t count = td::test::cases(12);
  for (std::uint32_t i = 0; i < count; ++i) {
    seed             = seed * 6364136223846793005U + 1442695040888963407U;
    std::string text = good;
    const auto at = first + 20'000 + static_cast<std::size_t>(seed >> 33) % (last - first - 20'000);
    text[at]      = static_cast<char>(text[at] ^ (1 << (seed >> 20) % 7));
    try {
      static_cast<void>(td::vocabulary::parse_compact_vocabulary(text));
    } catch (const td::Error&) {
      ++refused;
    }
  }
  CHECK(refused == count);
}
