#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/split_patterns.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Pieces = std::vector<std::string_view>;

namespace {

Pieces split(const char* name, std::string_view text) {
  return td::PreTokenizer(td::split_patterns::named(name).patterns).split(text);
}

}  // namespace

TEST_CASE("named patterns split numbers and words as their models do") {
  CHECK(split("gpt-2", "ab12345 I'LL") == Pieces{"ab", "12345", " I", "'", "LL"});
  CHECK(split("llama-bpe", "ab12345 I'LL") == Pieces{"ab", "123", "45", " I", "'LL"});
  CHECK(split("qwen2", "ab12 I'LL") == Pieces{"ab", "1", "2", " I", "'LL"});
  CHECK(split("gpt-4o", "aBc12345") == Pieces{"a", "Bc", "123", "45"});
  CHECK(split("tekken", "aBc12") == Pieces{"a", "Bc", "1", "2"});
  CHECK(split("starcoder", "ab12") == Pieces{"ab", "1", "2"});
  CHECK(split("falcon", "a+=12345") == Pieces{"a", "+=", "123", "45"});
  CHECK(split("default", "a+=12345") == Pieces{"a", "+=", "123", "45"});
}

TEST_CASE("a name tells whether whole pieces go before merges") {
  CHECK(td::split_patterns::named("llama-bpe").ignore_merges);
  CHECK_FALSE(td::split_patterns::named("qwen2").ignore_merges);
  CHECK_THROWS_AS(td::split_patterns::named("nonesuch"), td::Error);
}
