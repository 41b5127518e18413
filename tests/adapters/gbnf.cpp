// Masks of a grammar text against those of llama.cpp's grammar sampler, over its vocabularies.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <tooldecode/adapters/llama_cpp_vocabulary.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/code_points.hpp>

#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/llama_cpp_vocabularies.hpp>

namespace td = tooldecode;

namespace {

// A call with strings, numbers, white space and a choice, as llama.cpp makes grammars of schemas.
constexpr const char* grammar = R"(
root   ::= "{" ws "\"name\":" ws name "," ws "\"arguments\":" ws object "}"
name   ::= "\"get_weather\"" | "\"get_time\"" | "\"über\""
object ::= "{" ws ( pair ( "," ws pair )* )? "}" ws
pair   ::= string ":" ws value
value  ::= string ws | number ws | ( "true" | "false" | "null" ) ws | object
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" ( ["\\bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""
number ::= "-"? ( [0-9] | [1-9] [0-9]{0,15} ) ( "." [0-9]+ )?
ws     ::= | " " | "\n" [ \t]{0,20}
)";
constexpr const char* texts[] = {
    "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"S\xC3\xA3o Paulo\", \"days\": -12.5, "
    "\"x\": {}}}",
    "{\"name\":\"\xC3\xBC"
    "ber\",\n  \"arguments\": {\"a\\u00e9\\n\": true, \"\xF0\x9F\x98\x80\xE4\xBD\xA0\": null}}"};

// The differences, by their cause.
struct Differences {
  std::size_t masks = 0, tokens = 0;
  std::size_t of_control =
      0;                    // theirs: the name of a token that writes nothing, taken for its text
  std::size_t no_text = 0;  // theirs: with what cannot become UTF-8, as F5 or F0 80
  std::size_t others  = 0;
  std::string first;
};

bool begins_utf8(const std::string& text) {
  return std::ranges::any_of(
      std::vector<std::string>{"", "\x80", "\x80\x80", "\x80\x80\x80", "\xA0\x80", "\x90\x80\x80"},
      [&](const std::string& rest) {
        return td::text::decode_utf8(text + rest).find(U'\uFFFD') == std::u32string::npos;
      });
}

// Compares both masks after each token of a text.
void compare(const llama_vocab* vocab, const td::Vocabulary& vocabulary,
             const td::Constraint& constraint, const std::string& text, Differences& all) {
  const td::test::LlamaCppSampler sampler(llama_sampler_init_grammar(vocab, grammar, "root"));
  REQUIRE(sampler != nullptr);
  auto state = constraint.initial();
  td::TokenMask mask(vocabulary.size());
  std::vector<llama_token_data> data(vocabulary.size());
  for (std::size_t at = 0;;) {
    constraint.fill_mask(state, mask.words());
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = {static_cast<llama_token>(i), 1, 0};
    llama_token_data_array candidates{data.data(), data.size(), -1, false};
    llama_sampler_apply(sampler.get(), &candidates);
    ++all.masks;
    std::vector<bool> theirs(vocabulary.size());
    for (std::size_t i = 0; i < candidates.size; ++i)
      theirs[static_cast<std::size_t>(data[i].id)] = std::isfinite(data[i].logit);
    td::TokenId next    = -1;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto token = static_cast<td::TokenId>(i);
      const bool ours  = mask.contains(token);
      const auto bytes = vocabulary.bytes(token);
      all.tokens += ours;
      if (ours != theirs[i]) {
        const auto attributes = llama_vocab_get_attr(vocab, token);
        if (!ours && (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) != 0) {
          ++all.of_control;
        } else if (!ours && !begins_utf8(text.substr(0, at) + std::string(bytes))) {
          ++all.no_text;
        } else if (all.others++ == 0) {
          all.first = "token " + std::to_string(i) + " '" + std::string(bytes) + "' behind '" +
                      text.substr(0, at) + "' is " + (ours ? "ours" : "theirs");
        }
      }
      if (ours && theirs[i] && bytes.size() > longest &&
          text.compare(at, bytes.size(), bytes) == 0) {
        next    = token;
        longest = bytes.size();
      }
    }
    if (at == text.size() || next < 0) return;  // some vocabularies have no line breaks
    state = *constraint.advance(state, next);
    llama_sampler_accept(sampler.get(), next);
    at += longest;
  }
}

}  // namespace

TEST_CASE("Grammar::ebnf of a GBNF text has the masks of llama.cpp's grammar sampler",
          "[published]") {
  const auto folder = td::test::llama_cpp_models();
  if (!folder) return td::test::report_skipped("llama.cpp's folder models");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  REQUIRE(files.size() > 10);
  for (const auto& file : files) {
    const auto model = td::test::read_llama_cpp_vocabulary(file);
    INFO(file.filename());
    if (model == nullptr) {
      std::cerr << file.filename() << ": llama.cpp does not read it\n";
      continue;
    }
    const llama_vocab* vocab = llama_model_get_vocab(model.get());
    if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM) continue;  // writes no such text
    const auto vocabulary = td::llama_cpp::make_vocabulary(vocab);
    const td::Constraint constraint{td::VocabularyIndex{vocabulary},
                                    td::Grammar::ebnf(grammar, {.vocabulary = &vocabulary})};
    Differences all;
    for (const char* text : texts) compare(vocab, vocabulary, constraint, text, all);
    std::cout << file.filename() << ": " << all.masks << " masks with " << all.tokens
              << " tokens; llama.cpp allows " << all.of_control << " names of control tokens and "
              << all.no_text << " tokens that are no UTF-8 as well\n";
    INFO(all.first);
    CHECK(all.others == 0);
    CHECK(all.masks > 40);
  }
}
