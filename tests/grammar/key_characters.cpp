#include <map>
#include <string>
#include <vector>

#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

TEST_CASE("key_characters returns the characters that may follow a node of a trie of keys",
          "[key_characters]") {
  const std::vector<std::string> names{"a", "a\n", "\xC3\xA9", "\xC3\xA8x", "\"", "\x01", "'", ""};
  for (const ValueSyntax syntax : {ValueSyntax::json, ValueSyntax::python}) {
    std::vector<std::string> keys;
    for (const std::string& name : names) keys.push_back(StringEscape::quoted(name, syntax, '"'));
    std::vector<ByteTrie::Entry> entries;
    for (const std::string& key : keys) entries.emplace_back(key, 1);
    const ByteTrie trie(std::move(entries));
    std::map<char32_t, std::string> next;
    for (const KeyCharacter& one : key_characters(trie, trie.find_child(0, '"'), syntax)) {
      next[one.character] = trie.text(one.node);
    }
    CHECK(next == std::map<char32_t, std::string>{
                      {U'a', "\"a"},
                      {U'\u00E9', "\"\xC3\xA9"},
                      {U'\u00E8', "\"\xC3\xA8"},
                      {U'"', "\"\\\""},
                      {1, syntax == ValueSyntax::json ? "\"\\u0001" : "\"\\x01"},
                      {U'\'', "\"'"}});
    const auto inside = trie.find_child(trie.find_child(0, '"'), 0xC3);
    CHECK(key_characters(trie, inside, syntax).empty());
  }
}

TEST_CASE("has_further_character tells whether an escape may lead to a character that is not known",
          "[key_characters]") {
  const auto leads = [](const char* pattern, const char* bytes, std::vector<char32_t> known) {
    const Dfa lexeme = key_lexeme(compile_pattern(pattern), ValueSyntax::json, '"');
    StringEscape escape(ValueSyntax::json);
    for (const char* at = bytes + 2; *at != 0; ++at) {
      REQUIRE(escape.read(static_cast<std::uint8_t>(*at)));
    }
    std::vector<KeyCharacter> characters;
    for (const char32_t c : known) characters.push_back({c, 0});
    return has_further_character(lexeme, state_behind(lexeme, 0, bytes), escape, characters);
  };
  CHECK(leads("^[ab]$", "\"\\", {}));
  CHECK(leads("^[ab]$", "\"\\", {U'a'}));
  CHECK_FALSE(leads("^[ab]$", "\"\\", {U'a', U'b'}));
  CHECK(leads("^[ab]$", "\"\\u006", {U'b'}));
  CHECK_FALSE(leads("^[ab]$", "\"\\u006", {U'a', U'b'}));
  CHECK_FALSE(leads("^[ab]$", "\"\\u01", {}));
  CHECK(leads("^[\\u{1F600}\\u{1F601}]$", "\"\\ud83d\\ude0", {U'\U0001F600'}));
  CHECK_FALSE(leads("^\\u{1F600}$", "\"\\ud83d\\ude0", {U'\U0001F600'}));
  CHECK(leads("^.$", "\"\\ud83", {U'\U0001F600'}));
}
