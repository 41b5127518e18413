#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/rules.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

// Whether a derivation of at most `depth` nodes on each path ends in the empty text.
class EmptyDerivations {
 public:
  explicit EmptyDerivations(const Rules& rules) : rules_(rules) {}

  bool has(Rules::Id id, std::size_t depth) {
    if (depth == 0) return false;
    const auto [known, is_new] = known_.try_emplace({id, depth}, false);
    if (!is_new) return known->second;
    const Rules::Node& node = rules_[id];
    const auto part         = [&](std::size_t i) { return has(node.parts[i], depth - 1); };
    bool found              = false;
    switch (node.kind) {
      case Rules::Kind::text:
        found = node.text.empty();
        break;
      case Rules::Kind::pair:
        found = part(0) && part(1);
        break;
      case Rules::Kind::repeat:
        found = node.occurrences.min == 0 || part(0);
        break;
      case Rules::Kind::choice:
      case Rules::Kind::rule:
        for (std::size_t i = 0; i < node.parts.size(); ++i) found = found || part(i);
        break;
      default:
        break;
    }
    return known->second = found;
  }

 private:
  const Rules& rules_;
  std::map<std::pair<Rules::Id, std::size_t>, bool> known_;
};

}  // namespace

TEST_CASE("Rules::nullable holds exactly where a derivation ends in the empty text") {
  std::size_t empty = 0, other = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Rules g;
    std::vector<Rules::Id> rules, all;
    for (int i = 0; i < 4; ++i) rules.push_back(g.reserve());
    all             = rules;
    const auto some = [&] { return all[random() % all.size()]; };
    for (int i = 0; i < 16; ++i) {
      switch (random() % 6) {
        case 0:
          all.push_back(g.text(random() % 2 ? "x" : ""));
          break;
        case 1:
          all.push_back(g.choice({some(), some()}));
          break;
        case 2:
          all.push_back(g.repeat(
              some(), {static_cast<std::uint32_t>(random() % 3 ? 1 + random() % 2 : 0), 3}));
          break;
        case 3:
          all.push_back(g.part([](tooldecode::Grammar& grammar) { return grammar.literal("p"); }));
          break;
        default:
          all.push_back(g.sequence({some(), some(), some()}));
      }
    }
    for (std::size_t i = 0; i < 3; ++i) g.define(rules[i], some());  // the last one stays undefined
    EmptyDerivations derivations(g);
    const auto nullable = g.nullable();
    REQUIRE(nullable.size() == g.size());
    for (Rules::Id id = 0; id < g.size(); ++id) {
      INFO("node " << id);
      const bool expected = derivations.has(id, g.size());
      REQUIRE((nullable[id] != 0) == expected);
      ++(expected ? empty : other);
    }
  }
  CHECK(empty > 500);
  CHECK(other > 500);
}

TEST_CASE("Rules::nullable finds parts that may be empty through mutually recursive rules") {
  Rules g;
  const auto a = g.reserve(), b = g.reserve(), c = g.reserve();
  const auto x = g.text("x"), none = g.text("");
  const auto any = g.repeat(x, {}), some = g.repeat(x, {1});
  const auto maybe = g.choice({x, g.sequence({none, any})});
  g.define(a, g.sequence({b, maybe, any}));
  g.define(b, g.choice({g.sequence({a, x}), none}));
  g.define(c, g.sequence({c, c}));
  const auto thrice   = g.repeat(maybe, {3, 3});
  const auto nullable = g.nullable();
  for (const auto id : {a, b, none, any, maybe, thrice}) CHECK(nullable[id]);
  for (const auto id : {c, x, some}) CHECK_FALSE(nullable[id]);
}

TEST_CASE("Rules::sequence of one part is that part, and of none the empty text") {
  Rules g;
  const auto x = g.text("x");
  CHECK(g.sequence({x}) == x);
  const auto none = g.sequence({});
  CHECK(g[none].kind == Rules::Kind::text);
  CHECK(g[none].text.empty());
}

TEST_CASE("Rules::repeat of a repetition is one repetition where no bound is lost") {
  using text::Occurrences;
  Rules rules;
  const auto x      = rules.text("x");
  const auto nested = [&](Occurrences inner, Occurrences outer) {
    return rules[rules.repeat(rules.repeat(x, inner), outer)];
  };
  for (const Occurrences inner : {Occurrences{0}, Occurrences{1}, Occurrences{0, 1}}) {
    for (const Occurrences outer :
         {Occurrences{0}, Occurrences{1}, Occurrences{0, 1}, Occurrences{2, 5}, Occurrences{3}}) {
      CAPTURE(inner.min, inner.max, outer.min, outer.max);
      const auto node = nested(inner, outer);
      REQUIRE(node.parts[0] == x);
      std::set<std::uint32_t> expected;  // counts of at most 8 in all
      for (std::uint32_t n = outer.min; n <= std::min(outer.max, 8U); ++n) {
        const std::uint32_t most = inner.max == Occurrences::unbounded ? 8 : n * inner.max;
        for (std::uint32_t k = n * inner.min; k <= std::min(n == 0 ? 0 : most, 8U); ++k)
          expected.insert(k);
      }
      std::set<std::uint32_t> given;
      for (std::uint32_t k = node.occurrences.min; k <= std::min(node.occurrences.max, 8U); ++k)
        given.insert(k);
      CHECK(given == expected);
    }
  }
  CHECK(nested({2, 3}, {2, 2}).parts[0] != x);  // 4 to 6, but {1,3} of {2,2} has gaps
  CHECK(nested({0}, {0, 0}).occurrences.max == 0);
}

TEST_CASE("Rules throws when it exceeds its limit of nodes") {
  Rules g;
  const auto fill = [&] {
    while (true) (void)g.text("x");
  };
  CHECK_THROWS_AS(fill(), Error);
  CHECK(g.size() == Rules::max_nodes);
}
