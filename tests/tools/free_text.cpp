#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/tools/free_text.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

bool accepts(const Dfa& dfa, std::string_view text) {
  if (dfa.empty()) return false;
  Dfa::State state = 0;
  for (const char c : text) {
    state = dfa.next(state, static_cast<std::uint8_t>(c));
    if (state == Dfa::dead) return false;
  }
  return dfa.accepting(state);
}

// Every text of up to `length` letters.
std::vector<std::string> texts_of(std::string_view letters, std::size_t length) {
  std::vector<std::string> all{""};
  for (std::size_t first = 0, n = 0; n < length; ++n) {
    const std::size_t last = all.size();
    for (; first < last; ++first) {
      for (const char c : letters) all.push_back(all[first] + c);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("Text without triggers, and up to the first") {
  for (const std::vector<std::string>& triggers : std::vector<std::vector<std::string>>{
           {"ab"}, {"aab"}, {"aba"}, {"aa", "b"}, {"ab", "abb"}, {"abab", "ba"}, {"bab", "aba"}}) {
    const auto without = detail::text_without(triggers);
    const auto until   = detail::text_until(std::span(&triggers[0], 1));
    for (const std::string& text : texts_of("abc", 7)) {
      bool holds = false;
      for (const std::string& trigger : triggers) holds |= text.find(trigger) != std::string::npos;
      const std::size_t first = text.find(triggers[0]);
      const bool ends = first != std::string::npos && first + triggers[0].size() == text.size();
      if (accepts(*without, text) == holds || accepts(*until, text) != ends) FAIL(text);
    }
  }
  CHECK(accepts(*detail::any_text(), "any\x80\xfd\n"));
  CHECK_FALSE(accepts(*detail::any_text(), "\xff"));
  CHECK_FALSE(accepts(*detail::any_text(), "\xfe"));
}

TEST_CASE("Control tokens in text: those of triggers and those that are allowed") {
  // One letter each: text, the triggers' control tokens, others.
  const std::map<char, std::string> written{{'a', "a"},           {'b', "b"},
                                            {'<', "<a>"},         {'A', "\xff<a>\xfe"},
                                            {'B', "\xff<b>\xfe"}, {'C', "\xff<ab>\xfe"}};
  const auto write = [&](const std::string& letters) {
    std::string text;
    for (const char letter : letters) text += written.at(letter);
    return text;
  };
  struct Case {
    std::vector<std::string> triggers;
    std::vector<std::string> allowed;
    std::string letters;  // what text may hold, its triggers apart
  };
  for (const Case& one :
       {Case{{"A"}, {}, "ab<"}, Case{{"A", "<"}, {}, "ab"}, Case{{"Ab"}, {}, "ab<A"},
        Case{{"Ab", "<b"}, {"<b>"}, "ab<AB"}, Case{{"bAa", "bA"}, {"<ab>"}, "ab<C"},
        Case{{"aBA"}, {"<a>", "<b>"}, "ab<AB"}}) {
    std::vector<std::string> triggers;
    for (const std::string& trigger : one.triggers) triggers.push_back(write(trigger));
    const auto without = detail::text_without(triggers, one.allowed);
    const auto until   = detail::text_until(triggers, one.allowed);
    for (const std::string& letters : texts_of("ab<ABC", 5)) {
      bool holds = false, ends = false;
      std::size_t first = std::string::npos;
      for (const std::string& trigger : one.triggers) {
        const std::size_t at = letters.find(trigger);
        holds |= at != std::string::npos;
        if (at != std::string::npos && at + trigger.size() < first) first = at + trigger.size();
      }
      ends                     = first == letters.size();
      const std::string before = ends ? letters.substr(0, letters.size() - 1) : letters;
      const bool is_free       = before.find_first_not_of(one.letters) == std::string::npos;
      INFO(letters << " with " << one.triggers[0]);
      if (accepts(*without, write(letters)) != (!holds && is_free)) FAIL("without");
      if (accepts(*until, write(letters)) != (ends && is_free)) FAIL("until");
    }
    const std::string cut = "\xff<a";
    CHECK_FALSE(accepts(*without, cut));
  }
}

TEST_CASE("Text that does not begin with some bytes, nor with white space and them") {
  const auto text = detail::not_beginning(*detail::any_text(), "ab");
  for (const std::string& one : texts_of("ab \n", 6)) {
    const std::size_t first = std::min(one.find_first_not_of(" \n"), one.size());
    if (accepts(*text, one) == one.substr(first).starts_with("ab")) FAIL(one);
  }
  const std::string only = "x";
  const auto both        = detail::not_beginning(*detail::text_without(std::span(&only, 1)), "ab");
  CHECK(accepts(*both, "ba"));
  CHECK_FALSE(accepts(*both, "bax"));
  CHECK_FALSE(accepts(*both, " ab"));
}

TEST_CASE("A block of reasoning is made blank where it stands") {
  const ReasoningMarks marks;
  CHECK(detail::without_reasoning("<think>[</think>[f()]", marks) ==
        std::string(16, ' ') + "[f()]");
  CHECK(detail::without_reasoning(" \n<think></think>x", marks) == std::string(17, ' ') + "x");
  CHECK(detail::without_reasoning("a <think>[</think>", marks) == "a <think>[</think>");
  CHECK(detail::without_reasoning("<think>[f()]", marks) == std::string(12, ' '));
  CHECK(detail::without_reasoning("so</think>[f()]", {.begin = ""}) ==
        std::string(10, ' ') + "[f()]");
  CHECK(detail::trimmed(" \n a b\n") == "a b");
  CHECK(detail::trimmed("\n").empty());
}
