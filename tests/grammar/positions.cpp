#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

// Four states over a few bytes, with random boundaries and closing states.
DfaPointer random_lexeme(std::mt19937& random) {
  std::vector<Dfa::Row> rows(4);
  for (Dfa::Row& row : rows) {
    for (const char c : std::string("abc\"")) {
      if (random() % 3 != 0) {
        row.next[static_cast<std::uint8_t>(c)] = static_cast<Dfa::State>(random() % 4);
      }
    }
    row.accepting = random() % 4 == 0;
    row.boundary  = random() % 2 == 0;
    row.closing   = random() % 4 == 0;
  }
  return std::make_shared<const Dfa>(rows);
}

Positions::Frames after(Positions& positions, const StackFrame& frame, std::uint8_t byte) {
  Positions::Frames frames;
  positions.begin_step();
  positions.move(frame, byte, frames);
  return frames;
}

// Whether a count is within its bounds after 0 to `horizon` further units.
std::vector<bool> future(Occurrences bounds, std::uint32_t count, std::uint32_t horizon) {
  std::vector<bool> fits;
  for (std::uint32_t more = 0; more <= horizon; ++more) {
    fits.push_back(count + more >= bounds.min && count + more <= bounds.max);
  }
  return fits;
}

const Occurrences bounds_to_try[] = {{0}, {3}, {20}, {0, 7}, {0, 40}, {5, 5}, {18, 40}, {30, 33}};

}  // namespace

TEST_CASE("Positions::move_inside equals move and candidates contain each byte that moves") {
  std::size_t inside = 0, moves = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Grammar grammar;
    const auto units    = static_cast<std::uint32_t>(random() % 3);
    const NodeId lexeme = grammar.choice(
        {grammar.lexeme(random_lexeme(random), {units, units + 2}), grammar.literal("ab"),
         grammar.lexeme(random_lexeme(random), {units, Occurrences::unbounded})});
    const NodeId named = grammar.trie({{"a", lexeme}, {"ab", lexeme}, {"cb\"", lexeme}});
    KeyedSet set{.members   = {{{"a", "bc"}, lexeme, false}, {{"ab"}, named, false}},
                 .others    = {{random_lexeme(random), lexeme}},
                 .separator = grammar.literal("c")};
    set.others[0].value = grammar.sequence({grammar.literal("\""), lexeme});
    const NodeId root   = grammar.repeat(grammar.choice({named, grammar.keyed_set(set)}), {1, 9},
                                         grammar.literal("b"));
    Positions positions;
    const StoredId id = positions.nodes().add(grammar, root);
    Positions::Frames frames;
    positions.begin_step();
    positions.enter(id, empty_stack, frames);
    for (int step = 0; step < 60 && !frames.empty(); ++step) {
      const StackFrame frame   = frames[random() % frames.size()];
      const ByteSet candidates = positions.candidates(frame);
      Positions::Frames all;
      for (unsigned b = 0; b < 256; ++b) {
        const auto byte = static_cast<std::uint8_t>(b);
        const auto next = after(positions, frame, byte);
        StackFrame copy = frame;
        if (positions.move_inside(copy, byte)) {
          REQUIRE(next == Positions::Frames{copy});
          ++inside;
        }
        if (!next.empty() && !candidates.contains(byte)) FAIL("no candidate: " << b);
        moves += !next.empty();
        all.insert(all.end(), next.begin(), next.end());
      }
      if (all.empty()) {  // at the end, or if counts allow nothing: start again
        positions.begin_step();
        positions.enter(id, empty_stack, all);
      }
      frames = std::move(all);
    }
  }
  CHECK(inside > 1000);
  CHECK(moves > 10'000);
}

TEST_CASE("Positions::normal merges counts of units that no text up to the horizon distinguishes") {
  std::vector<Dfa::Row> rows(1);
  rows[0].next['a']  = 0;
  rows[0].accepting  = true;
  rows[0].boundary   = true;
  const auto letters = std::make_shared<const Dfa>(rows);
  for (const Occurrences bounds : bounds_to_try) {
    for (const std::uint32_t horizon : {1U, 4U}) {
      INFO("bounds " << bounds.min << ".." << bounds.max << " horizon " << horizon);
      Grammar grammar;
      Positions positions;
      const StoredId id = positions.nodes().add(grammar, grammar.lexeme(letters, bounds));
      std::set<StackFrame> distinct;
      for (std::uint32_t count = 0; count <= std::min(bounds.max, 60U); ++count) {
        const StackFrame normal = positions.normal({id, 0, count, empty_stack}, horizon);
        REQUIRE(positions.normal(normal, horizon) == normal);
        REQUIRE(future(bounds, normal.b, horizon) == future(bounds, count, horizon));
        distinct.insert(normal);
      }
      CHECK(distinct.size() <= 2 * (horizon + 1) + 2);
    }
  }
}

TEST_CASE("Positions::normal keeps which ends of a lexeme are within reach up to the horizon") {
  constexpr std::uint32_t horizon = 2;
  const std::string letters       = "ab\"";
  // Whether two positions read the same texts of `most` bytes.
  const auto is_alike = [&](Positions& positions, const StackFrame& one, const StackFrame& other,
                            std::uint32_t most, const auto& self) -> bool {
    for (const char c : letters) {
      const auto byte = static_cast<std::uint8_t>(c);
      const auto a = after(positions, one, byte), b = after(positions, other, byte);
      if (a.size() != b.size()) return false;
      for (std::size_t i = 0; i < a.size() && most > 1; ++i) {
        if (a[i].node != b[i].node || !self(positions, a[i], b[i], most - 1, self)) return false;
      }
    }
    return true;
  };
  std::size_t merged = 0, kept = 0;
  for (const char* pattern : {"^(a{5}b)*$", "^(a{2}|b{5})*$", "^a*b{0,9}$", "^a{4}(b|a{3}b)*$"}) {
    for (const Occurrences bounds : {Occurrences{30}, Occurrences{3, 40}, Occurrences{20, 50}}) {
      INFO(pattern << " of " << bounds.min << " to " << bounds.max);
      Grammar grammar;
      const NodeId lexeme = grammar.lexeme(compile_pattern(pattern), bounds, [](const auto& text) {
        return std::make_shared<const Dfa>(string_lexeme(text, ValueSyntax::json, '"'));
      });
      if (!grammar[lexeme].as<Grammar::Node::Lexeme>()->ends) continue;
      Positions positions;
      const StoredId id = positions.nodes().add(grammar, lexeme);
      std::set<StackFrame> seen;
      std::vector<StackFrame> work{{id, 0, 0, empty_stack}};
      while (!work.empty()) {
        const StackFrame frame = work.back();
        work.pop_back();
        if (frame.node == Positions::text_end || !seen.insert(frame).second) continue;
        const StackFrame normal = positions.normal(frame, horizon);
        ++(normal == frame ? kept : merged);
        REQUIRE(positions.normal(normal, horizon) == normal);
        REQUIRE(is_alike(positions, frame, normal, horizon, is_alike));
        for (const char c : letters) {
          const auto next = after(positions, frame, static_cast<std::uint8_t>(c));
          work.insert(work.end(), next.begin(), next.end());
        }
      }
    }
  }
  INFO(merged << " merged, " << kept << " kept");
  CHECK(merged > 100);
  CHECK(kept > 100);
}

TEST_CASE(
    "Positions::normal merges counts of items in the stack that the horizon does not distinguish") {
  const std::uint32_t horizon = 3;
  for (const Occurrences bounds : bounds_to_try) {
    INFO("bounds " << bounds.min << ".." << bounds.max);
    Grammar grammar;
    const NodeId item = grammar.sequence({grammar.literal("ab"), grammar.literal("b")});
    const NodeId root = grammar.sequence(
        {grammar.repeat(grammar.tagged(1, item), bounds, grammar.empty()), grammar.literal("c")});
    Positions positions;
    Positions::Frames frames;
    positions.begin_step();
    positions.enter(positions.nodes().add(grammar, root), empty_stack, frames);
    // The positions inside the first item, the second item, and so on.
    std::vector<std::pair<std::vector<bool>, StackFrame>> places;
    std::set<StackFrame> distinct;
    for (std::uint32_t count = 1; count <= std::min(bounds.max, 60U); ++count) {
      for (const char c : std::string("abb")) {
        Positions::Frames next;
        positions.begin_step();
        for (const StackFrame& frame : frames) {
          positions.move(frame, static_cast<std::uint8_t>(c), next);
        }
        frames = std::move(next);
        if (c != 'a') continue;
        REQUIRE(frames.size() == 1);
        places.emplace_back(future(bounds, count, horizon), positions.normal(frames[0], horizon));
        REQUIRE(positions.normal(places.back().second, horizon) == places.back().second);
        distinct.insert(places.back().second);
      }
      REQUIRE_FALSE(frames.empty());
    }
    for (const auto& [fits, place] : places) {
      for (const auto& [other_fits, other] : places) {
        if (place == other && fits != other_fits) FAIL("different futures are made one");
      }
    }
    CHECK(distinct.size() <= 2 * (horizon + 1) + 2);
    const StackFrame end{Positions::text_end, 0, 0, empty_stack};
    CHECK(positions.normal(end, horizon) == end);
  }
}
