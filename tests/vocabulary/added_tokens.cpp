#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/vocabulary/added_tokens.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::vocabulary::AddedToken;
using td::vocabulary::AddedTokens;

namespace {

using Stretches = std::vector<std::pair<std::string, td::TokenId>>;

// Plain text has the token -1.
Stretches split(std::vector<AddedToken> tokens, std::string_view text, bool finds_control = true) {
  Stretches result;
  const AddedTokens added(std::move(tokens));
  for (const auto& [stretch, token] : added.split(text, finds_control)) {
    result.emplace_back(stretch, token == nullptr ? -1 : token->token);
  }
  return result;
}

}  // namespace

TEST_CASE("AddedTokens::split finds the longest token at each place") {
  const std::vector<AddedToken> tokens{{"ab", 1}, {"abc", 2}, {"<e>", 3, true}, {"", 4}};
  CHECK(split(tokens, "xabcaby") == Stretches{{"x", -1}, {"abc", 2}, {"ab", 1}, {"y", -1}});
  CHECK(split(tokens, "a<e>") == Stretches{{"a", -1}, {"<e>", 3}});
  CHECK(split(tokens, "a<e>", false) == Stretches{{"a<e>", -1}});
  CHECK(split(tokens, "").empty());
}

// Expected values are from the Python package `tokenizers` 0.23.3.
TEST_CASE("AddedTokens::split finds no single-word token next to a word character") {
  const std::vector<AddedToken> tokens{{.text = "ab", .token = 1, .single_word = true}};
  CHECK(split(tokens, "ab xab ab_ ab") == Stretches{{"ab", 1}, {" xab ab_ ", -1}, {"ab", 1}});
  CHECK(split(tokens, "\u00E9ab-ab\u0301") == Stretches{{"\u00E9ab-ab\u0301", -1}});
  CHECK(split(tokens, "\u3002ab\u3002") == Stretches{{"\u3002", -1}, {"ab", 1}, {"\u3002", -1}});
  // Invalid UTF-8 is no word character.
  CHECK(split(tokens,
              "\xFF"
              "ab\xC3") == Stretches{{"\xFF", -1}, {"ab", 1}, {"\xC3", -1}});
}

TEST_CASE("AddedTokens::split gives white space once, to the token that strips it") {
  const AddedToken left{.text = "<l>", .token = 1, .strips_left = true};
  const AddedToken right{.text = "<r>", .token = 2, .strips_right = true};
  CHECK(split({left, right}, "a \n<l> b<r>\t c") ==
        Stretches{{"a", -1}, {" \n<l>", 1}, {" b", -1}, {"<r>\t ", 2}, {"c", -1}});
  CHECK(split({left, right}, "<r>  <l>") == Stretches{{"<r>  ", 2}, {"<l>", 1}});
  CHECK(split({left, right}, "  <l>") == Stretches{{"  <l>", 1}});
  // If spaces are marks in the text, white space ends at them.
  AddedToken marked   = left;
  marked.keeps_spaces = true;
  CHECK(split({marked}, "a\n \t<l>") == Stretches{{"a\n ", -1}, {"\t<l>", 1}});
  marked              = right;
  marked.keeps_spaces = true;
  CHECK(split({marked}, "<r>\n \ta") == Stretches{{"<r>\n", 2}, {" \ta", -1}});
  CHECK(split({marked}, "<r>\n") == Stretches{{"<r>\n", 2}});
  // A token inside of white space that another token strips is found too.
  CHECK(split({right, {"\n\n", 3}}, "<r> \n\na") ==
        Stretches{{"<r> \n\n", 2}, {"\n\n", 3}, {"a", -1}});
  CHECK_FALSE(AddedTokens({{"a", 1}}).strip());
  CHECK(AddedTokens({right}).strip());
}

// Each token that took the rest of the white space looked through all of it: this took minutes.
TEST_CASE("AddedTokens::split looks at white space once") {
  const std::string lines(300'000, '\n'), text = lines + " a";
  for (const bool keeps_spaces : {false, true}) {
    AddedToken token{.text = "\n", .token = 1, .strips_right = true, .keeps_spaces = keeps_spaces};
    const auto right = AddedTokens({token}).split(text, true);
    REQUIRE(right.size() == lines.size() + 1);
    CHECK(right.front().text.size() == lines.size() + (keeps_spaces ? 0 : 1));
    CHECK(right.back().text == (keeps_spaces ? " a" : "a"));
    token.strips_right = false;
    token.strips_left  = true;
    CHECK(AddedTokens({token}).split(lines, true).size() == lines.size());
  }
}

TEST_CASE("AddedTokens::of takes the control and user-defined tokens of a vocabulary") {
  const AddedTokens tokens = AddedTokens::of(td::Vocabulary(
      {{"a"}, {"<t>", td::TokenType::user_defined}, {"<e>", td::TokenType::control}}));
  const auto found         = tokens.split("a<t><e>", true);
  REQUIRE(found.size() == 3);
  CHECK(found[1].token->token == 1);
  CHECK(found[2].token->token == 2);
  CHECK(found[2].token->is_control);
}
