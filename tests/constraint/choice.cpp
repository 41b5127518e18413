#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>

#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

TEST_CASE("Constraint over Grammar::choice has the masks of its list of texts") {
  std::size_t states = 0;
  for (unsigned seed = 1; seed <= 15; ++seed) {
    std::mt19937 random(seed);
    slow::Language language;
    for (std::size_t n = 1 + random() % 30; n > 0; --n) {
      std::string text;
      for (std::size_t k = random() % 7; k > 0; --k) text.push_back("ab\xC3\xA9 \n"[random() % 6]);
      language.insert(text);
    }
    std::vector<std::string> texts(language.begin(), language.end());
    texts.push_back(texts[0]);
    const Constraint constraint(slow::pieces_of(language, seed), Grammar::choice(texts));
    states += slow::check_masks(constraint, language, seed);
    for (const std::string& text : texts) REQUIRE(slow::accepts(constraint, text));
  }
  CHECK(states > 500);
}

TEST_CASE("Grammar::choice refuses bytes of control tokens, and says in which text") {
  for (const char* text : {"\xFE", "a\xFF"}) {
    CHECK_THROWS_WITH(
        Grammar::choice({"a", text}),
        "texts/1: must have no byte FE or FF, which no UTF-8 has: control tokens have them");
  }
}

TEST_CASE("Constraint over Grammar::choice without texts throws invalid_option") {
  try {
    const Constraint constraint(slow::pieces_of({"a"}, 1), Grammar::choice({}));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::invalid_option);
  }
}
