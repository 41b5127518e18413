#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <tooldecode/text/dfa_lengths.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using text::Dfa;
using text::DfaLengths;

namespace {

// Breadth-first search over all bytes.
std::uint32_t slow_length(const Dfa& dfa, Dfa::State from) {
  std::set<Dfa::State> seen, layer{from};
  for (std::uint32_t length = 1; !layer.empty(); ++length) {
    std::set<Dfa::State> next;
    for (const Dfa::State state : layer) {
      for (unsigned b = 0; b < 256; ++b) {
        const Dfa::State after = dfa.next(state, static_cast<std::uint8_t>(b));
        if (after == Dfa::dead) continue;
        if (dfa.accepting(after)) return length;
        if (seen.insert(after).second) next.insert(after);
      }
    }
    layer = next;
  }
  return DfaLengths::none;
}

}  // namespace

TEST_CASE("DfaLengths of random automata equals a breadth-first search") {
  std::mt19937 random(3);
  text::KnownDfaLengths lengths;
  std::size_t unreachable = 0, far = 0;
  std::vector<Dfa> dfas;  // KnownDfaLengths identifies them by address
  dfas.reserve(400);
  for (int round = 0; round < 400; ++round) {
    INFO("round " << round);
    std::vector<Dfa::Row> rows(1 + random() % 8);
    for (Dfa::Row& row : rows) {
      row.accepting = random() % 5 == 0;
      for (const char c : {'a', 'b', 'c'}) {
        if (random() % 3 == 0)
          row.next[static_cast<unsigned char>(c)] = static_cast<Dfa::State>(random() % rows.size());
      }
    }
    const Dfa& dfa        = dfas.emplace_back(rows);
    std::uint32_t longest = 0;
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      const std::uint32_t length = lengths.of(dfa)[state];
      CHECK(length == slow_length(dfa, state));
      if (length != DfaLengths::none) longest = std::max(longest, length);
      unreachable += length == DfaLengths::none;
      far += length > 1 && length < DfaLengths::none;
    }
    CHECK(lengths.of(dfa).longest() == longest);
  }
  CHECK(unreachable > 50);
  CHECK(far > 50);
  CHECK(lengths.bytes() > 0);
}

TEST_CASE("DfaLengths of lexemes whose states share rows equals a breadth-first search") {
  text::KnownDfaLengths lengths;
  std::vector<Dfa> lexemes;
  lexemes.reserve(3);
  for (const char* pattern : {"^\\p{L}{1,40}$", "^[\\p{Nd}a]{7}\\p{L}*$", "^(é|\\p{Lu}b){2,9}x$"}) {
    INFO(pattern);
    const Dfa& dfa = lexemes.emplace_back(
        text::string_lexeme(text::compile_pattern(pattern), text::ValueSyntax::json, '"'));
    std::uint32_t longest = 0;
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      CHECK(lengths.of(dfa)[state] == slow_length(dfa, state));
      if (lengths.of(dfa)[state] != DfaLengths::none) {
        longest = std::max(longest, lengths.of(dfa)[state]);
      }
    }
    CHECK(lengths.of(dfa).longest() == longest);
  }
}

TEST_CASE("one_of_each_column returns one byte for each column of a Dfa") {
  std::vector<Dfa::Row> rows(2);
  for (char c = 'a'; c <= 'z'; ++c) rows[0].next[static_cast<unsigned char>(c)] = 1;
  rows[1].accepting = true;
  const Dfa dfa(rows);
  std::set<std::size_t> columns;
  for (const std::uint8_t byte : text::one_of_each_column(dfa)) columns.insert(dfa.column(byte));
  CHECK(columns.size() == text::one_of_each_column(dfa).size());
  for (unsigned b = 0; b < 256; ++b) {
    CHECK(columns.count(dfa.column(static_cast<std::uint8_t>(b))) == 1);
  }
}
