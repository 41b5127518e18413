#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/grammar/members_seen.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

constexpr int other = -1;

// Reference: a keyed set as rules on sequences of members.
struct Rules {
  std::vector<bool> live, required;
  std::vector<KeyedSet::Dependence> dependent;
  Occurrences count{};
  std::size_t leading = 0;
  bool documented = false, open = false;

  [[nodiscard]] int size() const { return static_cast<int>(live.size()); }

  // Whether a sequence breaks no rule that later members cannot repair.
  [[nodiscard]] bool is_begun(const std::vector<int>& written) const {
    for (std::size_t i = 0; i < written.size(); ++i) {
      const int member = written[i];
      if (i < leading && member != static_cast<int>(i)) return false;
      if (member == other ? !open : !live[static_cast<std::size_t>(member)]) return false;
      for (std::size_t before = 0; before < i; ++before) {
        if (member != other && written[before] == member) return false;
        if (!documented || member == other) continue;
        if (written[before] == other || written[before] > member) return false;
      }
    }
    return written.size() <= count.max;
  }
  [[nodiscard]] bool is_complete(const std::vector<int>& written) const {
    const auto has = [&](std::size_t member) {
      return std::find(written.begin(), written.end(), static_cast<int>(member)) != written.end();
    };
    for (std::size_t i = 0; i < live.size(); ++i) {
      if ((required[i] || i < leading) && !has(i)) return false;
    }
    for (const auto& [member, needed] : dependent) {
      if (has(member) && !has(needed)) return false;
    }
    return is_begun(written) && written.size() >= count.min;
  }
  // Tries all sequences; other keys only matter for the minimum count.
  [[nodiscard]] bool can_complete(std::vector<int> written) const {
    if (!is_begun(written)) return false;
    if (is_complete(written)) return true;
    for (int next = written.size() < count.min ? other : 0; next < size(); ++next) {
      written.push_back(next);
      if (can_complete(written)) return true;
      written.pop_back();
    }
    return false;
  }

  [[nodiscard]] NodeId build(Grammar& grammar) const {
    KeyedSet set{.members          = {},
                 .others           = {},
                 .separator        = grammar.literal(","),
                 .count            = count,
                 .dependent        = dependent,
                 .documented_order = documented,
                 .leading          = leading};
    for (std::size_t i = 0; i < live.size(); ++i) {
      const NodeId value = live[i] ? grammar.literal(":") : grammar.nothing();
      set.members.push_back({{std::string(1, static_cast<char>('a' + i))}, value, required[i]});
    }
    std::vector<Dfa::SparseRow> rows(2);
    rows[0].edges     = {{'x', 'x', 1}};
    rows[1].accepting = true;
    if (open) set.others.push_back({std::make_shared<const Dfa>(rows), grammar.literal(":")});
    return grammar.keyed_set(set);
  }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    for (std::size_t i = 0; i < live.size(); ++i) {
      out << (live[i] ? "live" : "dead") << (required[i] ? "! " : " ");
    }
    for (const auto& [a, b] : dependent) out << a << "->" << b << ' ';
    out << "count " << count.min << ".." << count.max << " leading " << leading
        << (documented ? " documented" : "") << (open ? " open" : "");
    return out.str();
  }
};

Rules random_rules(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Rules rules;
  const std::uint32_t n = below(5);
  for (std::uint32_t i = 0; i < n; ++i) {
    rules.live.push_back(below(6) != 0);
    rules.required.push_back(below(3) == 0);
  }
  rules.documented = below(2) == 0;
  rules.open       = below(3) == 0;
  if (below(2) == 0) rules.count.min = below(4);
  if (below(2) == 0) rules.count.max = rules.count.min + below(4);
  if (below(3) == 0) rules.leading = below(n + 1);
  for (std::uint32_t i = below(4); n > 0 && i > 0; --i) {
    rules.dependent.emplace_back(below(n), below(n));
  }
  // The documented order is not kept together with dependences and a minimum.
  if (!rules.dependent.empty() && rules.documented) rules.count.min = 0;
  return rules;
}

}  // namespace

TEST_CASE(
    "MembersSeen allows exactly the members after which a random keyed set can be completed") {
  std::size_t sets = 0, places = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    const Rules rules = random_rules(random);
    INFO("seed " << seed << ": " << rules.text());
    Grammar grammar;
    const NodeId root = rules.build(grammar);
    NodeStore store;
    const StoredId id = store.add(grammar, root);
    // NodeStore may drop a closed set with a minimum and dependences: it does not try all ways.
    const bool tries_all = rules.dependent.empty() || rules.open || rules.count.min == 0;
    if (id == NodeStore::nothing) {
      REQUIRE((!rules.can_complete({}) || !tries_all));
    } else {
      REQUIRE(rules.can_complete({}));
    }
    if (id == NodeStore::nothing) continue;
    ++sets;
    const auto& node = *store[id].as<MembersSeen::Node>();
    MembersSeen members;
    for (int walk = 0; walk < 4; ++walk) {
      std::vector<int> written;
      MembersSeen::Set seen;
      while (written.size() < 8) {
        std::string so_far;
        for (const int member : written) so_far += std::to_string(member) + ' ';
        INFO("written " << so_far);
        ++places;
        REQUIRE(members.is_complete(node, seen) == rules.is_complete(written));
        std::vector<int> may_follow;
        for (int next = other; next < rules.size(); ++next) {
          INFO("next " << next);
          std::vector<int> then = written;
          then.push_back(next);
          const auto member = static_cast<std::uint32_t>(next);
          const bool may =
              next == other ? members.may_add(node, seen) : members.may_follow(node, seen, member);
          REQUIRE(may == rules.can_complete(then));
          if (may) may_follow.push_back(next);
        }
        if (may_follow.empty()) break;
        const int next = may_follow[random() % may_follow.size()];
        written.push_back(next);
        seen = next == other ? members.after_other(node, seen)
                             : members.after(node, seen, static_cast<std::uint32_t>(next));
      }
    }
  }
  CHECK(sets > 1000);
  CHECK(places > 5000);
}

TEST_CASE("MembersSeen remembers other keys while a minimum needs different keys") {
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.literal(","), .count = {4, 9}};
  for (const char* key : {"a", "b"}) {
    set.members.push_back({{key}, grammar.literal(":"), key[0] == 'a'});
  }
  std::vector<Dfa::SparseRow> rows(2);
  rows[0].edges     = {{'x', 'x', 1}};
  rows[1].edges     = {{'x', 'x', 1}};
  rows[1].accepting = true;
  set.others.push_back({std::make_shared<const Dfa>(rows), grammar.literal(":")});
  NodeStore store;
  const StoredId id             = store.add(grammar, grammar.keyed_set(set));
  const MembersSeen::Node& node = *store[id].as<MembersSeen::Node>();
  MembersSeen seen;
  // Four keys are required, and one of them is `a`: three others are missing.
  CHECK(seen.is_tracked(node, {}));
  CHECK_FALSE(seen.remembers(node, {}));
  const auto one = seen.after_other(node, {}, 7);
  CHECK(seen.is_tracked(node, one));
  CHECK(std::vector<std::uint64_t>(seen.remembered(node, one).begin(),
                                   seen.remembered(node, one).end()) ==
        std::vector<std::uint64_t>{7});
  // A required member is counted already; any other key reduces the number that is missing.
  CHECK(seen.remembers(node, seen.after(node, one, 0)));
  const auto two = seen.after_other(node, one, 5);
  CHECK(std::vector<std::uint64_t>(seen.remembered(node, two).begin(),
                                   seen.remembered(node, two).end()) ==
        std::vector<std::uint64_t>{5, 7});
  CHECK(seen.is_tracked(node, two));
  const auto three = seen.after(node, two, 1);
  CHECK_FALSE(seen.remembers(node, three));
  CHECK_FALSE(seen.is_tracked(node, three));
  CHECK_FALSE(seen.is_complete(node, three));
  CHECK(seen.is_complete(node, seen.after(node, three, 0)));
}

TEST_CASE("MembersSeen of a distinct set remembers every key of the others") {
  Grammar grammar;
  std::vector<Dfa::Row> rows(2);
  for (unsigned b = 'a'; b <= 'z'; ++b) rows[0].next[b] = 1;
  rows[1].accepting = true;
  KeyedSet set{.separator = grammar.literal(","), .distinct = true};
  set.others.push_back({std::make_shared<const Dfa>(rows), grammar.literal(":")});
  NodeStore store;
  const StoredId id             = store.add(grammar, grammar.keyed_set(set));
  const MembersSeen::Node& node = *store[id].as<MembersSeen::Node>();
  MembersSeen seen;
  CHECK(seen.is_tracked(node, {}));
  const auto two = seen.after_other(node, seen.after_other(node, {}, 7), 5);
  CHECK(std::vector<std::uint64_t>(seen.remembered(node, two).begin(),
                                   seen.remembered(node, two).end()) ==
        std::vector<std::uint64_t>{5, 7});
  CHECK(seen.is_tracked(node, two));
  CHECK(seen.may_add(node, two));
  CHECK(seen.is_complete(node, two));
}
