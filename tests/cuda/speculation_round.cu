#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_table.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/cuda/warp.cuh>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

// A target whose logits depend on a hash of all tokens so far, and a draft model that knows them up
// to some noise and some tokens. All numbers are small multiples of a half, so no order of
// additions rounds.

using Verdict = tooldecode::cuda::TreeVerdict;

constexpr int words = 300, mask_words = 10, ranked = 210, hidden_size = 16;
constexpr int sequences = 2, slots = 160, head_size = 8;

__host__ __device__ std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  std::uint32_t x = a * 0x9E3779B1U ^ (b + 0x7F4A7C15U) * 0x85EBCA6BU;
  x ^= x >> 15;
  x *= 0xC2B2AE35U;
  return x ^ x >> 13;
}
__host__ __device__ std::uint32_t follow(std::uint32_t context, TokenId token) {
  return mix(context, static_cast<std::uint32_t>(token));
}
__host__ __device__ float hidden_of(std::uint32_t context, int i) {
  return static_cast<float>(mix(context, 1000U + static_cast<unsigned>(i)) % 5) - 2;
}
__host__ __device__ float weight_of(TokenId token, int i) {
  const std::uint32_t x = mix(static_cast<unsigned>(token), 2000U + static_cast<unsigned>(i)) % 3;
  return static_cast<float>(x) - 1;
}
__host__ __device__ float logit_of(std::uint32_t context, TokenId token) {
  float logit = static_cast<float>(mix(context, 3000U + static_cast<unsigned>(token)) % 4) / 2;
  for (int i = 0; i < hidden_size; ++i) logit += hidden_of(context, i) * weight_of(token, i);
  return logit;
}
/// A quarter of the tokens is forbidden, others in each context.
__host__ __device__ std::uint32_t mask_of(std::uint32_t context, int word) {
  const auto at = static_cast<unsigned>(word);
  return mix(context, 4000U + 2 * at) | mix(context, 4001U + 2 * at);
}

/// The contexts and hidden states of a level's rows, one block each.
__global__ void draft_states(const std::uint32_t* before, int rows_before, DraftLevel level,
                             std::uint32_t* contexts, __half* hidden) {
  const auto row        = static_cast<int>(blockIdx.x);
  const int sequence    = row / level.rows;
  std::uint32_t context = before[sequence * rows_before];
  if (level.level > 0) {
    const DraftFrontierView& frontier = level.frontier;
    context =
        row % level.rows < frontier.sizes[sequence]
            ? follow(before[sequence * rows_before + frontier.parents[row]], frontier.tokens[row])
            : 0;
  }
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) contexts[row] = context;
  if (thread < hidden_size) {
    hidden[row * hidden_size + thread] = from_float<__half>(hidden_of(context, thread));
  }
}

/// The masks of rows with these contexts, one block each.
__global__ void masks_of(const std::uint32_t* contexts, MaskRows to) {
  const auto row    = static_cast<int>(blockIdx.x);
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < to.words) to.data[row * to.words + thread] = mask_of(contexts[row], thread);
}

/// The contexts of a tree's nodes, one block each.
__global__ void tree_contexts(const std::uint32_t* contexts, DraftTreeView tree, int nodes,
                              std::uint32_t* to) {
  const auto row     = static_cast<int>(blockIdx.x);
  const int sequence = row / nodes, node = row % nodes;
  std::uint32_t context = contexts[sequence];
  for (int above = 1; above <= node; ++above) {
    if ((tree.ancestors[sequence * max_nodes + node] >> above & 1) == 0) continue;
    context = follow(context, tree.tokens[sequence * max_nodes + above]);
  }
  if (threadIdx.x == 0) to[row] = context;
}

/// The target's logits, keys and values of a tree's nodes; one block each.
__global__ void target_pass(const std::uint32_t* contexts, TreePass pass, float* logits,
                            KeyValues<__half> cache) {
  const auto row     = static_cast<int>(blockIdx.x);
  const auto thread  = static_cast<int>(threadIdx.x);
  const int sequence = row / pass.nodes, node = row % pass.nodes;
  const std::uint64_t ancestors = pass.ancestors[pass.place(row)];
  if (ancestors == 0) return;  // its logits are NaN, and must not matter
  std::uint32_t context = contexts[sequence];
  for (int above = 1; above <= node; ++above) {
    if ((ancestors >> above & 1) == 0) continue;
    context = follow(context, pass.tokens[pass.place(row - node + above)]);
  }
  for (int token = thread; token < words; token += static_cast<int>(blockDim.x)) {
    logits[row * words + token] = logit_of(context, token);
  }
  if (thread < head_size) {
    const int slot        = pass.lengths[sequence] + node;
    const std::int64_t at = cache.offset(sequence, slot, 0) + thread;
    const int depth       = __popcll(ancestors) - 1;
    cache.keys[at]        = from_float<__half>(static_cast<float>(pass.tokens[pass.place(row)]));
    cache.values[at]      = from_float<__half>(static_cast<float>(pass.lengths[sequence] + depth));
  }
}

/// The hash of all tokens, the next root included.
__global__ void follow_verdicts(const Verdict* verdicts, std::uint32_t* contexts) {
  const Verdict& verdict = verdicts[threadIdx.x];
  for (int i = 0; i < verdict.emitted; ++i) {
    contexts[threadIdx.x] = follow(contexts[threadIdx.x], verdict.tokens[i]);
  }
}

}  // namespace

/// A constraint with 30 states, each of which forbids a quarter of the tokens.
struct HashConstraint {
  struct State {
    std::uint32_t number                               = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return words; }
  [[nodiscard]] State initial() const { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if ((mask_of(state.number, token / 32) >> token % 32 & 1) == 0) return std::nullopt;
    return State{follow(state.number, token) % 30};
  }
  void fill_mask(State state, MaskView mask) const {
    for (int word = 0; word < mask_words; ++word) {
      mask[static_cast<std::size_t>(word)] = mask_of(state.number, word);
    }
  }
  [[nodiscard]] bool is_accepting(State) const { return true; }
  [[nodiscard]] bool is_finished(State) const { return false; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }
};

namespace {

std::vector<float> distribution_after(std::uint32_t context, const LogitsPipeline& pipeline) {
  std::vector<float> distribution;
  std::vector<std::uint32_t> mask;
  for (TokenId token = 0; token < words; ++token) distribution.push_back(logit_of(context, token));
  for (int word = 0; word < mask_words; ++word) mask.push_back(mask_of(context, word));
  pipeline.apply(distribution, mask);
  return distribution;
}

std::vector<TokenId> plain(const std::vector<TokenId>& prompt, std::size_t length,
                           const LogitsPipeline& pipeline, std::uint64_t seed) {
  std::uint32_t context = 0;
  for (const TokenId token : prompt) context = follow(context, token);
  std::vector<TokenId> text = prompt;
  while (text.size() < length) {
    const auto token = find_token(distribution_after(context, pipeline),
                                  pipeline.options().temperature, NoiseKey{seed, text.size()});
    REQUIRE(token.has_value());
    text.push_back(*token);
    context = follow(context, *token);
  }
  return text;
}

/// The hashes of the sequences' texts, their roots included, and a cache of what was read.
struct HashTarget {
  DeviceBuffer<std::uint32_t> contexts{sequences};
  DeviceBuffer<__half> keys{std::size_t{sequences} * slots * head_size}, values{keys.size()};

  [[nodiscard]] KeyValues<__half> cache() const {
    return {.keys        = keys.data(),
            .values      = values.data(),
            .slot_stride = head_size,
            .head_stride = head_size,
            .page_stride = slots * head_size};
  }
  [[nodiscard]] int vocabulary_size() const { return words; }
  void run_tree(const TreePass& pass, float* logits, cudaStream_t stream) const {
    launch(target_pass, {.grid = static_cast<unsigned>(pass.rows()), .block = warp_size}, stream,
           contexts.data(), pass, logits, cache());
  }
  void keep(const Verdict* verdicts, const std::int32_t* lengths, cudaStream_t stream) const {
    const auto layer = cache();
    compact_cache<__half>(std::span(&layer, 1),
                          {.sequences = sequences, .key_heads = 1, .head_size = head_size},
                          verdicts, lengths, stream);
    launch(follow_verdicts, {.grid = 1, .block = sequences}, stream, verdicts, contexts.data());
  }
};

struct HashDraft {
  using Number = __half;

  const HashTarget* target;
  DeviceBuffer<__half> weights;
  DeviceBuffer<TokenId> ranked_tokens;
  DeviceBuffer<std::uint32_t> contexts[2];
  const std::uint32_t* of_level = nullptr;

  HashDraft(const HashTarget& of, int width) : target(&of) {
    std::vector<__half> numbers;
    std::vector<TokenId> ids;
    for (int row = 0; row < ranked; ++row) {
      ids.push_back(static_cast<TokenId>((row * 137 + 11) % words));
    }
    for (TokenId token = 0; token < words; ++token) {
      for (int i = 0; i < hidden_size; ++i) {
        numbers.push_back(from_float<__half>(weight_of(token, i)));
      }
    }
    weights       = DeviceBuffer<__half>(numbers);
    ranked_tokens = DeviceBuffer<TokenId>(ids);
    for (auto& part : contexts) {
      part = DeviceBuffer<std::uint32_t>(static_cast<std::size_t>(sequences * width));
    }
  }
  [[nodiscard]] HeadRows<__half> head() const {
    return {.weights     = weights.data(),
            .rows        = ranked,
            .hidden_size = hidden_size,
            .tokens      = ranked_tokens.data(),
            .vocabulary  = words};
  }
  void run_level(const DraftLevel& level, __half* hidden, cudaStream_t stream) {
    const int i = level.level;
    of_level    = contexts[i % 2].data();
    launch(draft_states,
           {.grid = static_cast<unsigned>(sequences * level.rows), .block = warp_size}, stream,
           i == 0 ? target->contexts.data() : contexts[(i - 1) % 2].data(), i <= 1 ? 1 : level.rows,
           level, contexts[i % 2].data(), hidden);
  }
  void keep(const Verdict*, const std::int32_t*, cudaStream_t) const {}
};

struct HashMasks {
  const HashTarget* target;
  const HashDraft* draft;
  DeviceBuffer<std::uint32_t> nodes{std::size_t{sequences} * max_nodes};

  void fill_level(const DraftLevel& level, const MaskRows& to, cudaStream_t stream) const {
    launch(masks_of, {.grid = static_cast<unsigned>(sequences * level.rows), .block = warp_size},
           stream, draft->of_level, to);
  }
  void fill_tree(const DraftTreeView& tree, int count, const MaskRows& to,
                 cudaStream_t stream) const {
    const LaunchShape shape{.grid = static_cast<unsigned>(sequences * count), .block = warp_size};
    launch(tree_contexts, shape, stream, target->contexts.data(), tree, count, nodes.data());
    launch(masks_of, shape, stream, nodes.data(), to);
  }
  void keep(const Verdict*, cudaStream_t) const {}
};

/// All of a round; it begins with the prompts.
template <MaskSource Masks>
struct HashRounds {
  static constexpr DraftTreeOptions shape{.depth = 3, .width = 3, .children = 4, .budget = 13};

  HashTarget& target;
  SpeculationRound<HashTarget, HashDraft, Masks> round;

  HashRounds(HashTarget& of, HashDraft& draft, Masks& masks,
             const std::vector<std::vector<TokenId>>& prompts, const SamplingOptions& sampling,
             std::uint64_t seed)
      : target(of),
        round(target, draft, masks,
              {.sequences = sequences,
               .tree      = shape,
               .sampling  = sampling,
               .seed      = seed,
               .slots     = slots}) {
    begin(prompts);
  }

  void begin(const std::vector<std::vector<TokenId>>& prompts) {
    std::vector<__half> prefix(target.keys.size());
    std::vector<std::uint32_t> hashes;
    for (std::size_t b = 0; b < prompts.size(); ++b) {
      std::uint32_t context = 0;
      for (std::size_t i = 0; i < prompts[b].size(); ++i) {
        context = follow(context, prompts[b][i]);
        std::fill_n(prefix.begin() + static_cast<std::ptrdiff_t>((b * slots + i) * head_size),
                    head_size, from_float<__half>(static_cast<float>(prompts[b][i])));
      }
      hashes.push_back(context);
      round.start(static_cast<int>(b), prompts[b].back(), static_cast<int>(prompts[b].size()) - 1);
    }
    target.contexts.upload(hashes);
    target.keys.upload(prefix);
  }
};

/// The tree of a sequence in the last round.
DraftTree host_tree(const DraftTreeView& view, std::size_t sequence) {
  const auto copy = [](const auto* from, std::size_t count) {
    std::vector<std::remove_cvref_t<decltype(*from)>> to(count);
    check(cudaMemcpy(to.data(), from, count * sizeof *from, cudaMemcpyDeviceToHost));
    return to;
  };
  const auto tokens  = copy(view.tokens + sequence * max_nodes, max_nodes);
  const auto parents = copy(view.parents + sequence * max_nodes, max_nodes);
  const int size     = copy(view.sizes + sequence, 1)[0];
  DraftTree tree(tokens[0]);
  for (std::size_t i = 1; i < static_cast<std::size_t>(size); ++i) {
    tree.add(static_cast<std::size_t>(parents[i]), tokens[i]);
  }
  return tree;
}

/// Under the masks of the hashes.
struct MaskedRounds {
  HashTarget target;
  HashDraft draft{target, HashRounds<HashMasks>::shape.width};
  HashMasks masks{&target, &draft};
};

/// Runs rounds; their tokens must be those of plain decoding.
void check_rounds(const SamplingOptions& sampling, std::uint64_t seed, int rounds) {
  INFO("temperature " << sampling.temperature << ", seed " << seed);
  const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
  const LogitsPipeline pipeline({.temperature = sampling.temperature,
                                 .top_k       = static_cast<std::size_t>(sampling.top_k),
                                 .top_p       = sampling.top_p,
                                 .min_p       = sampling.min_p});
  MaskedRounds all;
  HashRounds hash(all.target, all.draft, all.masks, prompts, sampling, seed);

  std::vector<std::vector<TokenId>> texts = prompts;
  int accepted                            = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto verdicts = hash.round.run();
    for (std::size_t b = 0; b < sequences; ++b) {
      INFO("round " << i << ", sequence " << b);
      const DraftTree tree   = host_tree(hash.round.tree(), b);
      const Verdict& verdict = verdicts[b];
      std::uint32_t context  = 0;
      for (const TokenId token : texts[b]) context = follow(context, token);
      std::vector<float> distribution;
      const auto distribution_of = [&](std::size_t node) {
        std::uint32_t here = context;
        for (std::size_t above = 1; above <= node; ++above) {
          if ((tree.ancestors()[node] >> above & 1) != 0) here = follow(here, tree.token(above));
        }
        distribution = distribution_after(here, pipeline);
        return std::span<const float>(distribution);
      };
      const auto expected = TreeVerifier<>()(tree, distribution_of, NoiseKey{seed, texts[b].size()},
                                             sampling.temperature);
      REQUIRE(verdict.accepted == static_cast<int>(expected.path.size()));
      for (std::size_t j = 0; j < expected.path.size(); ++j) {
        CHECK(verdict.path[j] == static_cast<int>(expected.path[j]));
      }
      CHECK(verdict.tokens[verdict.accepted] == expected.token.value_or(-1));
      texts[b].insert(texts[b].end(), verdict.tokens, verdict.tokens + verdict.emitted);
      accepted += verdict.accepted;
    }
  }
  const auto keys   = hash.target.keys.download();
  const auto values = hash.target.values.download();
  for (std::size_t b = 0; b < sequences; ++b) {
    CHECK(texts[b] == plain(prompts[b], texts[b].size(), pipeline, seed));
    CHECK(hash.round.length(static_cast<int>(b)) == static_cast<int>(texts[b].size()) - 1);
    bool is_equal = true;
    for (std::size_t slot = 0; slot + 1 < texts[b].size(); ++slot) {
      for (std::size_t i = 0; i < head_size; ++i) {
        const std::size_t at = (b * slots + slot) * head_size + i;
        is_equal             = is_equal && to_float(keys[at]) == static_cast<float>(texts[b][slot]);
        if (slot + 1 >= prompts[b].size()) {
          is_equal = is_equal && to_float(values[at]) == static_cast<float>(slot);
        }
      }
    }
    CHECK(is_equal);
  }
  CHECK(accepted > rounds);  // otherwise next to nothing was tested
}

}  // namespace

TEST_CASE("SpeculationRound: emits the tokens of plain decoding at every replay") {
  test::on_device([] {
    check_rounds({.temperature = 0.7F, .top_k = 30}, 11, 3);
    check_rounds({.temperature = 0}, 12, 2);
  });
}

TEST_CASE(
    "SpeculationRound, sequences that stop and start: emits nothing for those that are not there") {
  test::on_device([] {
    const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
    const LogitsPipeline greedy({.temperature = 0});
    MaskedRounds all;
    HashRounds hash(all.target, all.draft, all.masks, prompts, {.temperature = 0}, 1);
    auto verdicts             = hash.round.run();
    std::vector<TokenId> text = prompts[1];
    text.insert(text.end(), verdicts[1].tokens, verdicts[1].tokens + verdicts[1].emitted);
    hash.round.stop(0);
    CHECK(hash.round.length(0) == -1);
    verdicts = hash.round.run();
    CHECK(verdicts[0].emitted == 0);
    CHECK(verdicts[0].kept == 0);
    text.insert(text.end(), verdicts[1].tokens, verdicts[1].tokens + verdicts[1].emitted);
    CHECK(text == plain(prompts[1], text.size(), greedy, 1));

    std::uint32_t context = 0;
    for (const TokenId token : prompts[0]) context = follow(context, token);
    auto contexts = hash.target.contexts.download();
    contexts[0]   = context;
    hash.target.contexts.upload(contexts);
    hash.round.start(0, prompts[0].back(), static_cast<int>(prompts[0].size()) - 1);
    verdicts = hash.round.run();
    text     = prompts[0];
    text.insert(text.end(), verdicts[0].tokens, verdicts[0].tokens + verdicts[0].emitted);
    CHECK(verdicts[0].emitted > 0);
    CHECK(text == plain(prompts[0], text.size(), greedy, 1));
  });
}

namespace {

/// What the host chooses under a constraint, from a state on.
template <class C>
std::vector<TokenId> plain_under(const C& constraint, typename C::State state,
                                 const std::vector<TokenId>& prompt, std::size_t length,
                                 const LogitsPipeline& pipeline, std::uint64_t seed) {
  std::uint32_t context = 0;
  for (const TokenId token : prompt) context = follow(context, token);
  std::vector<TokenId> text = prompt;
  while (text.size() < length) {
    std::vector<float> logits;
    for (TokenId token = 0; token < words; ++token) logits.push_back(logit_of(context, token));
    std::vector<std::uint32_t> mask(mask_words);
    constraint.fill_mask(state, mask);
    pipeline.apply(logits, mask);
    const auto token =
        find_token(logits, pipeline.options().temperature, NoiseKey{seed, text.size()});
    REQUIRE(token.has_value());
    text.push_back(*token);
    context = follow(context, *token);
    state   = constraint.advance(state, *token).value();
  }
  return text;
}

}  // namespace

/// Allows all tokens, as many as the state says.
struct Countdown {
  struct State {
    int left                                           = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return words; }
  [[nodiscard]] State initial() const { return {1000}; }
  [[nodiscard]] std::optional<State> advance(State state, TokenId) const {
    if (state.left == 0) return std::nullopt;
    return State{state.left - 1};
  }
  void fill_mask(State state, MaskView mask) const {
    for (int word = 0; word < mask_words; ++word) {
      const std::uint32_t all              = word == mask_words - 1 ? (1U << words % 32) - 1 : ~0U;
      mask[static_cast<std::size_t>(word)] = state.left == 0 ? 0 : all;
    }
  }
  [[nodiscard]] bool is_accepting(State) const { return true; }
  [[nodiscard]] bool is_finished(State) const { return false; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }
};

TEST_CASE("SpeculationRound, nothing may follow: the sequence ends, and others go on") {
  test::on_device([] {
    const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
    const LogitsPipeline greedy({.temperature = 0});
    const Countdown constraint;
    HashTarget target;
    HashDraft draft(target, 3);
    StateTable table(constraint, {.sequences = 2, .width = 3});
    HashRounds hash(target, draft, table, prompts, {.temperature = 0}, 1);
    constexpr int left[2] = {4, 1000};
    for (int b = 0; b < 2; ++b) table.start(b, {left[b]}, hash.round.stream());
    auto texts = prompts;
    for (int i = 0; i < 7; ++i) {
      const auto verdicts = hash.round.run();
      table.learn(verdicts, hash.round.stream());
      for (std::size_t b = 0; b < 2; ++b) {
        texts[b].insert(texts[b].end(), verdicts[b].tokens,
                        verdicts[b].tokens + verdicts[b].emitted);
      }
    }
    CHECK(texts[0].size() == prompts[0].size() + 4);
    CHECK(hash.round.length(0) == -1);
    CHECK(table.state(0) == Countdown::State{0});
    CHECK(hash.round.length(1) == static_cast<int>(texts[1].size()) - 1);
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(texts[b] == plain_under(constraint, {left[b]}, prompts[b], texts[b].size(), greedy, 1));
    }
  });
}

TEST_CASE("SpeculationRound, a StateTable that is full after a round: the tokens stay the same") {
  test::on_device([] {
    const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
    const LogitsPipeline greedy({.temperature = 0});
    const HashConstraint constraint;
    HashTarget target;
    HashDraft draft(target, 3);
    StateTable table(constraint, {.sequences = 2, .width = 3, .states = 2048, .steps = 8192});
    HashRounds hash(target, draft, table, prompts, {.temperature = 0}, 1);
    const Stream& stream = hash.round.stream();
    table.start(1, {7}, stream);
    for (std::uint32_t number = 1000; table.counts().states < 1024; ++number) {
      table.start(0, {number}, stream);
    }
    table.start(0, {0}, stream);  // one state more than leave room for a round
    auto texts = prompts;
    for (int i = 0; i < 4; ++i) {
      CHECK(table.counts().clears == (i == 0 ? 0 : 1));
      const auto verdicts = hash.round.run();
      table.learn(verdicts, stream);
      for (std::size_t b = 0; b < 2; ++b) {
        texts[b].insert(texts[b].end(), verdicts[b].tokens,
                        verdicts[b].tokens + verdicts[b].emitted);
      }
    }
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(texts[b].size() >= prompts[b].size() + 4);
      CHECK(texts[b] ==
            plain_under(constraint, {b == 0 ? 0U : 7U}, prompts[b], texts[b].size(), greedy, 1));
    }
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("SpeculationRound, StateTable: use no default stream between rounds") {
  simt::options.schedule = simt::Schedule::lockstep;
  const HashConstraint constraint;
  HashTarget target;
  HashDraft draft(target, 3);
  StateTable table(constraint, {.sequences = 2, .width = 3});
  HashRounds hash(target, draft, table, {{5}, {299}}, {.temperature = 0}, 1);
  const int before = simt::by_default;
  for (int b = 0; b < 2; ++b) {
    hash.round.start(b, 5, 0);
    table.start(b, constraint.initial(), hash.round.stream());
  }
  table.learn(hash.round.run(), hash.round.stream());
  hash.round.stop(0);
  CHECK(simt::by_default == before);
}
#endif

TEST_CASE("SpeculationRound, wrong arguments: names them") {
  test::on_device([] {
    MaskedRounds all;
    HashRounds hash(all.target, all.draft, all.masks, {{1}, {2}}, {.temperature = 0}, 1);
    CHECK_THROWS_WITH(hash.round.start(2, 1, 0), "sequence 2: must be from 0 to 1");
    CHECK_THROWS_WITH(hash.round.start(0, words, 0),
                      "root 300: must be one of the model's vocabulary, below 300");
    CHECK_THROWS_WITH(hash.round.start(0, 1, slots - 13),
                      "length 147: must leave 14 of the 160 slots for a tree");
    CHECK_NOTHROW(hash.round.start(0, 1, slots - 14));
    CHECK(hash.round.has_room(0));
    CHECK_THROWS_WITH(hash.round.stop(-1), "sequence -1: must be from 0 to 1");
    CHECK_THROWS_WITH(hash.round.length(2), "sequence 2: must be from 0 to 1");
    CHECK_THROWS_WITH(hash.round.has_room(2), "sequence 2: must be from 0 to 1");
    const auto make = [&](const DraftTreeOptions& tree) {
      SpeculationRound(all.target, all.draft, all.masks,
                       {.sequences = sequences, .tree = tree, .slots = slots});
    };
    CHECK_THROWS_WITH(make({.depth = 8, .width = 10}),
                      "depth 8: less one, times the width 10, must be at most 64");
  });
}

TEST_CASE(
    "SpeculationRound, StateTable: emits the tokens of plain decoding, with and without misses") {
  test::on_device([] {
    const std::uint64_t seed = 13;
    INFO("seed " << seed);
    const SamplingOptions sampling{.temperature = 0.7F};
    const LogitsPipeline pipeline({.temperature = 0.7F});
    const HashConstraint constraint;
    const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
    HashTarget target;
    HashDraft draft(target, 3);
    StateTable table(constraint, {.sequences = 2, .width = 3});
    HashRounds hash(target, draft, table, prompts, sampling, seed);
    // What one pass misses lets the next one draft deeper, until nothing is missed.
    constexpr int passes       = 8;
    int accepted[passes]       = {};
    std::size_t misses[passes] = {};
    for (int pass = 0; pass < passes; ++pass) {
      if (pass > 0) hash.begin(prompts);
      for (int b = 0; b < 2; ++b) {
        table.start(b, constraint.initial(), hash.round.stream());
      }
      const std::size_t before = table.counts().misses;
      auto texts               = prompts;
      for (int i = 0; i < 3; ++i) {
        const auto verdicts = hash.round.run();
        table.learn(verdicts, hash.round.stream());
        for (std::size_t b = 0; b < 2; ++b) {
          texts[b].insert(texts[b].end(), verdicts[b].tokens,
                          verdicts[b].tokens + verdicts[b].emitted);
          accepted[pass] += verdicts[b].accepted;
        }
      }
      misses[pass] = table.counts().misses - before;
      for (std::size_t b = 0; b < 2; ++b) {
        INFO("pass " << pass << ", sequence " << b);
        CHECK(texts[b] == plain_under(constraint, constraint.initial(), prompts[b], texts[b].size(),
                                      pipeline, seed));
        HashConstraint::State state = constraint.initial();
        for (std::size_t i = prompts[b].size(); i < texts[b].size(); ++i) {
          state = constraint.advance(state, texts[b][i]).value();
        }
        CHECK(table.state(static_cast<int>(b)) == state);
      }
    }
    CHECK(misses[0] > 0);
    CHECK(misses[passes - 1] == 0);
    CHECK(accepted[passes - 1] > accepted[0]);
  });
}
