#include <random>
#include <string>

#include <tooldecode/text/dfa.hpp>

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
