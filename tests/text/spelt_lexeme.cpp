#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/spelt_lexeme.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

// Reference: spells each state of a text separately, between quotes, without shared rows.
Dfa slow_quoted(const TextDfa& text, const Spelling& spelling) {
  std::vector<Dfa::SparseRow> rows(text.rows().size() + 2);
  const auto quote   = static_cast<std::uint8_t>(spelling.quote);
  const auto closing = static_cast<Dfa::State>(rows.size() - 1);
  rows[0].edges.push_back({quote, quote, 1});
  rows[closing].accepting = rows[closing].closing = true;
  Speller speller(rows, spelling);
  for (TextDfa::State s = 0; s < text.rows().size(); ++s) {
    Speller::Edges edges;
    speller.literal(Speller::runs(text, s, 1), edges);
    if (text.rows()[s].accepting) edges.push_back({quote, quote, closing});
    rows[s + 1].edges    = std::move(edges);
    rows[s + 1].boundary = true;
  }
  return Dfa(rows);
}

// Whether both accept the same steps from their starts, with the same marks.
bool alike(const Dfa& a, const Dfa& b) {
  std::vector<std::pair<Dfa::State, Dfa::State>> work{{0, 0}};
  std::map<Dfa::State, Dfa::State> met{{0, 0}};
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto [in_a, in_b] = work[i];
    if (in_a >= a.size() || in_b >= b.size()) return false;
    if (a.accepting(in_a) != b.accepting(in_b) || a.boundary(in_a) != b.boundary(in_b) ||
        a.closing(in_a) != b.closing(in_b) || a.live(in_a) != b.live(in_b)) {
      return false;
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Dfa::State to_a = a.next(in_a, static_cast<std::uint8_t>(byte)),
                       to_b = b.next(in_b, static_cast<std::uint8_t>(byte));
      if ((to_a == Dfa::dead) != (to_b == Dfa::dead)) return false;
      if (to_a == Dfa::dead) continue;
      // Several states of `a` may equal one of `b`, never the reverse.
      const auto [known, fresh] = met.emplace(to_a, to_b);
      if (fresh) work.emplace_back(to_a, to_b);
      if (known->second != to_b) return false;
    }
  }
  return true;
}

std::string letters(std::size_t n) {
  return "^\\p{L}{1," + std::to_string(n) + "}$";
}

}  // namespace

TEST_CASE("quoted with shared rows equals a Dfa that spells each state separately") {
  const Spelling json, python{.syntax = ValueSyntax::python, .quote = '\''}, every{.every = true};
  for (const char* pattern :
       {"^\\p{L}{1,20}$", "^(\\p{Lu}\\p{Ll}{0,5}){1,9}$", "^(\\w+ ?){3}$", "^[^\\p{L}]{3}\\p{L}*$",
        "^(.\\p{Han}|\\p{sc=Greek}{2}x){12}$", "^[a-z]{3}$", "\\u00e9", "^$", "^(?!\\p{L}{5}).{9}$",
        "^[\\u0000-\\u001f\"\\\\]{2,7}\\p{Nd}{0,30}$"}) {
    std::string text(pattern);
    if (const auto at = text.find("\\p{Han}"); at != text.npos) text.replace(at, 7, "\\p{sc=Han}");
    const TextDfa dfa = compile_pattern(text);
    for (const Spelling& spelling : {json, python, every}) {
      INFO(text << ' ' << spelling.quote << spelling.every);
      const Dfa own = text::quoted(dfa, spelling), slow = slow_quoted(dfa, spelling);
      CHECK(alike(own, slow));
      if (own.size() <= 2000) CHECK(own == slow);  // small ones have the same state numbers too
    }
  }
}

TEST_CASE(
    "quoted of random patterns with wide classes equals a Dfa that spells each state separately") {
  const std::vector<std::string> sets{"\\p{Lu}", "\\p{Ll}", "[\\p{L}\\p{Nd}]", "\\d",
                                      "[^a\\p{Mn}]"};
  for (std::uint32_t seed = 0; seed < test::cases(12); ++seed) {
    std::mt19937 random(seed);
    std::string pattern = "^";
    for (int part = 0; part < 3; ++part) {
      pattern += '(' + sets[random() % sets.size()] + '|' + sets[random() % sets.size()] + 'x' +
                 "){" + std::to_string(random() % 3) + ',' + std::to_string(3 + random() % 4) + '}';
    }
    const TextDfa dfa = compile_pattern(pattern + '$');
    INFO("seed " << seed << ": " << pattern);
    CHECK(alike(text::quoted(dfa, {}), slow_quoted(dfa, {})));
  }
}

TEST_CASE(
    "string_lexeme of a repeated class needs rows of constant size and linearly many states") {
  std::vector<std::size_t> states, bytes;
  for (const std::size_t n : {200U, 400U, 800U}) {
    const TextDfa text = compile_pattern(letters(n));
    const Dfa lexeme   = string_lexeme(text, ValueSyntax::json, '"');
    CHECK(text.rows().size() == n + 1);
    states.push_back(lexeme.size()), bytes.push_back(lexeme.bytes());
    CHECK(utf8_lexeme(text).bytes() < 1'000'000);
  }
  CHECK(states[2] - states[1] == 2 * (states[1] - states[0]));
  CHECK(bytes[2] < 2 * bytes[1]);
  CHECK(bytes[2] < 1'000'000);
  CHECK(states[2] > 500'000);  // a separate row for each would need 36 bytes or more
}

TEST_CASE(
    "string_lexeme of equal patterns has equal hashes and of different patterns different ones") {
  const Dfa one   = string_lexeme(compile_pattern(letters(300)), ValueSyntax::json, '"'),
            two   = string_lexeme(compile_pattern(letters(300)), ValueSyntax::json, '"'),
            other = string_lexeme(compile_pattern(letters(301)), ValueSyntax::json, '"');
  CHECK(one == two);
  CHECK(one.hash() == two.hash());
  CHECK_FALSE(one == other);
  CHECK(one.hash() != other.hash());
}

TEST_CASE("string_lexeme charges the BuildBudget and throws when the steps run out") {
  const TextDfa wide = compile_pattern("^(\\p{L}\\p{N}|\\p{N}\\p{L}){1,50}$");
  const auto cost    = [&](std::uint64_t steps) {
    const BuildBudget budget({.steps = steps});
    (void)string_lexeme(wide, ValueSyntax::json, '"');
    return budget.spent();
  };
  const BuildLimits spent = cost(50'000'000);
  CHECK(spent.steps > 1'000);
  CHECK(spent.bytes > 1'000);
  CHECK_THROWS_AS(cost(spent.steps - 1), Error);
}
