#include <algorithm>
#include <cstddef>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using namespace tooldecode::vocabulary;
using Json   = tooldecode::JsonValue;
using Tokens = std::vector<TokenId>;

namespace {

const std::string qwen2_pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

bool begins_with(const Tokens& tokens, const Tokens& first) {
  return tokens.size() >= first.size() && std::equal(first.begin(), first.end(), tokens.begin());
}

// A tokenizer of random merges over few letters; the first token ends.
Tokenizer random_tokenizer(std::mt19937& random, const std::string& letters, bool splits) {
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  std::set<std::string> known;
  const auto add = [&](const std::string& text) {
    if (known.insert(text).second) entries.push_back({text});
  };
  for (int b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)));
  std::vector<std::string> pieces;
  for (const char letter : letters) pieces.emplace_back(1, letter);
  std::vector<BytePairEncoding::Merge> merges;
  for (int i = 0; i < 30; ++i) {
    const std::string left  = pieces[random() % pieces.size()],
                      right = pieces[random() % pieces.size()];
    if (left.size() + right.size() > 5 || known.count(left + right) != 0) continue;
    add(left + right);
    pieces.push_back(left + right);
    merges.emplace_back(left, right);
  }
  const Vocabulary vocabulary(entries, {.end_tokens = {0}});
  return {vocabulary, BytePairEncoding(vocabulary, merges, {}),
          splits ? PreTokenizer({qwen2_pattern}) : PreTokenizer()};
}

std::string random_text(std::mt19937& random, const std::string& letters, std::size_t length) {
  std::string text;
  while (text.size() < length) text += letters[random() % letters.size()];
  return text;
}

}  // namespace

TEST_CASE(
    "ForcedTokens over random tokenizers gives only tokens that every continuation begins with") {
  std::size_t found = 0, possible = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const std::string letters = seed % 3 == 0 ? "ab" : seed % 3 == 1 ? "ab \"" : "a \n,\"1'sé";
    const Tokenizer tokenizer = random_tokenizer(random, letters, seed % 2 == 1);
    // Texts that have beginnings in common.
    std::vector<std::string> texts;
    for (int i = 0; i < 6; ++i) {
      std::string begin;
      if (!texts.empty()) begin = texts[random() % texts.size()];
      begin.resize(random() % (begin.size() + 1));
      const std::string text = begin + random_text(random, letters, 1 + random() % 8);
      if (is_utf8(text)) texts.push_back(text);
    }
    if (texts.empty()) continue;
    std::vector<Tokens> written;
    for (const std::string& text : texts) written.push_back(tokenizer.encode(text));
    const VocabularyIndex cache(tokenizer.vocabulary());
    const FastForwardTokens fast_forward(
        cache, [&](std::string_view text) { return tokenizer.encode(text); });
    const Constraint constraint(cache, Grammar::choice(texts));
    for (const Tokens& whole : written) {
      auto state = constraint.initial();
      for (std::size_t n = 0; n < whole.size(); ++n) {
        const Tokens before(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
        const Tokens got = fast_forward(constraint, state, tokenizer.decode(before));
        Tokens common(whole.begin() + static_cast<std::ptrdiff_t>(n), whole.end());
        for (const Tokens& other : written) {
          if (!begins_with(other, before)) continue;
          const auto rest = other.begin() + static_cast<std::ptrdiff_t>(n);
          common.erase(std::mismatch(common.begin(), common.end(), rest, other.end()).first,
                       common.end());
        }
        INFO("seed " << seed << ", '" << tokenizer.decode(whole) << "' after token " << n);
        if (!begins_with(common, got)) FAIL("more than all have in common");
        found += got.size();
        possible += common.size();
        state = *constraint.advance(state, whole[n]);
      }
    }
  }
  INFO(found << " of " << possible);
  CHECK(found * 10 > possible * 7);
}

TEST_CASE("ForcedTokens gives a closing quote only where no token extends past it") {
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  for (int b = 0; b < 256; ++b) entries.push_back({std::string(1, static_cast<char>(b))});
  entries.push_back({"\","});
  entries.push_back({"<call>", TokenType::control});
  const Vocabulary vocabulary(entries, {.end_tokens = {0}});
  const BytePairEncoding pairs(vocabulary, {{"\"", ","}}, {});
  const Tokenizer tokenizer(vocabulary, pairs, {});
  const FastForwardTokens fast_forward(vocabulary, [&](std::string_view text) {
    return tokenizer.encode(text, {.parse_special = true});
  });
  const auto after = [&](const std::vector<std::string>& texts, std::string_view before) {
    const Constraint constraint(vocabulary, Grammar::choice(texts));
    return tokenizer.decode(
        fast_forward(constraint, *constraint.advance_bytes(constraint.initial(), before), before));
  };
  CHECK(after({"\"a\" b", "\"a\" c"}, "\"a") == "\"");
  CHECK(after({"\"a\" b", "\"a\", c"}, "\"a").empty());
  CHECK(after({"\"a\", b", "\"a\", c"}, "\"a") == "\",");
  const ToolCallFSM calls{vocabulary,
                          ToolSet::parse(R"([{"name": "f", "parameters": {}}])"),
                          JsonCall{"<call>", "<call>", ""},
                          {.choice = ToolChoice::named, .name = "f", .whitespace = 0}};
  const auto opened = calls.advance_bytes(calls.initial(), "<call>");
  REQUIRE(opened);
  const TokenId mark = *vocabulary.find_special("<call>");
  const Tokens all   = fast_forward(calls, *opened, "<call>");
  CHECK(tokenizer.decode(all) == R"({"name": "f", "arguments": {}})");
  CHECK(all.back() == mark);
  const auto closed = calls.advance_bytes(*opened, "{\"name\": \"f\", \"arguments\": {}");
  REQUIRE(closed);
  CHECK(fast_forward(calls, *closed, "<call>{}") ==
        Tokens{'}' + 1, *vocabulary.find_special("<call>")});
}

TEST_CASE("ForcedTokens over BFCL's calls gives the tokens that the tokenizer writes",
          "[published]") {
  TOOLDECODE_REQUIRE_SHARED(bfcl, "bfcl/multiple.jsonl");
  TOOLDECODE_REQUIRE_SHARED(vocabularies, "vocab");
  const auto closed = [](auto&& self, Json schema) -> Json {
    if (!schema.is_object()) return schema;
    if (schema.contains("items")) schema["items"] = self(self, schema["items"]);
    if (!schema.contains("properties")) return schema;
    for (auto& [key, value] : schema["properties"].items()) value = self(self, value);
    schema["additionalProperties"] = false;
    return schema;
  };
  const auto rows = test::read_jsonl(bfcl);
  for (const char* name : {"qwen2", "cl100k_base"}) {
    const Tokenizer tokenizer =
        parse_tokenizer(test::read_text(vocabularies / (std::string(name) + ".json.gz")), name);
    const VocabularyIndex cache(tokenizer.vocabulary());
    const FastForwardTokens fast_forward(
        cache, [&](std::string_view text) { return tokenizer.encode(text); });
    for (const std::uint32_t whitespace : {0U, 40U}) {
      std::size_t positions = 0, known = 0, calls = 0;
      for (std::size_t i = 0; i < rows.size(); i += 2) {
        const Json row = tooldecode::text::parse_json(rows[i].text());
        if (!row["call_json"].is_object()) continue;
        Json schema;
        for (const Json& function : row["functions"]) {
          if (function["name"] == row["call_json"]["name"]) schema = function["parameters"];
        }
        schema         = closed(closed, schema);
        Json arguments = Json::object();
        for (const auto& [key, value] : schema["properties"].items()) {
          if (row["call_json"]["arguments"].contains(key)) {
            arguments[key] = row["call_json"]["arguments"][key];
          }
        }
        const Constraint constraint(
            cache,
            Grammar::json_schema(schema, {.documented_order = true, .whitespace = whitespace}));
        const std::string text = write_json(arguments);
        const auto end         = constraint.advance_bytes(constraint.initial(), text);
        if (!end || !constraint.is_accepting(*end)) continue;
        const Tokens whole = tokenizer.encode(text);
        auto state         = constraint.initial();
        ++calls;
        for (std::size_t n = 0; n < whole.size(); ++n) {
          const Tokens before(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
          const Tokens got = fast_forward(constraint, state, tokenizer.decode(before));
          const Tokens rest(whole.begin() + static_cast<std::ptrdiff_t>(n), whole.end());
          state = *constraint.advance(state, whole[n]);
          INFO(tokenizer.decode(whole)
               << ", after " << tokenizer.decode(before) << ": " << tokenizer.decode(got));
          if (!begins_with(rest, got)) FAIL("not canonical");
          ++positions;
          known += got.empty() ? 0 : 1;
        }
      }
      std::cout << name << ", " << (whitespace == 0 ? "fixed" : "flexible")
                << " white space: " << known << " of " << positions << " tokens of " << calls
                << " calls are forced\n";
      CHECK(known * 100 > positions * (whitespace == 0 ? 44 : 19));
    }
  }
}

TEST_CASE("ForcedTokens under a token budget leaves room for the completion") {
  std::size_t same = 0, too_many = 0, by_budget = 0, answers = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Tokenizer tokenizer = random_tokenizer(random, "abc", seed % 2 == 0);
    const VocabularyIndex cache(tokenizer.vocabulary());
    std::vector<std::string> texts;
    for (int i = 0; i < 4; ++i) {
      std::string text = i == 0 ? "ab" : texts[0].substr(0, 1 + random() % 8);
      for (int j = 0; j < 6; ++j) text += "abc"[random() % 3];
      texts.push_back(text);
    }
    const Constraint choice(cache, Grammar::choice(texts));
    const FastForwardTokens fast_forward(
        cache, [&](std::string_view text) { return tokenizer.encode(text); });
    const std::size_t least = *Completions{choice}.shortest(choice.initial());
    for (std::size_t budget = least; budget < least + 6; ++budget) {
      INFO("budget " << budget);
      Completions completions{choice};
      std::string written;
      auto state            = choice.initial();
      std::size_t remaining = budget;
      while (!choice.is_finished(state)) {
        REQUIRE(remaining > 0);
        const Tokens plain = fast_forward(choice, state, written);
        const Tokens put   = fast_forward(choice, state, written, completions, remaining);
        REQUIRE(put.size() < remaining);
        const auto differs = std::mismatch(plain.begin(), plain.end(), put.begin(), put.end());
        too_many += differs.first != plain.end();
        by_budget += differs.second != put.end();
        same += put == plain;
        for (const TokenId token : put) {
          state = *choice.advance(state, token);
          written += tokenizer.vocabulary().bytes(token);
          --remaining;
        }
        TokenMask mask(choice.vocabulary_size());
        choice.fill_mask(state, mask.words());
        completions.narrow(state, remaining, mask.words());
        Tokens left;
        mask.for_each([&](TokenId token) { left.push_back(token); });
        REQUIRE_FALSE(left.empty());
        const TokenId next = left[random() % left.size()];
        state              = *choice.advance(state, next);
        written += tokenizer.vocabulary().bytes(next);
        --remaining;
      }
      CHECK(std::count(texts.begin(), texts.end(), written) > 0);
      ++answers;
    }
    Completions completions{choice};
    CHECK(fast_forward(choice, choice.initial(), "", completions, 100) ==
          fast_forward(choice, choice.initial(), ""));
    CHECK(fast_forward(choice, choice.initial(), "", completions, least - 1).empty());
  }
  std::cout << answers << " answers: forced tokens as without a budget " << same
            << " times, fewer for want of room " << too_many << ", more for it " << by_budget
            << '\n';
  CHECK(too_many > 20);
  CHECK(by_budget > 20);
}
