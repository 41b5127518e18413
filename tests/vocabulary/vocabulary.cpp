#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::TokenType;

namespace {

td::Vocabulary small(td::VocabularyOptions options = {.end_tokens = {4, 3, 4}, .size = 10}) {
  return td::Vocabulary({{"a"},
                         {"ab"},
                         {"\xC3"},  // half a character
                         {"<end>", TokenType::control},
                         {"</s>", TokenType::user_defined},
                         {"<unk>", TokenType::unknown},
                         {"", TokenType::unused},
                         {"a", TokenType::byte},
                         {"<tool>", TokenType::user_defined}},
                        std::move(options));
}

td::Errc code_of(const auto& build) {
  try {
    build();
  } catch (const td::Error& error) {
    return error.code();
  }
  FAIL("nothing thrown");
  return {};
}

}  // namespace

TEST_CASE("Vocabulary gives bytes, name and type of each id and decodes ids") {
  const td::Vocabulary vocabulary = small();
  CHECK(vocabulary.size() == 10);
  CHECK(vocabulary.token_count() == 9);
  CHECK(vocabulary.bytes(1) == "ab");
  CHECK(vocabulary.bytes(2) == "\xC3");
  CHECK(vocabulary.bytes(3).empty());
  CHECK(vocabulary.name(3) == "<end>");
  CHECK(vocabulary.bytes(5).empty());
  CHECK(vocabulary.name(5) == "<unk>");
  CHECK(vocabulary.type(6) == TokenType::unused);
  CHECK(vocabulary.type(9) == TokenType::unused);
  CHECK(vocabulary.name(9).empty());
  CHECK(vocabulary.decode(std::vector<td::TokenId>{1, 3, 7, 9, 8}) == "aba<tool>");
  CHECK(code_of([&] { static_cast<void>(vocabulary.decode(std::vector<td::TokenId>{10})); }) ==
        td::Errc::unknown_token);
  CHECK(code_of([&] { static_cast<void>(vocabulary.decode(std::vector<td::TokenId>{-1})); }) ==
        td::Errc::unknown_token);
}

TEST_CASE("Vocabulary::is_text is false for end tokens and tokens without bytes") {
  const td::Vocabulary vocabulary = small();
  std::vector<td::TokenId> text;
  for (td::TokenId id = 0; id < 10; ++id) {
    if (vocabulary.is_text(id)) text.push_back(id);
  }
  CHECK(text == std::vector<td::TokenId>{0, 1, 2, 7, 8});
  CHECK(vocabulary.is_end(3));
  CHECK(vocabulary.is_end(4));
  CHECK_FALSE(vocabulary.is_end(0));
  REQUIRE(vocabulary.end_tokens().size() == 2);
  CHECK(vocabulary.end_tokens()[0] == 4);
}

TEST_CASE("Vocabulary::grammar_bytes marks control tokens to distinguish them from text") {
  const td::Vocabulary vocabulary = small().with_end_tokens({4});
  CHECK(vocabulary.grammar_bytes(1) == "ab");
  CHECK(vocabulary.grammar_bytes(2) == "\xC3");
  CHECK(vocabulary.grammar_bytes(3) == "\xFF<end>\xFE");
  CHECK(vocabulary.grammar_bytes(8) == "<tool>");
  for (const td::TokenId none : {4, 5, 6, 9}) CHECK(vocabulary.grammar_bytes(none).empty());
  const td::Vocabulary odd({{"\xFF"}, {"a\xFE"}, {"\xFD"}, {"", TokenType::control}});
  for (const td::TokenId none : {0, 1, 3}) CHECK(odd.grammar_bytes(none).empty());
  CHECK(odd.grammar_bytes(2) == "\xFD");
  CHECK(odd.is_text(0));
  CHECK(odd.name(3).empty());
}

TEST_CASE("Vocabulary::answer_text has the names of control tokens and leaves out end tokens") {
  const td::Vocabulary vocabulary = small().with_end_tokens({4});
  CHECK(vocabulary.answer_bytes(1) == "ab");
  CHECK(vocabulary.answer_bytes(3) == "<end>");
  for (const td::TokenId none : {4, 5, 6, 9}) CHECK(vocabulary.answer_bytes(none).empty());
  CHECK(vocabulary.answer_text(std::vector<td::TokenId>{3, 0, 2, 5, 7, 8, 9, 4}) ==
        "<end>a\xC3"
        "a<tool>");
  CHECK(code_of([&] { static_cast<void>(vocabulary.answer_text(std::vector<td::TokenId>{10})); }) ==
        td::Errc::unknown_token);
}

TEST_CASE("Vocabulary::find returns the id that an encoder produces") {
  CHECK(small().find("a") == 0);
  CHECK(small().find("<tool>") == 8);
  CHECK(small().find("<end>") == std::nullopt);
  CHECK(small().find("") == std::nullopt);
  CHECK(small().find_special("<end>") == 3);
  CHECK(small().find_special("<tool>") == 8);
  CHECK(small().find_special("a") == std::nullopt);
  const td::Vocabulary twice({{"a", TokenType::byte},
                              {"a", TokenType::normal},
                              {"a", TokenType::normal},
                              {"b", TokenType::normal},
                              {"b", TokenType::user_defined}});
  CHECK(twice.find("a") == 1);
  CHECK(twice.find("b") == 4);
}

TEST_CASE("Vocabulary::with_size and with_end_tokens change a copy") {
  const td::Vocabulary original = small();
  const td::Vocabulary larger   = original.with_size(64);
  CHECK(larger.size() == 64);
  CHECK(larger.end_tokens().size() == 2);
  CHECK(larger.find("ab") == 1);
  CHECK(original.size() == 10);
  const td::Vocabulary other = original.with_end_tokens({3});
  CHECK_FALSE(other.is_end(4));
  CHECK(other.is_text(4));
  CHECK(small({.begin_token = 3}).begin_token() == 3);
}

TEST_CASE("Vocabulary::hash differs for different vocabularies and is stable") {
  CHECK(small().hash() == small().hash());
  CHECK(small().hash() != small().with_size(11).hash());
  CHECK(small().hash() != small().with_end_tokens({3}).hash());
  CHECK(td::Vocabulary({{"ab"}, {"c"}}).hash() != td::Vocabulary({{"a"}, {"bc"}}).hash());
  CHECK(td::Vocabulary({{"a"}}).hash() != td::Vocabulary({{"a", TokenType::user_defined}}).hash());
  CHECK(td::Vocabulary({{"a"}, {"b"}}).hash() != td::Vocabulary({{"b"}, {"a"}}).hash());
  CHECK(td::Vocabulary({{"a"}, {"b"}}).hash() == 11661410713840367175ULL);
}

TEST_CASE("Vocabulary errors name the inconsistent token") {
  CHECK(code_of([] { small({.end_tokens = {9}}); }) == td::Errc::malformed_vocabulary);
  CHECK(code_of([] { small({.end_tokens = {-1}}); }) == td::Errc::malformed_vocabulary);
  CHECK(code_of([] { small({.begin_token = 70, .size = 70}); }) == td::Errc::malformed_vocabulary);
  CHECK(code_of([] { small({.size = 8}); }) == td::Errc::malformed_vocabulary);
  REQUIRE_THROWS_WITH(small({.begin_token = 12}), tooldecode::test::contains("token 12"));
  REQUIRE_THROWS_WITH(td::Vocabulary({{"a"}, {"b", TokenType{7}}}),
                      tooldecode::test::contains("token 1"));
}
