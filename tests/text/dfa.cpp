#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using test::accepts;

namespace {

bool accepts(const std::vector<Dfa::Row>& rows, const std::string& text) {
  Dfa::State state = 0;
  for (const char c : text) {
    state = rows[state].next[static_cast<unsigned char>(c)];
    if (state == Dfa::dead) return false;
  }
  return rows[state].accepting;
}

}  // namespace

TEST_CASE("Dfa keeps the language of its rows and only states that can reach acceptance") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    std::vector<Dfa::Row> rows(1 + random() % 6);
    for (Dfa::Row& row : rows) {
      row.accepting = random() % 4 == 0;
      for (const char c : std::string("abc")) {
        if (random() % 2)
          row.next[static_cast<unsigned char>(c)] = static_cast<Dfa::State>(random() % rows.size());
      }
    }
    const Dfa dfa(rows);
    std::vector<std::string> texts{""};
    for (std::size_t i = 0; i < texts.size() && texts[i].size() < 5; ++i) {
      for (const char c : std::string("abc")) texts.push_back(texts[i] + c);
    }
    for (const std::string& text : texts) {
      const bool wanted = accepts(rows, text);
      REQUIRE(accepts(dfa, text) == wanted);
    }
    // Each state reaches acceptance: found by iteration from the accepting states.
    std::vector<char> ends(dfa.size(), 0);
    for (std::size_t pass = 0; pass <= dfa.size(); ++pass) {
      for (Dfa::State s = 0; s < dfa.size(); ++s) {
        bool reaches = dfa.accepting(s);
        dfa.live(s).for_each(
            [&](std::uint8_t byte) { reaches = reaches || ends[dfa.next(s, byte)]; });
        ends[s] = reaches;
      }
    }
    for (const char end : ends) REQUIRE(end);
    // The same edges in another order, one per byte, make an equal table.
    std::vector<Dfa::SparseRow> sparse;
    for (const Dfa::Row& row : rows) {
      auto& edges = sparse.emplace_back(Dfa::SparseRow{{}, row.accepting}).edges;
      for (const char c : std::string("cab")) {
        const auto byte     = static_cast<std::uint8_t>(c);
        const Dfa::State to = row.next[byte];
        if (to != Dfa::dead) edges.push_back({byte, byte, to});
      }
    }
    REQUIRE(Dfa(sparse) == dfa);
    REQUIRE(Dfa(sparse).hash() == dfa.hash());
  }
}

TEST_CASE("Dfa::is_alike is true only where the texts that reach its states do the same",
          "[property]") {
  const std::string pieces[] = {
      "a", "b", " ", ",", "\xC3\xA9", "\\n", "\\u00e9", "\"", "\xF0\x9F\x98\x80"};
  const char* patterns[] = {"^(?:[ab]+ ){0,12}[ab]+$", "^(?:\\S+\\s+){0,9}\\S+$",
                            "^(?:[^,]*,){0,9}[^,]{0,3}$", "^[a\u00e9]{0,9}$",
                            "^(?:ab|ba){2,8}\\n?$"};
  std::size_t alike = 0, different = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Dfa dfa = string_lexeme(compile_pattern(patterns[random() % std::size(patterns)]),
                                  ValueSyntax::json, '"');
    std::vector<std::string> texts;
    for (int n = 0; n < 20; ++n) {
      std::string& text = texts.emplace_back();
      for (std::size_t length = 1 + random() % 4; length > 0; --length) {
        text += pieces[random() % std::size(pieces)];
      }
    }
    for (int pair = 0; pair < 200; ++pair) {
      const auto a = static_cast<Dfa::State>(random() % dfa.size());
      const auto b = static_cast<Dfa::State>(random() % dfa.size());
      std::set<Dfa::State> reached;
      const auto follow = [&](Dfa::State state, const std::string& text, const auto& visit) {
        for (const char c : text) {
          if (state != Dfa::dead) state = dfa.next(state, static_cast<unsigned char>(c));
          visit(state);
        }
      };
      for (const std::string& text : texts) {
        follow(a, text, [&](Dfa::State state) {
          if (state != Dfa::dead) reached.insert(state);
        });
      }
      const bool is_alike = dfa.is_alike(a, b, std::vector(reached.begin(), reached.end()));
      REQUIRE(dfa.is_alike(a, a, std::vector(reached.begin(), reached.end())));
      (is_alike ? alike : different) += a != b;
      if (!is_alike) continue;
      const auto flags = [&](Dfa::State state) {
        return state == Dfa::dead ? -1
                                  : dfa.accepting(state) + 2 * dfa.boundary(state) +
                                        4 * dfa.closing(state) + 8 * dfa.live(state).empty();
      };
      for (const std::string& text : texts) {
        std::vector<int> from_a, from_b;
        follow(a, text, [&](Dfa::State state) { from_a.push_back(flags(state)); });
        follow(b, text, [&](Dfa::State state) { from_b.push_back(flags(state)); });
        REQUIRE(from_a == from_b);
      }
    }
  }
  CHECK(alike > 300);
  CHECK(different > 300);
}
