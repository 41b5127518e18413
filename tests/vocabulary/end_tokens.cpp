#include <string>
#include <vector>

#include <tooldecode/vocabulary/end_tokens.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;

TEST_CASE("special tokens with the name of an end are ends") {
  using td::TokenType;
  const std::vector<td::Vocabulary::Entry> entries{
      {"<eos>", TokenType::control},  // 0
      {"</s>", TokenType::normal},    // as a text may write it
      {"<|im_start|>", TokenType::control}, {"<|im_end|>", TokenType::user_defined},
      {"<|eot_id|>", TokenType::normal},                                      // 4, marked wrongly
      {"end", TokenType::control},          {"<|end|>", TokenType::control},  // 6
      {"<|call|>", TokenType::control}};  // asks for a tool, in other vocabularies
  CHECK(td::vocabulary::find_named_ends(entries) == Ids{0, 3, 4, 6});
  CHECK(td::vocabulary::find_named_ends({}).empty());
}

TEST_CASE("what ends one of several messages is no end of the text") {
  using td::TokenType;
  std::vector<td::Vocabulary::Entry> entries{{"<|end|>", TokenType::control},
                                             {"<|call|>", TokenType::control},
                                             {"<|return|>", TokenType::control},
                                             {"<|channel|>", TokenType::normal}};
  CHECK(td::vocabulary::find_named_ends(entries) == Ids{0, 2});
  CHECK(td::vocabulary::without_message_ends({2, 1, 0}, entries) == Ids{2, 1, 0});
  entries[3].type = TokenType::control;
  CHECK(td::vocabulary::find_named_ends(entries) == Ids{2});
  CHECK(td::vocabulary::without_message_ends({9, 2, 1, 0}, entries) ==
        Ids{9, 2});  // others are not its matter
}
