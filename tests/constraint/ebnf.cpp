#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/automaton.hpp>

#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

TEST_CASE("Constraint over left-recursive EBNF has the masks of the grammar's texts") {
  // Sums of at most three numbers, each in brackets or not.
  const char* grammar = R"g(
    root   ::= three? # or nothing
    three  ::= two | two "+" number
    two    ::= number | number "+" number
    number ::= [12] | "(" number-in ")"
    number-in ::= "é"{1,2} | [12]
  )g";
  slow::Language numbers{"1", "2", "(1)", "(2)", "(é)", "(éé)"}, texts{""};
  for (const auto& a : numbers) {
    texts.insert(a);
    for (const auto& b : numbers) {
      texts.insert(a + '+' + b);
      for (const auto& c : numbers) texts.insert(a + '+' + b + '+' + c);
    }
  }
  const Constraint constraint(slow::pieces_of(texts, 5), Grammar::ebnf(grammar));
  CHECK(slow::check_masks(constraint, texts, 5, 40) > 100);
}

TEST_CASE("Constraint over a left-recursive EBNF list accepts a long text with few states") {
  const Constraint constraint(slow::pieces_of({"ab"}, 1),
                              Grammar::ebnf(R"(list ::= list "," item | item
    item ::= [a-z]+ | "[" list "]")",
                                            {.root = "list"}));
  std::string text = "a";
  for (int i = 0; i < 500; ++i) text += ",[b,c]";
  CHECK(slow::accepts(constraint, text));
  CHECK_FALSE(slow::accepts(constraint, text + ','));
  CHECK(constraint.automaton().size() < 40);
}

TEST_CASE("Constraint over ambiguous EBNF operators accepts a long text with few states") {
  const Constraint constraint(slow::pieces_of({"ab"}, 1), Grammar::ebnf(R"g(
    root ::= root [-+*/] root | root "?" root ":" root | "(" root ")" | "!" root | [0-9]+)g"));
  std::string text = "1";
  for (int i = 0; i < 500; ++i) text += "+!(2*3)?4:5";
  CHECK(slow::accepts(constraint, text));
  CHECK_FALSE(slow::accepts(constraint, text + '?'));
  CHECK_FALSE(slow::accepts(constraint, text + ":1"));
  CHECK(constraint.automaton().size() < 60);
}

TEST_CASE("Constraint over EBNF that derives no text throws unsatisfiable_schema") {
  try {
    const Constraint constraint(slow::pieces_of({"a"}, 1), Grammar::ebnf("root ::= \"a\" root"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsatisfiable_schema);
  }
}
