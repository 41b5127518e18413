#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Pieces = std::vector<std::string_view>;

namespace {

Pieces split(std::string_view name, std::string_view text) {
  return td::vocabulary::PreTokenizer(td::vocabulary::find_pre_tokenizer(name)->patterns)
      .split(text);
}

}  // namespace

TEST_CASE("find_pre_tokenizer has patterns for each name that compile and keep the whole text") {
  std::size_t names = 0;
  for (const auto& family : td::vocabulary::detail::pre_tokenizer_families()) {
    for (const std::string_view name : family.names) {
      INFO(name);
      std::string back;
      for (const auto piece : split(name, "I'll f(a=12345,\n\n  \u4E2D\u6587 \u00C9t\u00E9) "))
        back += piece;
      CHECK(back == "I'll f(a=12345,\n\n  \u4E2D\u6587 \u00C9t\u00E9) ");
      ++names;
    }
    for (const std::string_view name : family.whole_first)
      CHECK(td::vocabulary::find_pre_tokenizer(name)->whole_first);
  }
  CHECK(names > 60);
  CHECK_FALSE(td::vocabulary::find_pre_tokenizer("tomorrow").has_value());
  CHECK_FALSE(td::vocabulary::find_pre_tokenizer("").has_value());
}

TEST_CASE("find_pre_tokenizer splits a text as each name requires") {
  const std::string_view text = "I'LL pay 12345 fooBar/\n";
  CHECK(split("gpt-2", text) == Pieces{"I", "'", "LL", " pay", " 12345",
                                       " foo"
                                       "Bar",
                                       "/", "\n"});
  CHECK(split("smollm", text) ==
        Pieces{"I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5", " fooBar", "/", "\n"});
  CHECK(split("llama-bpe", text) == Pieces{"I", "'LL", " pay", " ", "123", "45", " fooBar", "/\n"});
  CHECK(split("qwen2", text) ==
        Pieces{"I", "'LL", " pay", " ", "1", "2", "3", "4", "5", " fooBar", "/\n"});
  CHECK(split("gpt-4o", text) == Pieces{"I'LL", " pay", " ", "123", "45", " foo", "Bar", "/\n"});
  CHECK(split("gemma4", text) == Pieces{"I'LL pay 12345 fooBar/", "\n"});
}
