// Grammar samplers against llama.cpp's own, over its vocabularies.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/adapters/llama_cpp_grammar.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>

#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/llama_cpp_vocabularies.hpp>

namespace td = tooldecode;
using td::llama_cpp::GrammarTriggers;
using td::test::LlamaCppSampler;

namespace {

constexpr const char* json = R"(
root   ::= "<tool_call>\n" object "\n</tool_call>"
object ::= "{" ws ( pair ( "," ws pair )* )? "}"
pair   ::= string ":" ws value
value  ::= string | "-"? [0-9]{1,6} | "true" | object | list
list   ::= "[" ( value ( ", " value )* )? "]"
string ::= "\"" [^"\\\x00-\x1F]{0,12} "\""
ws     ::= " "?
)";
constexpr const char* sums =
    "root ::= sum\nsum ::= item (\" + \" item)*\nitem ::= [a-z]+ | "
    "\"(\" sum \")\" | [\\u00e0-\\u00ff]{2}\n";
constexpr const char* tags = "root ::= \"<|im_start|>\" [^<]* \"<|im_end|>\" .\n";

struct Pair {
  LlamaCppSampler ours, theirs;
};

Pair make(const td::llama_cpp::GrammarCache& cache, const llama_vocab* vocab, const char* grammar,
          const std::optional<GrammarTriggers>& triggers) {
  Pair pair{
      LlamaCppSampler(td::llama_cpp::make_grammar_sampler(cache.get(grammar, "root"), triggers)),
      nullptr};
  if (triggers) {
    std::vector<const char*> patterns;
    for (const std::string& pattern : triggers->patterns) patterns.push_back(pattern.c_str());
    pair.theirs.reset(llama_sampler_init_grammar_lazy_patterns(
        vocab, grammar, "root", patterns.data(), patterns.size(), triggers->tokens.data(),
        triggers->tokens.size()));
  } else {
    pair.theirs.reset(llama_sampler_init_grammar(vocab, grammar, "root"));
  }
  REQUIRE(pair.theirs != nullptr);
  REQUIRE(std::string_view(llama_sampler_name(pair.theirs.get())) == "grammar");
  return pair;
}

std::vector<bool> allowed_by(const LlamaCppSampler& sampler, std::size_t count) {
  std::vector<llama_token_data> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = {static_cast<llama_token>(i), 1, 0};
  llama_token_data_array candidates{data.data(), count, -1, false};
  llama_sampler_apply(sampler.get(), &candidates);
  std::vector<bool> allowed(count);
  for (std::size_t i = 0; i < candidates.size; ++i) {
    allowed[static_cast<std::size_t>(data[i].id)] = std::isfinite(data[i].logit);
  }
  return allowed;
}

bool allows(const LlamaCppSampler& sampler, llama_token token) {
  llama_token_data data{token, 1, 0};
  llama_token_data_array candidates{&data, 1, -1, false};
  llama_sampler_apply(sampler.get(), &candidates);
  return std::isfinite(data.logit);
}

// A token whose bytes cannot be a part of UTF-8 after the text, as F5 or F0 80: llama.cpp allows it
// where it expects any character.
bool breaks_utf8(std::string text, std::string_view bytes) {
  text += bytes;
  for (const char* rest : {"", "\x80", "\x80\x80", "\x80\x80\x80", "\xA0\x80", "\x90\x80\x80"}) {
    if (td::text::decode_utf8(text + rest).find(U'\uFFFD') == std::u32string::npos) return false;
  }
  return true;
}

const llama_vocab* vocabulary_of(td::test::LlamaCppVocabulary& model, const char* name) {
  const auto folder = td::test::llama_cpp_models();
  if (!folder) return nullptr;
  model =
      td::test::read_llama_cpp_vocabulary(*folder / ("ggml-vocab-" + std::string(name) + ".gguf"));
  REQUIRE(model != nullptr);
  return llama_model_get_vocab(model.get());
}

}  // namespace

TEST_CASE("make_grammar_sampler leaves the tokens that llama.cpp's own leaves, lazy or not") {
  std::size_t masks = 0, ended = 0, begun = 0;
  for (const char* name : {"qwen2", "llama-spm", "gpt-2"}) {
    td::test::LlamaCppVocabulary model;
    const llama_vocab* vocab = vocabulary_of(model, name);
    if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
    const auto count = static_cast<std::size_t>(llama_vocab_n_tokens(vocab));
    const td::llama_cpp::GrammarCache cache{vocab};
    const td::Vocabulary texts = td::llama_cpp::make_text_vocabulary(vocab);
    for (unsigned seed = 0; seed < 12; ++seed) {
      INFO(name << ", seed " << seed);
      std::mt19937 random{seed};
      const char* const grammar = seed % 3 == 0 ? json : seed % 3 == 1 ? sums : tags;
      std::optional<GrammarTriggers> triggers;
      if (seed % 2 == 1) {
        triggers = GrammarTriggers{{"x(<tool_call>)", "^[^z]*z([a-z(].*)$", "(<\\|im_start)"}, {}};
      }
      Pair pair          = make(cache, vocab, grammar, triggers);
      bool waits         = triggers.has_value();
      std::string before = waits ? "so zx" : "";
      std::string text;
      for (std::size_t length = 0; length < 30; ++length) {
        const auto ours = allowed_by(pair.ours, count), theirs = allowed_by(pair.theirs, count);
        ++masks;
        std::vector<llama_token> both;
        for (std::size_t i = 0; i < count; ++i) {
          const auto token = static_cast<llama_token>(i);
          if (ours[i] && theirs[i]) both.push_back(token);
          if (ours[i] == theirs[i]) continue;
          INFO("token " << i << " '" << texts.bytes(token) << "' after '" << text << "'");
          REQUIRE_FALSE(ours[i]);
          REQUIRE(breaks_utf8(text, texts.bytes(token)));
        }
        REQUIRE(!both.empty());
        const auto some = static_cast<llama_token>(random() % count);
        REQUIRE(allows(pair.ours, some) == ours[static_cast<std::size_t>(some)]);
        llama_token next = both[random() % both.size()];
        if (waits && !before.empty()) {  // spells a trigger, which most texts do not
          for (const llama_token token : both) {
            if (texts.is_text(token) && texts.bytes(token) == before.substr(0, 1)) next = token;
          }
          before.erase(0, 1);
        } else if (waits) {
          for (const llama_token token : both) {
            const char* const starts = grammar == json ? "<tool" : grammar == sums ? "b" : "<|im";
            if (texts.is_text(token) && std::string(starts).starts_with(texts.bytes(token))) {
              next = token;
            }
          }
        } else if (length % 4 == 3) {  // a copy goes on in its place
          pair.ours.reset(llama_sampler_clone(pair.ours.get()));
          pair.theirs.reset(llama_sampler_clone(pair.theirs.get()));
        }
        if (llama_vocab_is_eog(vocab, next)) {
          ended += !waits;
          break;
        }
        std::string failed_ours, failed_theirs;
        const auto take = [&](const LlamaCppSampler& sampler, std::string& failed) {
          try {
            llama_sampler_accept(sampler.get(), next);
          } catch (const std::runtime_error& error) {
            failed = error.what();
          }
        };
        take(pair.ours, failed_ours);
        take(pair.theirs, failed_theirs);
        INFO("'" << failed_ours << "', '" << failed_theirs << "'");
        REQUIRE(failed_ours.empty() == failed_theirs.empty());
        if (!failed_ours.empty()) break;
        text += texts.bytes(next);
        const auto now = allowed_by(pair.ours, count);
        if (waits &&
            std::count(now.begin(), now.end(), true) < static_cast<std::ptrdiff_t>(count)) {
          waits = false;
          text.clear();
          ++begun;
        }
      }
      llama_sampler_reset(pair.ours.get());
      llama_sampler_reset(pair.theirs.get());
      REQUIRE(allowed_by(pair.ours, count) == allowed_by(pair.theirs, count));
    }
  }
  CHECK(masks > 400);
  CHECK(ended > 2);
  CHECK(begun > 5);
}

TEST_CASE("make_grammar_sampler reads an end token before the grammar begins as llama.cpp does") {
  td::test::LlamaCppVocabulary model;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  const auto count      = static_cast<std::size_t>(llama_vocab_n_tokens(vocab));
  const llama_token end = llama_vocab_eos(vocab);
  REQUIRE(llama_vocab_is_eog(vocab, end));
  const td::llama_cpp::GrammarCache cache{vocab};
  const auto token = [&](const char* bytes) {
    return *td::llama_cpp::make_text_vocabulary(vocab).find(bytes);
  };
  struct Case {
    const char* grammar;
    GrammarTriggers triggers;
    std::vector<llama_token> tokens;
  };
  // The end token is part of the text that a pattern is searched in, or is the trigger itself.
  const Case cases[] = {
      {"root ::= \"b\" [a-c]+ \"!\"",
       {{"a<\\|endoftext\\|>(b)"}, {}},
       {token("a"), end, token("b")}},
      {"root ::= \"<|endoftext|>\" \"b\" \"c\"", {{"(<\\|endoftext\\|>)"}, {}}, {token("a"), end}},
      {"root ::= \"<|endoftext|>\" \"b\" \"c\"", {{}, {end}}, {token("a"), end, token("b")}},
  };
  for (const Case& one : cases) {
    const Pair pair = make(cache, vocab, one.grammar, one.triggers);
    for (const llama_token next : one.tokens) {
      llama_sampler_accept(pair.ours.get(), next);
      llama_sampler_accept(pair.theirs.get(), next);
      const bool are_same = allowed_by(pair.ours, count) == allowed_by(pair.theirs, count);
      CHECK(are_same);
    }
    const auto left = allowed_by(pair.ours, count);
    CHECK(std::count(left.begin(), left.end(), true) < 2000);
  }
}

TEST_CASE("make_grammar_sampler throws for a token that the grammar cannot read, or an early end") {
  td::test::LlamaCppVocabulary model;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  const td::llama_cpp::GrammarCache cache{vocab};
  const LlamaCppSampler sampler(td::llama_cpp::make_grammar_sampler(
      cache.get("root ::= \"a\" \"b\"?", "root"), std::nullopt));
  const td::Vocabulary texts = td::llama_cpp::make_text_vocabulary(vocab);
  std::optional<llama_token> a, c;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto token = static_cast<llama_token>(i);
    if (texts.bytes(token) == "a") a = token;
    if (texts.bytes(token) == "c") c = token;
  }
  const llama_token end = llama_vocab_eos(vocab);
  CHECK_THROWS_AS(llama_sampler_accept(sampler.get(), end), std::runtime_error);
  CHECK_THROWS_AS(llama_sampler_accept(sampler.get(), *c), std::runtime_error);
  llama_sampler_accept(sampler.get(), *a);
  CHECK_THROWS_AS(llama_sampler_accept(sampler.get(), *c), std::runtime_error);
  llama_sampler_accept(sampler.get(), end);
  CHECK(allows(sampler, end));
}

TEST_CASE("GrammarCache keeps the last constraints, and refuses what it cannot tell from text") {
  td::test::LlamaCppVocabulary model, another;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  const td::llama_cpp::GrammarCache cache{vocab, 2};
  const auto first = cache.get("root ::= \"a\"\nother ::= \"b\"", "root");
  CHECK(cache.get("root ::= \"a\"\nother ::= \"b\"", "root") == first);
  CHECK(cache.get("root ::= \"a\"\nother ::= \"b\"", "other") != first);
  CHECK(cache.get("root ::= \"a\"\nother ::= \"b\"", "root") == first);
  (void)cache.get("root ::= \"c\"", "root");
  (void)cache.get("root ::= \"d\"", "root");
  CHECK(cache.get("root ::= \"a\"\nother ::= \"b\"", "root") != first);
  CHECK(cache.is_of(vocab));
  CHECK_FALSE(cache.is_of(vocabulary_of(another, "qwen2")));
  CHECK_THROWS_AS(cache.get("root ::= <[5]>", "root"), td::Error);
  CHECK_THROWS_AS(cache.get("root ::= \"a\"", "start"), td::Error);
  CHECK_THROWS_AS(cache.get("root ::= (", "root"), td::Error);
  CHECK_THROWS_AS(td::llama_cpp::make_grammar_sampler(first, GrammarTriggers{{"("}, {}}),
                  td::Error);
}

TEST_CASE("GrammarCache starts new memory for a grammar that has grown past the budget") {
  td::test::LlamaCppVocabulary model;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  constexpr std::size_t budget = 24 * 1024;
  const td::llama_cpp::GrammarCache cache{vocab, 2, budget};
  const std::string_view nested = "root ::= (\"(\" root \")\" | [a-z] | \" \")+";
  std::mt19937 random{3};
  const auto count = static_cast<td::TokenId>(llama_vocab_n_tokens(vocab));
  const auto first = cache.get(nested, "root");
  std::size_t most = 0, renewed = 0;
  auto last = first;
  for (int text = 0; text < 300; ++text) {
    const auto constraint = cache.get(nested, "root");
    renewed += constraint != last;
    last = constraint;
    most = std::max(most, constraint->bytes());
    std::vector<std::uint32_t> words((constraint->vocabulary_size() + 31) / 32);
    auto state = constraint->initial();
    for (int step = 0; step < 12; ++step) {
      constraint->fill_mask(state, words);
      for (int tries = 0; tries < 5000; ++tries) {
        const auto token = static_cast<td::TokenId>(random() % static_cast<unsigned>(count));
        if (!td::ConstMaskView(words).contains(token)) continue;
        if (const auto next = constraint->advance(state, token)) state = *next;
        break;
      }
    }
  }
  CAPTURE(renewed, most);
  CHECK(renewed > 1);
  CHECK(most < 2 * budget);
}

TEST_CASE("make_grammar_sampler's reset gives up memory that has grown past the budget") {
  td::test::LlamaCppVocabulary model;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  const td::llama_cpp::GrammarCache cache{vocab, 2, 1};
  auto constraint             = cache.get("root ::= \"a\" [a-z]* \"!\"", "root");
  const td::Vocabulary tokens = constraint->vocabulary();
  const std::weak_ptr<const td::Constraint> first = constraint;
  const LlamaCppSampler sampler(
      td::llama_cpp::make_grammar_sampler(std::move(constraint), std::nullopt));
  (void)cache.get("root ::= \"a\"", "root");
  (void)cache.get("root ::= \"b\"", "root");  // of the two that are kept, none is the sampler's
  CHECK_FALSE(first.expired());
  for (int text = 0; text < 3; ++text) {
    CHECK(allows(sampler, *tokens.find("a")));
    CHECK_FALSE(allows(sampler, *tokens.find("b")));
    llama_sampler_accept(sampler.get(), *tokens.find("a"));
    CHECK(allows(sampler, *tokens.find("b")));
    llama_sampler_reset(sampler.get());
    CHECK(first.expired());
  }
}

TEST_CASE("make_grammar_sampler leaves only end tokens once a mask passes its limit") {
  td::test::LlamaCppVocabulary model;
  const llama_vocab* vocab = vocabulary_of(model, "gpt-2");
  if (vocab == nullptr) return td::test::report_skipped("llama.cpp's folder models");
  const auto count = static_cast<std::size_t>(llama_vocab_n_tokens(vocab));
  const td::llama_cpp::GrammarCache cache{vocab, 2, std::size_t{1} << 20, {.steps = 20'000}};
  const auto ends = [&](const LlamaCppSampler& sampler) {
    const auto allowed = allowed_by(sampler, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (allowed[i] != llama_vocab_is_eog(vocab, static_cast<llama_token>(i))) return false;
    }
    return true;
  };
  const auto constraint = cache.get(
      "root ::= s\ns ::= \"a\" | [^\"] s | [^\"] s s | [^\"] s s s | [^\"] s s s s", "root");
  const LlamaCppSampler sampler(td::llama_cpp::make_grammar_sampler(constraint, std::nullopt));
  CHECK(ends(sampler));
  const auto token = constraint->vocabulary().end_tokens()[0];
  llama_sampler_accept(sampler.get(), token);
  llama_sampler_accept(sampler.get(), 0);  // nothing is refused any more
  CHECK(ends(sampler));
  const LlamaCppSampler small(
      td::llama_cpp::make_grammar_sampler(cache.get("root ::= \"a\"", "root"), std::nullopt));
  CHECK_FALSE(ends(small));
}

TEST_CASE("without_text_before_calls drops the text before a required call and nothing else") {
  using td::llama_cpp::without_text_before_calls;
  const auto changed = [](const std::string& root) {
    const std::string before = "char ::= [a-z]\n", after = "\nuntil-7 ::= | [^<] until-7\n";
    const std::string whole = without_text_before_calls(before + root + after);
    REQUIRE(whole.starts_with(before));
    REQUIRE(whole.ends_with(after));
    return whole.substr(before.size(), whole.size() - before.size() - after.size());
  };
  CHECK(changed("root ::= \"<|im_start|>assistant\\n\" space until-7? tool-calls") ==
        "root ::= \"<|im_start|>assistant\\n\" space tool-calls");
  CHECK(changed("root ::= (\"<think>\" space until-5 (\"</think>\" | ))? space until-7 space "
                "tool-call-root") ==
        "root ::= (\"<think>\" space until-5 (\"</think>\" | ))? space space tool-call-root");
  for (const std::string root :
       {"root ::= tool-call | tool-calls", "root ::= \"a\" until-7",
        "root ::= \"a\" until-7? (tool-calls)", "root ::= \"a\" until-7? tool-calls space",
        "root ::= \"a\" until-x? tool-calls", "root ::= \"a\" until-7? json-value",
        "roots ::= \"a\" until-7? tool-calls", "root ::= \" until-7? tool-call\""}) {
    INFO(root);
    CHECK(changed(root) == root);
  }
  CHECK(without_text_before_calls("root ::= \"a\" until-7? tool-calls") ==
        "root ::= \"a\" tool-calls");
  CHECK(changed("root ::= until-7? tool-calls") == "root ::= tool-calls");
  CHECK(without_text_before_calls("").empty());
}
