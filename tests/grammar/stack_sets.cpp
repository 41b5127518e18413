#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <tooldecode/grammar/stack_sets.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

// A store with a repetition of a letter.
struct Nodes {
  Nodes(Occurrences bounds) {
    Grammar grammar;
    repeat = store.add(grammar, grammar.repeat(grammar.literal("a"), bounds, grammar.empty()));
  }
  NodeStore store;
  StoredId repeat;
};

using Path = std::vector<std::tuple<StoredId, std::uint32_t, std::uint32_t>>;

// All stacks that an id stands for, frame by frame.
void list(const StackSets& stacks, StackId id, Path path, std::set<Path>& all) {
  if (id == empty_stack) {
    all.insert(path);
    return;
  }
  const StackFrame& frame = stacks[id];
  if (frame.node == StackSets::bundle) {
    for (const StackId one : stacks.ones(frame)) list(stacks, one, path, all);
    return;
  }
  path.emplace_back(frame.node, frame.a, frame.b);
  list(stacks, frame.below, path, all);
}
std::set<Path> paths(const StackSets& stacks, StackId id) {
  std::set<Path> all;
  list(stacks, id, {}, all);
  return all;
}

}  // namespace

TEST_CASE("StackSets::joined contains exactly the joined stacks and merges those with equal tops") {
  const Nodes nodes({0, 64});
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    StackSets stacks(nodes.store);
    std::vector<StackId> pool{empty_stack}, some;
    for (int i = 0; i < 30; ++i) {
      pool.push_back(
          stacks.push({NodeStore::empty, static_cast<std::uint32_t>(random() % 3),
                       static_cast<std::uint32_t>(random() % 2), pool[random() % pool.size()]}));
    }
    std::set<Path> expected;
    for (std::size_t n = 2 + random() % 12; n > 0; --n) {
      some.push_back(pool[random() % pool.size()]);
      expected.merge(paths(stacks, some.back()));
    }
    const StackId joined = stacks.joined(some);
    CAPTURE(round);
    REQUIRE(paths(stacks, joined) == expected);
    REQUIRE(stacks.joined({joined, some[0]}) == joined);
    if (stacks[joined].node != StackSets::bundle || joined == empty_stack) continue;
    std::set<Path> united;
    for (const StackId one : stacks.united_ones(stacks[joined])) united.merge(paths(stacks, one));
    REQUIRE(united == expected);
    if (stacks.ones(stacks[joined]).size() <= 4) continue;
    std::set<std::tuple<bool, std::uint32_t, std::uint32_t>> tops;
    for (const StackId one : stacks.united_ones(stacks[joined])) {
      REQUIRE(tops.emplace(one != empty_stack, stacks[one].a, stacks[one].b).second);
    }
  }
}

TEST_CASE("StackSets::joined merges stacks that differ only in counts of repetitions") {
  const Nodes nodes({0, 64});
  StackSets stacks(nodes.store);
  std::vector<StackId> ids;
  for (std::uint32_t count = 1; count <= 64; ++count) {
    ids.push_back(stacks.push({nodes.repeat, count, 0, empty_stack}));
  }
  CHECK(stacks.joined(ids) == ids[0]);  // what may follow the others may follow the first
  const Nodes fifty({50, 64});
  StackSets ranges(fifty.store);
  ids.clear();
  for (std::uint32_t count = 1; count <= 40; ++count) {
    ids.push_back(ranges.push({fifty.repeat, count, 0, empty_stack}));
  }
  const StackFrame all = ranges[ranges.joined(ids)];
  REQUIRE(all.node == fifty.repeat);
  CHECK(ranges.counts().size() > 1);
  CHECK(ranges.counts().may_go_on(all.a, {50, 64}));
  CHECK_FALSE(ranges.counts().may_end(all.a, {50, 64}));
  // Nested repetitions, whose outer counts differ too.
  ids.clear();
  for (std::uint32_t outer = 1; outer <= 8; ++outer) {
    for (std::uint32_t inner = 1; inner <= 8; ++inner) {
      ids.push_back(stacks.push(
          {nodes.repeat, inner, 0, stacks.push({nodes.repeat, outer, 1, empty_stack})}));
    }
  }
  const StackFrame bundle = stacks[stacks.joined(ids)];
  REQUIRE(bundle.node == StackSets::bundle);
  CHECK(stacks.ones(bundle).size() == 8);
  CHECK(stacks.united_ones(bundle).size() == 1);
}

TEST_CASE("StackSets::normal merges counts that are far from their bounds in deep stacks") {
  const Nodes nodes({0, 1000});
  StackSets stacks(nodes.store);
  StackId deep, twin;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    deep = stacks.push({nodes.repeat, 1 + i % 7, 0, deep});
    twin = stacks.push({nodes.repeat, 3, 0, twin});
  }
  CHECK(stacks.normal(deep, 128) == stacks.normal(twin, 128));
  CHECK(stacks.normal(stacks.push({nodes.repeat, 990, 0, empty_stack}), 128) !=
        stacks.normal(stacks.push({nodes.repeat, 3, 0, empty_stack}), 128));
  CHECK(stacks.bytes() > 100'000 * sizeof(StackFrame));
}
