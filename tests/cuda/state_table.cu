#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_table.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

/// State n allows the tokens below n + 10; token t leads to state n + t.
struct Sums {
  int fails_at = -1, refused = -1;  // a state without a mask, a token that only the mask allows

  struct State {
    int sum                                            = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return 40; }
  [[nodiscard]] State initial() const { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (token == refused) return std::nullopt;
    if (token >= state.sum + 10 || token >= 40) return std::nullopt;
    return State{state.sum + token};
  }
  void fill_mask(State state, MaskView mask) const {
    if (state.sum == fails_at) throw Error(Errc::limit_exceeded, "mask", "is too large");
    for (std::size_t word = 0; word < mask.size(); ++word) mask[word] = word_of(state.sum, word);
  }
  [[nodiscard]] bool is_accepting(State) const { return true; }
  [[nodiscard]] bool is_finished(State) const { return false; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }

  [[nodiscard]] static std::uint32_t word_of(int sum, std::size_t word) {
    std::uint32_t bits = 0;
    for (int t = 0; t < 32; ++t) {
      const int token = static_cast<int>(word) * 32 + t;
      if (token < sum + 10 && token < 40) bits |= 1U << t;
    }
    return bits;
  }
};

namespace {

using Verdict = tooldecode::cuda::TreeVerdict;

constexpr int words = 2;  // of 40 tokens

std::vector<std::uint32_t> masks_of(const std::vector<int>& sums) {
  std::vector<std::uint32_t> masks;
  for (const int sum : sums) {
    for (std::size_t word = 0; word < words; ++word) {
      masks.push_back(sum < 0 ? 0 : Sums::word_of(sum, word));
    }
  }
  return masks;
}

/// One round of one sequence by hand: a root, a level of two nodes, and a tree of three.
struct HandMadeRound {
  Stream stream;
  DeviceBuffer<TokenId> roots, frontier_tokens, tokens;
  DeviceBuffer<std::int32_t> frontier_parents, parents, sizes;
  DeviceBuffer<std::uint64_t> ancestors;
  DeviceBuffer<std::uint32_t> masks{2 * words}, tree_masks{4 * words};

  /// The nodes are the root, a and b below it, and c below a.
  HandMadeRound(TokenId a, TokenId b, TokenId c)
      : roots(std::vector<TokenId>{1}),
        frontier_tokens(std::vector<TokenId>{a, b}),
        tokens(padded<TokenId>({1, a, b, c}, -1)),
        frontier_parents(std::vector<std::int32_t>{0, 0}),
        parents(padded<std::int32_t>({0, 0, 0, 1}, 0)),
        sizes(std::vector<std::int32_t>{4}),
        ancestors(padded<std::uint64_t>({0b1, 0b11, 0b101, 0b1011}, 0)) {}

  template <class N>
  static std::vector<N> padded(std::vector<N> numbers, N padding) {
    numbers.resize(max_nodes, padding);
    return numbers;
  }
  [[nodiscard]] DraftLevel level(int i) const {
    return {.level     = i,
            .rows      = i == 0 ? 1 : 2,
            .sequences = 1,
            .roots     = roots.data(),
            .frontier  = {.tokens = frontier_tokens.data(), .parents = frontier_parents.data()}};
  }
  [[nodiscard]] DraftTreeView tree() const {
    return {.tokens    = tokens.data(),
            .parents   = parents.data(),
            .ancestors = ancestors.data(),
            .sizes     = sizes.data()};
  }
  /// The masks of both levels, and then those of the tree.
  std::vector<std::uint32_t> run(StateTable<Sums>& table, const Verdict& verdict) {
    std::vector<std::uint32_t> all;
    for (int i = 0; i < 2; ++i) {
      table.fill_level(level(i), {masks.data(), words}, stream.get());
      stream.wait();
      const auto of_level = masks.download();
      all.insert(all.end(), of_level.begin(), of_level.begin() + (i + 1) * words);
    }
    table.fill_tree(tree(), 4, {tree_masks.data(), words}, stream.get());
    stream.wait();
    const auto of_tree = tree_masks.download();
    all.insert(all.end(), of_tree.begin(), of_tree.end());
    const DeviceBuffer<Verdict> verdicts(std::vector<Verdict>{verdict});
    table.keep(verdicts.data(), stream.get());
    stream.wait();
    table.learn(std::vector<Verdict>{verdict}, stream);
    return all;
  }
};

}  // namespace

TEST_CASE("StateTable: cuts what it does not know, learns it, and then has its masks") {
  test::on_device([] {
    const Sums sums;
    const Stream stream;
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2, .states = 1024, .steps = 1 << 12});
    table.start(0, {5}, stream);
    Verdict verdict{.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {3}};
    HandMadeRound first(3, 4, 7);
    CHECK(first.run(table, verdict) == masks_of({5, -1, -1, 5, -1, -1, -1}));
    auto tokens = first.tokens.download();
    CHECK(tokens[0] == 1);
    CHECK(tokens[1] == cut_token);
    CHECK(tokens[2] == cut_token);
    CHECK(tokens[3] == cut_token);
    CHECK(table.state(0) == Sums::State{8});
    CHECK(table.counts().misses == 5);  // each of a and b twice, and the emitted token

    // The same draft at the same state: its first two steps are known, the third one is not.
    table.start(0, {5}, stream);
    HandMadeRound second(3, 4, 7);
    CHECK(second.run(table, verdict) == masks_of({5, 8, 9, 5, 8, 9, -1}));
    CHECK(second.tokens.download()[3] == cut_token);

    table.start(0, {5}, stream);
    verdict = {.accepted = 2, .kept = 3, .emitted = 3, .path = {1, 3, -1}, .tokens = {3, 7, 2}};
    HandMadeRound third(3, 4, 7);
    CHECK(third.run(table, verdict) == masks_of({5, 8, 9, 5, 8, 9, 15}));
    CHECK(third.tokens.download()[3] == 7);
    CHECK(table.state(0) == Sums::State{17});
    HandMadeRound fourth(0, 1, 2);  // the state after the emitted tokens is the root's
    CHECK(fourth.run(table, {.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {0}})
              .at(0) == Sums::word_of(17, 0));
    CHECK(table.counts().clears == 0);
  });
}

TEST_CASE("StateTable, full: begins anew with the sequences that are there") {
  test::on_device([] {
    const Sums sums;
    const Stream stream;
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2, .states = 1024, .steps = 1 << 12});
    for (int sum = 0; sum < 700; ++sum) table.start(0, {sum}, stream);
    CHECK(table.counts().clears > 0);
    CHECK(table.counts().states < 512);
    const Verdict verdict{.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {3}};
    HandMadeRound round(3, 4, 7);
    CHECK(round.run(table, verdict) == masks_of({699, -1, -1, 699, -1, -1, -1}));
    CHECK(table.state(0) == Sums::State{702});
  });
}

TEST_CASE("StateTable, no sequence: forbids everything") {
  test::on_device([] {
    const Sums sums;
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2});
    HandMadeRound round(3, 4, 7);
    round.roots.upload(std::vector<TokenId>{-1});
    round.tokens.upload(std::vector<TokenId>{-1});
    const Verdict verdict{.accepted = 0, .kept = 0, .emitted = 0, .path = {-1}, .tokens = {-1}};
    CHECK(round.run(table, verdict) == masks_of({-1, -1, -1, -1, -1, -1, -1}));
    CHECK_FALSE(table.state(0).has_value());
  });
}

TEST_CASE("StateTable, a model with more or fewer tokens than the constraint: fills each row") {
  test::on_device([] {
    const Sums sums;
    for (const int row_words : {1, 2, 4}) {
      INFO("words " << row_words);
      HandMadeRound round(3, 4, 7);
      StateTable<Sums> table(sums, {.sequences = 1, .width = 2});
      table.start(0, {5}, round.stream);
      const auto size = static_cast<std::size_t>(row_words);
      const DeviceBuffer<std::uint32_t> level(std::vector<std::uint32_t>(size, ~0U));
      const DeviceBuffer<std::uint32_t> nodes(std::vector<std::uint32_t>(4 * size, ~0U));
      table.fill_level(round.level(0), {level.data(), row_words}, round.stream.get());
      table.fill_tree(round.tree(), 4, {nodes.data(), row_words}, round.stream.get());
      round.stream.wait();
      std::vector<std::uint32_t> expected(size);
      for (std::size_t word = 0; word < size && word < words; ++word) {
        expected[word] = Sums::word_of(5, word);
      }
      CHECK(level.download() == expected);
      expected.resize(4 * size);  // the other nodes are not known
      CHECK(nodes.download() == expected);
    }
  });
}

TEST_CASE(
    "StateTable, a mask that fails: has the sequences of before, and learns when asked again") {
  test::on_device([] {
    Sums sums;
    HandMadeRound round(3, 4, 7);
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2});
    table.start(0, {5}, round.stream);
    const Verdict verdict{.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {3}};
    sums.fails_at = 8;
    CHECK_THROWS_WITH(round.run(table, verdict), "mask: is too large");
    CHECK(table.state(0) == Sums::State{5});
    CHECK_THROWS_WITH(table.learn(std::vector<Verdict>{verdict}, round.stream),
                      "mask: is too large");
    sums.fails_at = -1;
    table.learn(std::vector<Verdict>{verdict}, round.stream);
    CHECK(table.state(0) == Sums::State{8});
    CHECK(table.counts().misses == 5);
    table.start(0, {5}, round.stream);
    HandMadeRound second(3, 4, 7);
    CHECK(second.run(table, verdict) == masks_of({5, 8, 9, 5, 8, 9, -1}));

    sums.fails_at = 30;
    CHECK_THROWS_WITH(table.start(0, {30}, round.stream), "mask: is too large");
    CHECK(table.state(0) == Sums::State{8});
    sums.fails_at = -1;
    table.start(0, {30}, round.stream);
    HandMadeRound third(3, 4, 7);
    CHECK(third.run(table, verdict) == masks_of({30, -1, -1, 30, -1, -1, -1}));
  });
}

TEST_CASE("StateTable, a constraint that refuses what its mask allowed: names the token") {
  test::on_device([] {
    Sums sums;
    sums.refused = 3;
    HandMadeRound round(2, 4, 7);
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2});
    table.start(0, {5}, round.stream);
    const Verdict verdict{.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {3}};
    CHECK_THROWS_WITH(round.run(table, verdict),
                      "sequence 0, token 3: was emitted under the constraint's mask, but the "
                      "constraint refuses it");
    CHECK(table.state(0) == Sums::State{5});
  });
}

TEST_CASE("StateTable, a depth of zero: counts the misses of one round") {
  test::on_device([] {
    const Sums sums;
    HandMadeRound round(3, 4, 7);
    StateTable<Sums> table(sums, {.sequences = 1, .width = 2});
    const std::vector<Verdict> verdicts{
        {.accepted = 0, .kept = 1, .emitted = 1, .path = {-1}, .tokens = {3}}};
    for (const std::size_t misses : {1U, 1U}) {  // the second round lacks nothing
      table.start(0, {5}, round.stream);
      round.sizes.upload(std::vector<std::int32_t>{1});
      table.fill_tree(round.tree(), 4, {round.tree_masks.data(), words}, round.stream.get());
      const DeviceBuffer<Verdict> on_device(verdicts);
      table.keep(on_device.data(), round.stream.get());
      round.stream.wait();
      table.learn(verdicts, round.stream);
      CHECK(table.counts().misses == misses);
    }
  });
}

TEST_CASE("StateTable, wrong arguments: names them") {
  static_assert(!std::is_constructible_v<StateTable<Sums>, Sums, StateTableOptions>);
  const Sums sums;
  const Stream stream;
  StateTable<Sums> table(sums, {.sequences = 2, .width = 3});
  CHECK_THROWS_WITH(table.start(2, {}, stream), "sequence 2: must be from 0 to 1");
  CHECK_THROWS_WITH(table.stop(-1), "sequence -1: must be from 0 to 1");
  CHECK_THROWS_WITH(table.state(2), "sequence 2: must be from 0 to 1");
  CHECK_THROWS_WITH(table.learn({}, stream), "verdicts 0: must be 2, one per sequence");
  CHECK_THROWS_WITH(table.require({.sequences = 1}), "sequences 1: must be the StateTable's 2");
  CHECK_THROWS_WITH(table.require({.sequences = 2, .tree = {.width = 4}}),
                    "width 4: must be at most the StateTable's 3");
  CHECK_NOTHROW(table.require({.sequences = 2, .tree = {.width = 3}}));
}

TEST_CASE("StateTable, wrong sizes: names them") {
  const Sums sums;
  const auto make = [&](const StateTableOptions& options) {
    return [&sums, options] { StateTable<Sums>(sums, options); };
  };
  CHECK_THROWS_WITH(make({.sequences = 0})(), "sequences 0: must be 1 or more");
  CHECK_THROWS_WITH(make({.width = 65})(), "width 65: must be from 1 to 64");
  CHECK_THROWS_WITH(make({.states = 100})(),
                    "states 100: must be 1024 or more for this many sequences");
  CHECK_THROWS_WITH(make({.steps = 3000})(),
                    "steps 3000: must be a power of two, and four times the states");
}
