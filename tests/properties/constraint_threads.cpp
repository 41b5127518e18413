// A separate executable, small enough for a build with the thread sanitizer.
#include <cstddef>
#include <cstdint>
#include <latch>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <properties/random_walk.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

namespace {

// Everything that a walk sees, except the numbers of states, which depend on the threads' order.
std::string trace(const ToolCallFSM& calls, unsigned seed) {
  std::mt19937 random(seed);
  std::ostringstream seen;
  TokenMask mask(calls.vocabulary_size());
  auto state = calls.initial();
  for (int step = 0; step < 40 && !calls.is_finished(state); ++step) {
    seen << calls.jump_forward(state) << '|' << calls.is_accepting(state)
         << static_cast<int>(calls.mode(state)) << calls.find_tool(state).value_or(99)
         << calls.find_argument(state).value_or(99);
    calls.fill_mask(state, mask.words());
    std::uint64_t hash = 0;
    for (const std::uint32_t word : mask.words()) hash = hash_combine(hash, word);
    const TokenId token = test::draw_token(test::tokens_of(mask), calls.vocabulary(), random);
    seen << '|' << hash << '|' << calls.vocabulary().bytes(token) << '\n';
    state = calls.advance(state, token).value();
  }
  return seen.str();
}

}  // namespace

TEST_CASE("ToolCallFSM shared by threads from the start gives what one thread gets") {
  constexpr std::size_t count = 8;
  std::vector<ToolSet> sets;
  test::add_tool_sets(test::example_data("tiny/heldout.jsonl"), "tools", sets);
  const Vocabulary vocabulary = load_vocabulary(test::example_data("tiny"));
  std::size_t bytes           = 0;
  for (unsigned round = 0; round < 24; ++round) {
    const ToolSet& tools = sets[round];
    const VocabularyIndex cache(vocabulary);
    const ToolCallFSM shared = test::constraint_of_round(round, cache, tools);
    std::vector<std::string> traces(count);
    std::latch start(count);
    std::vector<std::thread> threads;
    // Each walk is walked by two threads side by side; the last two make their own constraints
    // over the same cache.
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const auto seed = static_cast<unsigned>(i / 2);
        start.arrive_and_wait();
        traces[i] = i + 2 < count ? trace(shared, seed)
                                  : trace(test::constraint_of_round(round, cache, tools), seed);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const VocabularyIndex fresh(vocabulary);
    const ToolCallFSM alone = test::constraint_of_round(round, fresh, tools);
    for (std::size_t i = 0; i < count; ++i) {
      INFO("round " << round << ", thread " << i << ", tool " << tools[0].name);
      const std::string expected = trace(alone, static_cast<unsigned>(i / 2));
      CHECK((traces[i] == expected));
      bytes += expected.size();
    }
  }
  CHECK(bytes > 200'000);
}
