// What a program gets that makes grammar samplers by llama.cpp's functions, with and without
// tooldecode_llama loaded before libllama: the test adapters.interpose runs the case with it.
#include <cstdlib>
#include <string>
#include <string_view>

#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/llama_cpp_vocabularies.hpp>

namespace td = tooldecode;
using td::test::LlamaCppSampler;

namespace {

bool is_loaded_first() {
  const char* const loaded = std::getenv("LD_PRELOAD");
  return loaded != nullptr &&
         std::string_view(loaded).find("tooldecode_llama") != std::string::npos;
}

}  // namespace

TEST_CASE("llama_sampler_init_grammar is tooldecode's where its library is loaded first",
          "[interpose]") {
  const auto folder = td::test::llama_cpp_models();
  if (!folder) return td::test::report_skipped("llama.cpp's folder models");
  const std::string_view expected = is_loaded_first() ? "tooldecode-grammar" : "grammar";
  const auto model   = td::test::read_llama_cpp_vocabulary(*folder / "ggml-vocab-gpt-2.gguf");
  const auto* vocab  = llama_model_get_vocab(model.get());
  const auto name_of = [](const LlamaCppSampler& sampler) -> std::string_view {
    return sampler == nullptr ? "null" : llama_sampler_name(sampler.get());
  };
  const LlamaCppSampler plain(llama_sampler_init_grammar(vocab, "root ::= \"a\"+", "root"));
  CHECK(name_of(plain) == expected);
  const char* pattern      = "x(a)";
  const llama_token tokens = 5;
  const LlamaCppSampler lazy(llama_sampler_init_grammar_lazy_patterns(
      vocab, "root ::= \"a\"+", "root", &pattern, 1, &tokens, 1));
  CHECK(name_of(lazy) == expected);
  // Refused here, and llama.cpp's own; no grammar at all; no grammar for either.
  const LlamaCppSampler token(llama_sampler_init_grammar(vocab, "root ::= <[5]>", "root"));
  CHECK(name_of(token) == "grammar");
  const LlamaCppSampler none(llama_sampler_init_grammar(vocab, "", "root"));
  CHECK(name_of(none) == "grammar");
  const LlamaCppSampler wrong(llama_sampler_init_grammar(vocab, "root ::= (", "root"));
  CHECK(name_of(wrong) == "null");
}

TEST_CASE("llama_sampler_init_grammar leaves no text before a required call where that is asked",
          "[interpose]") {
  const auto folder = td::test::llama_cpp_models();
  if (!folder) return td::test::report_skipped("llama.cpp's folder models");
  const auto model  = td::test::read_llama_cpp_vocabulary(*folder / "ggml-vocab-gpt-2.gguf");
  const auto* vocab = llama_model_get_vocab(model.get());
  llama_token x     = -1;
  REQUIRE(llama_tokenize(vocab, "x", 1, &x, 1, false, false) == 1);
  const auto allows_text = [&](const char* asked) {
    REQUIRE(setenv("TOOLDECODE_REQUIRED_CALLS", asked, 1) == 0);
    const LlamaCppSampler sampler(llama_sampler_init_grammar(
        vocab, "root ::= \"\" until-1? tool-calls\nuntil-1 ::= [x]+\ntool-calls ::= \"b\"",
        "root"));
    REQUIRE(unsetenv("TOOLDECODE_REQUIRED_CALLS") == 0);
    REQUIRE(sampler != nullptr);
    llama_token_data candidate{x, 0, 0};
    llama_token_data_array candidates{&candidate, 1, -1, false};
    llama_sampler_apply(sampler.get(), &candidates);
    return candidate.logit == 0;
  };
  CHECK(allows_text("0"));
  CHECK(allows_text("1") != is_loaded_first());
}
