// The cost of verifying a draft tree beside the target's pass: microseconds per round and rule over
// 64 nodes, against the floor of reading the rows of the visited nodes once.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

namespace {

using namespace tooldecode;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

constexpr std::size_t rounds     = 16;
constexpr std::size_t path_nodes = 4;  // of each tree that GumbelCoupling accepts

// The distributions of 64 nodes, and trees of which GumbelCoupling accepts a known path.
struct World {
  explicit World(std::size_t vocabulary) : v(vocabulary), logits(DraftTree::max_nodes * v) {
    std::mt19937 random{1};
    std::normal_distribution<float> normal{0, 3};
    for (float& x : logits) x = normal(random);
    ProposalDistribution
        proposal;  // a draft's distribution over 8,192 tokens, the same at every node
    for (std::size_t i = 0; i < 8192; ++i) {
      proposal.tokens.push_back(static_cast<TokenId>(v - 1 - i));
      proposal.probabilities.push_back(1.0 / 8192);
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
      // The tokens of the rows in the order in which they would be visited, then arbitrary ones.
      DraftTree tree(0);
      std::size_t node = 0;
      for (std::size_t d = 0; d < path_nodes; ++d) {
        node = tree.add(node, *find_gumbel(row(node), key(round, d)));
      }
      while (tree.size() < DraftTree::max_nodes) {
        const std::size_t parent = random() % tree.size();
        const auto token         = proposal.tokens[random() % proposal.tokens.size()];
        const auto drawn         = *find_gumbel(row(parent), key(round, tree.depth(parent)));
        if (token != drawn && !tree.find_child(parent, token)) tree.add(parent, token);
      }
      for (std::size_t i = 0; i < tree.size(); ++i) {
        ProposalDistribution own = proposal;
        for (const TokenId child : tree.children(i)) {
          if (static_cast<std::size_t>(child) < v - 8192) {
            own.tokens.push_back(child);
            own.probabilities.push_back(1.0 / 8192);
          }
        }
        tree.set_proposal(i, own);
      }
      trees.push_back(tree);
    }
    // Verified before it is timed.
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto verdict = verify(TreeVerifier{}, round, 1);
      if (verdict.path != std::vector<std::size_t>{1, 2, 3, 4}) {
        std::fprintf(stderr, "GumbelCoupling leaves the path\n"), std::exit(1);
      }
    }
  }

  static NoiseKey key(std::uint64_t round, std::uint64_t depth) { return {round, 100 + depth}; }
  std::span<const float> row(std::size_t node) const {
    return std::span(logits).subspan(node * v, v);
  }
  template <class Verifier>
  TreeVerdict verify(const Verifier& verifier, std::size_t round, float temperature) const {
    return verifier(
        trees[round], [this](std::size_t node) { return row(node); }, key(round, 0), temperature);
  }

  std::size_t v;
  std::vector<float> logits;  // [N, V]
  std::vector<DraftTree> trees;
};

const World& world(std::size_t v) {
  static std::map<std::size_t, World> worlds;
  return worlds.try_emplace(v, v).first->second;
}

template <class Rule>
void verify(benchmark::State& state, Rule rule, float temperature) {
  const World& all = world(static_cast<std::size_t>(state.range(0)));
  const TreeVerifier verifier{rule};
  std::vector<std::vector<std::size_t>> visited(rounds);
  double rows = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    visited[round] = all.verify(verifier, round, temperature).path;
    visited[round].push_back(0);
    rows += static_cast<double>(visited[round].size());
  }
  double spent = 0;
  double floor = 0;
  for (auto _ : state) {
    for (std::size_t round = 0; round < rounds; ++round) {
      auto start = Clock::now();
      benchmark::DoNotOptimize(all.verify(verifier, round, temperature));
      spent += microseconds(start);
      start = Clock::now();
      for (const std::size_t node : visited[round]) {
        benchmark::DoNotOptimize(greatest(all.row(node)));
      }
      floor += microseconds(start);
    }
  }
  const auto count       = static_cast<double>(rounds) * static_cast<double>(state.iterations());
  state.counters["rows"] = rows / rounds;
  state.counters["us_per_round"] = spent / count;
  state.counters["floor_us"]     = floor / count;
  state.counters["ratio"]        = spent / floor;
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Arg(32'000)->Arg(151'936)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(verify, walk_greedy, GumbelCoupling{}, 0.0F)->Apply(sizes);
BENCHMARK_CAPTURE(verify, walk_sampled, GumbelCoupling{}, 1.0F)->Apply(sizes);
BENCHMARK_CAPTURE(verify, chain_rejection, ChainRejection{}, 1.0F)->Apply(sizes);
BENCHMARK_CAPTURE(verify, recursive_rejection, RecursiveRejection{}, 1.0F)->Apply(sizes);
BENCHMARK_CAPTURE(verify, typical, Typical{}, 1.0F)->Apply(sizes);
BENCHMARK_CAPTURE(verify, thresholded, Thresholded{}, 1.0F)->Apply(sizes);

}  // namespace
