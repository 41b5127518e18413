#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/text/dfa_twins.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_escape.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

// Whether all texts of at most `length` bytes lead from both states to states of the same kind, or
// from neither to one.
bool are_alike(const Dfa& dfa, Dfa::State a, Dfa::State b, std::size_t length,
               const std::vector<std::uint32_t>& labels) {
  if (a == b) return true;
  if (a == Dfa::dead || b == Dfa::dead) return false;
  if (dfa.accepting(a) != dfa.accepting(b) || dfa.boundary(a) != dfa.boundary(b) ||
      dfa.closing(a) != dfa.closing(b) || (!labels.empty() && labels[a] != labels[b])) {
    return false;
  }
  for (unsigned byte = 0; length > 0 && byte < 256; ++byte) {
    const auto c = static_cast<std::uint8_t>(byte);
    if (!are_alike(dfa, dfa.next(a, c), dfa.next(b, c), length - 1, labels)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("DfaTwins of random automata equals a comparison of all short texts") {
  std::mt19937 random(5);
  std::size_t alike = 0, apart = 0;
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    std::vector<Dfa::Row> rows(2 + random() % 12);
    for (Dfa::Row& row : rows) {
      row.accepting = random() % 6 == 0;
      row.boundary  = random() % 6 == 0;
      for (const char c : {'a', 'b'}) {  // mostly to the states behind, so that twins are usual
        if (random() % 4 != 0)
          row.next[static_cast<unsigned char>(c)] = static_cast<Dfa::State>(random() % rows.size());
      }
    }
    const Dfa dfa(rows);
    std::vector<std::uint32_t> labels;
    if (round % 3 == 0) {
      for (std::size_t i = 0; i < dfa.size(); ++i) labels.push_back(random() % 2);
    }
    const std::size_t length = random() % 4;
    const DfaTwins twins(dfa, length, labels);
    for (Dfa::State a = 0; a < dfa.size(); ++a) {
      REQUIRE(twins.first(a) <= a);
      REQUIRE(twins.first(twins.first(a)) == twins.first(a));
      for (Dfa::State b = 0; b < a; ++b) {
        const bool expected = are_alike(dfa, a, b, length, labels);
        CHECK((twins.first(a) == twins.first(b)) == expected);
        ++(expected ? alike : apart);
      }
    }
  }
  CHECK(alike > 100);
  CHECK(apart > 1000);
}

TEST_CASE("DfaTwins of a limit of words: those far from it are alike") {
  const Dfa dfa = string_lexeme(compile_pattern("^(\\S+\\s+){0,99}\\S+$"), ValueSyntax::json, '"');
  const DfaTwins twins(dfa, 24);
  const auto behind = [&](std::string_view text) {
    Dfa::State state = 0;
    for (const char c : text) state = dfa.next(state, static_cast<std::uint8_t>(c));
    return state;
  };
  std::string words = "\"";
  for (int n = 0; n < 87; ++n) words += "a ";
  CHECK(twins.first(behind("\"a a")) == twins.first(behind("\"many more words")));
  CHECK(twins.first(behind(words + 'a')) == twins.first(behind("\"a a")));
  CHECK(twins.first(behind(words + "a a")) != twins.first(behind("\"a a")));
  CHECK(twins.first(behind("\"a ")) != twins.first(behind("\"a")));
}
