#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/text_dfa.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using test::accepts;

namespace {

// All texts of up to `length` letters.
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

TEST_CASE("behind_space accepts the given texts, each after any white space") {
  for (const std::vector<std::string>& some : std::vector<std::vector<std::string>>{
           {"a"}, {"ab", "b"}, {"ab", "abb"}, {"a b", "a\n"}, {" a"}, {"\nb", "a"}}) {
    const text::Dfa dfa = behind_space(some);
    for (const std::string& text : texts_of("ab \n", 6)) {
      const bool is_one = std::ranges::any_of(some, [&](const std::string& one) {
        return text.ends_with(one) && text.find_first_not_of(" \n") >= text.size() - one.size();
      });
      if (accepts(dfa, text) != is_one) FAIL(text);
    }
  }
  CHECK(accepts(behind_space({"a"}),
                "\xC2\x85\xE2\x80\xA8\x1c"
                "a"));
  CHECK_FALSE(accepts(behind_space({"a"}),
                      "\xC2"
                      "a"));
}

TEST_CASE("free_text accepts text without some marks, and text up to the first of others") {
  for (const std::vector<std::string>& delimiters : std::vector<std::vector<std::string>>{
           {"ab"}, {"aab"}, {"aba"}, {"aa", "b"}, {"ab", "abb"}, {"abab", "ba"}, {"bab", "aba"}}) {
    const auto without = formats::free_text({.without = delimiters});
    const auto until   = formats::free_text({.until = {delimiters[0]}});
    const auto other   = formats::free_text(
        {.until = {delimiters[0]}, .without = {delimiters.begin() + 1, delimiters.end()}});
    for (const std::string& text : texts_of("abc", 7)) {
      bool holds = false, holds_other = false;
      for (const std::string& delimiter : delimiters) {
        const std::size_t at = text.find(delimiter);
        holds |= at != std::string::npos;
        // Where delimiters[0] ends here too, the text has ended.
        holds_other |=
            &delimiter != &delimiters[0] && at + delimiter.size() < text.size() && at < text.size();
      }
      const std::size_t first = text.find(delimiters[0]);
      const bool ends = first != std::string::npos && first + delimiters[0].size() == text.size();
      if (accepts(*without, text) == holds || accepts(*until, text) != ends) FAIL(text);
      // A delimiter that begins the end leaves no text; "b" in "ba" did not end one.
      if (accepts(*other, text) && (!ends || holds_other)) FAIL(text);
    }
  }
  CHECK(accepts(*formats::any_text(), "any\x80\xfd\n"));
  CHECK_FALSE(accepts(*formats::any_text(), "\xff"));
  CHECK_FALSE(accepts(*formats::any_text(), "\xfe"));
}

TEST_CASE("free_text allows a control token only as an end, whose rest must follow") {
  // One letter for each text and each control token.
  const std::map<char, std::string> written{{'a', "a"},           {'b', "b"},
                                            {'<', "<a>"},         {'A', "\xff<a>\xfe"},
                                            {'B', "\xff<b>\xfe"}, {'C', "\xff<ab>\xfe"}};
  const auto write = [&](const std::string& letters) {
    std::string text;
    for (const char letter : letters) text += written.at(letter);
    return text;
  };
  for (const std::vector<std::string>& letters_of_marks :
       std::vector<std::vector<std::string>>{{"A"},
                                             {"A", "<"},
                                             {"Ab"},
                                             {"Ab", "<b"},
                                             {"bAa", "bA"},
                                             {"aBA"},
                                             {"AbB"},
                                             {"aA", "A"},
                                             {"AB", "A<"}}) {
    std::vector<std::string> delimiters;
    for (const std::string& delimiter : letters_of_marks) delimiters.push_back(write(delimiter));
    const auto without = formats::free_text({.without = delimiters});
    const auto until   = formats::free_text({.until = delimiters});
    for (const std::string& letters : texts_of("ab<ABC", 5)) {
      bool holds        = false;
      std::size_t first = std::string::npos, begin = std::string::npos;
      for (const std::string& delimiter : letters_of_marks) {
        const std::size_t at = letters.find(delimiter);
        holds |= at != std::string::npos;
        if (at != std::string::npos && at + delimiter.size() < first) {
          first = at + delimiter.size();
          begin = at;
        }
      }
      const bool ends    = first == letters.size();
      const auto is_text = [](std::string_view text) {
        return text.find_first_of("ABC") == std::string::npos;
      };
      INFO(letters << " with " << letters_of_marks[0]);
      if (accepts(*without, write(letters)) != (!holds && is_text(letters))) FAIL("without");
      const bool is_ended = ends && is_text(std::string_view(letters).substr(0, begin));
      if (accepts(*until, write(letters)) != is_ended) FAIL("until");
    }
    const std::string cut = "\xff<a";
    CHECK_FALSE(accepts(*without, cut));
  }
}

TEST_CASE("free_text with not_first accepts no text that begins so, even after white space") {
  const auto text = formats::free_text({.not_first = {"ab"}});
  for (const std::string& one : texts_of("ab \n", 6)) {
    const std::size_t first = std::min(one.find_first_not_of(" \n"), one.size());
    if (accepts(*text, one) == one.substr(first).starts_with("ab")) FAIL(one);
  }
  for (const std::string space : {"\f", "\v", "\x1c", "\x1f ", "\xc2\x85", "\xc2\xa0",
                                  "\xe3\x80\x80", "\xef\xbb\xbf", "\xe2\x80\xa8"}) {
    CHECK_FALSE(accepts(*text, space + "ab"));
    CHECK(accepts(*text, space + "b"));
    CHECK(accepts(*text, "." + space + "ab"));
  }
  const auto both = formats::free_text({.without = {"x"}, .not_first = {"ab", "[T]"}});
  CHECK(accepts(*both, "ba"));
  CHECK(accepts(*both, "[T"));
  CHECK_FALSE(accepts(*both, "bax"));
  CHECK_FALSE(accepts(*both, " ab"));
  CHECK_FALSE(accepts(*both, "[T]"));
}

TEST_CASE("free_text with a barred pattern accepts no text that holds a match") {
  const auto text  = formats::free_text({.until = {"ab"}, .barred = "b+a|cb?c"});
  const auto plain = formats::free_text({.barred = "b+a|cb?c"});
  for (const std::string& one : texts_of("abc", 7)) {
    const auto holds = [&](const std::string& in) {
      return in.find("ba") != std::string::npos || in.find("cc") != std::string::npos ||
             in.find("cbc") != std::string::npos;
    };
    if (accepts(*plain, one) == holds(one)) FAIL(one);
    const bool ends = one.find("ab") != std::string::npos && one.find("ab") + 2 == one.size();
    if (accepts(*text, one) != (ends && !holds(one))) FAIL(one);
  }
}

TEST_CASE("without_reasoning replaces a reasoning block by blanks of the same length") {
  const ReasoningDelimiters delimiters;
  CHECK(formats::without_reasoning("<think>[</think>[f()]", delimiters) ==
        std::string(16, ' ') + "[f()]");
  CHECK(formats::without_reasoning(" \n<think></think>x", delimiters) ==
        std::string(17, ' ') + "x");
  CHECK(formats::without_reasoning("a <think>[</think>", delimiters) == "a <think>[</think>");
  CHECK(formats::without_reasoning("<think>[f()]", delimiters) == std::string(12, ' '));
  CHECK(formats::without_reasoning("so</think>[f()]", {.begin = ""}) ==
        std::string(10, ' ') + "[f()]");
  const std::vector<std::string> calls{"[T]"};
  CHECK(formats::without_reasoning("<think>a[T]b</think>", delimiters, calls) ==
        std::string(8, ' ') + "[T]b</think>");
  CHECK(formats::without_reasoning("<think>a</think>[T]", delimiters, calls) ==
        std::string(16, ' ') + "[T]");
  CHECK(formats::without_reasoning("<think>a[T]", delimiters, calls) ==
        std::string(8, ' ') + "[T]");
  CHECK(formats::trimmed(" \n a b\n") == "a b");
  CHECK(formats::trimmed("\n").empty());
}

TEST_CASE("free_text with a beginning accepts what whole texts may have behind it") {
  const FreeText whole{.without = {"```json\n{\"a\"", "<call>"}, .not_first = {"no"}};
  std::mt19937 random(5);
  const std::string letters = "`json\n{\"a<cl>";
  for (const std::string begun : {"```json\n{", "n", "<ca", "x", "<call>"}) {
    FreeText rest           = whole;
    rest.begun              = begun;
    const text::Dfa of_all  = *free_text(whole);
    const text::Dfa of_rest = *free_text(rest);
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (auto n = random() % 9; n > 0; --n) text += letters[random() % letters.size()];
      CAPTURE(begun, text);
      REQUIRE(accepts(of_rest, text) == accepts(of_all, begun + text));
    }
  }
}
