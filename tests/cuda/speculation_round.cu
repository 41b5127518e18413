#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
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

/// What the draft model's calls pass on: the hash, the hidden state and the mask of each row.
struct DraftStates {
  std::uint32_t* contexts;  // [B, n]
  __half* hidden;           // [B, n, H]
  std::uint32_t* masks;     // [B, n, mask_words]
};

/// The rows of the root if there is no frontier, else those of the frontier; one block each.
__global__ void draft_states(const std::uint32_t* before, int rows_before,
                             DraftFrontierView frontier, int rows, DraftStates to) {
  const auto row        = static_cast<int>(blockIdx.x);
  const int sequence    = row / rows;
  std::uint32_t context = before[sequence * rows_before];
  if (frontier.tokens != nullptr) {
    context =
        row % rows < frontier.sizes[sequence]
            ? follow(before[sequence * rows_before + frontier.parents[row]], frontier.tokens[row])
            : 0;
  }
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) to.contexts[row] = context;
  if (thread < hidden_size) {
    to.hidden[row * hidden_size + thread] = from_float<__half>(hidden_of(context, thread));
  }
  if (thread < mask_words) to.masks[row * mask_words + thread] = mask_of(context, thread);
}

/// The target's logits, masks, keys and values of a tree's nodes; one block each.
__global__ void target_pass(const std::uint32_t* contexts, const std::int32_t* lengths,
                            DraftTreeView tree, float* logits, std::uint32_t* masks,
                            KeyValues<__half> cache) {
  const auto row     = static_cast<int>(blockIdx.x);
  const auto thread  = static_cast<int>(threadIdx.x);
  const int sequence = row / max_nodes, node = row % max_nodes;
  if (node >= tree.sizes[sequence]) return;  // its logits are NaN, and must not matter
  std::uint32_t context = contexts[sequence];
  for (int above = 1; above <= node; ++above) {
    if ((tree.ancestors[row] >> above & 1) == 0) continue;
    context = follow(context, tree.tokens[sequence * max_nodes + above]);
  }
  for (int token = thread; token < words; token += static_cast<int>(blockDim.x)) {
    logits[row * words + token] = logit_of(context, token);
  }
  if (thread < mask_words) masks[row * mask_words + thread] = mask_of(context, thread);
  if (thread < head_size) {
    const std::int64_t at = cache.offset(sequence, lengths[sequence] + node, 0) + thread;
    cache.keys[at]        = from_float<__half>(static_cast<float>(tree.tokens[row]));
    cache.values[at]      = from_float<__half>(static_cast<float>(tree.positions[row]));
  }
}

/// The token after the accepted ones is the next root.
__global__ void next_round(const Verdict* verdicts, std::uint32_t* contexts, TokenId* roots) {
  const Verdict& verdict = verdicts[threadIdx.x];
  for (int i = 0; i < verdict.emitted; ++i) {
    contexts[threadIdx.x] = follow(contexts[threadIdx.x], verdict.tokens[i]);
  }
  if (verdict.emitted > 0) roots[threadIdx.x] = verdict.tokens[verdict.emitted - 1];
}

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

/// What a round reads and writes; it lives as long as its graph.
struct Round {
  DraftTreeOptions options{.depth = 3, .width = 3, .children = 4, .budget = 13};
  DraftGrowth growth{.options = options, .sequences = sequences};
  int rows = sequences * options.width;

  DeviceBuffer<__half> weights;
  DeviceBuffer<TokenId> ranked_tokens, roots, frontier_tokens, top_tokens, tree_tokens, choices;
  DeviceBuffer<std::uint32_t> contexts, draft_contexts[2], draft_masks, target_masks;
  DeviceBuffer<std::int32_t> lengths, frontier_parents, frontier_sizes, tree_parents, tree_sizes;
  DeviceBuffer<__half> hidden, keys, values;
  DeviceBuffer<float> top_logits, top_sums, tree_scores, logits;
  DeviceBuffer<std::uint64_t> tree_ancestors;
  DeviceBuffer<std::int64_t> tree_positions;
  DeviceBuffer<Verdict> verdicts;
  DeviceBuffer<std::byte> growth_memory, workspace;

  explicit Round(const std::vector<std::vector<TokenId>>& prompts) {
    constexpr std::size_t nodes = sequences * std::size_t{max_nodes};
    const auto frontier         = static_cast<std::size_t>(rows);
    const auto tops             = frontier * static_cast<std::size_t>(options.children);
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
    std::vector<std::uint32_t> hashes;
    std::vector<TokenId> last;
    std::vector<std::int32_t> before;
    std::vector<__half> prefix(std::size_t{sequences} * slots * head_size);
    for (std::size_t b = 0; b < prompts.size(); ++b) {
      std::uint32_t context = 0;
      for (std::size_t i = 0; i < prompts[b].size(); ++i) {
        context = follow(context, prompts[b][i]);
        std::fill_n(prefix.begin() + static_cast<std::ptrdiff_t>((b * slots + i) * head_size),
                    head_size, from_float<__half>(static_cast<float>(prompts[b][i])));
      }
      hashes.push_back(context);
      last.push_back(prompts[b].back());
      before.push_back(static_cast<std::int32_t>(prompts[b].size()) - 1);
    }
    weights          = DeviceBuffer<__half>(numbers);
    ranked_tokens    = DeviceBuffer<TokenId>(ids);
    roots            = DeviceBuffer<TokenId>(last);
    frontier_tokens  = DeviceBuffer<TokenId>(frontier);
    top_tokens       = DeviceBuffer<TokenId>(tops);
    tree_tokens      = DeviceBuffer<TokenId>(nodes);
    choices          = DeviceBuffer<TokenId>(nodes);
    contexts         = DeviceBuffer<std::uint32_t>(hashes);
    draft_masks      = DeviceBuffer<std::uint32_t>(frontier * mask_words);
    target_masks     = DeviceBuffer<std::uint32_t>(nodes * mask_words);
    lengths          = DeviceBuffer<std::int32_t>(before);
    frontier_parents = DeviceBuffer<std::int32_t>(frontier);
    frontier_sizes   = DeviceBuffer<std::int32_t>(sequences);
    tree_parents     = DeviceBuffer<std::int32_t>(nodes);
    tree_sizes       = DeviceBuffer<std::int32_t>(sequences);
    hidden           = DeviceBuffer<__half>(frontier * hidden_size);
    keys             = DeviceBuffer<__half>(prefix);
    values           = DeviceBuffer<__half>(prefix.size());
    top_logits       = DeviceBuffer<float>(tops);
    top_sums         = DeviceBuffer<float>(frontier);
    tree_scores      = DeviceBuffer<float>(nodes);
    logits           = DeviceBuffer<float>(nodes * words);
    tree_ancestors   = DeviceBuffer<std::uint64_t>(nodes);
    tree_positions   = DeviceBuffer<std::int64_t>(nodes);
    verdicts         = DeviceBuffer<Verdict>(sequences);
    growth_memory    = DeviceBuffer<std::byte>(draft_growth_bytes(growth));
    // One for all calls, as in an engine, with arbitrary contents.
    workspace = DeviceBuffer<std::byte>(std::vector<std::byte>(
        std::max(pruned_head_workspace_bytes(rows, ranked, options.children, mask_words),
                 masked_softmax_workspace_bytes(static_cast<int>(nodes), words)),
        std::byte{0xCC}));
    for (auto& part : draft_contexts) part = DeviceBuffer<std::uint32_t>(frontier);
    growth.memory = growth_memory;
  }

  DraftTreeView tree() const {
    return {.tokens    = tree_tokens.data(),
            .parents   = tree_parents.data(),
            .ancestors = tree_ancestors.data(),
            .positions = tree_positions.data(),
            .scores    = tree_scores.data(),
            .sizes     = tree_sizes.data()};
  }

  /// Enqueues one round on a stream; nothing in it waits for the host.
  void run(const SamplingOptions& sampling, std::uint64_t seed, Verdict* host,
           cudaStream_t stream) const {
    const DraftFrontierView frontier{.tokens  = frontier_tokens.data(),
                                     .parents = frontier_parents.data(),
                                     .sizes   = frontier_sizes.data()};
    const HeadRows<__half> head{.weights     = weights.data(),
                                .rows        = ranked,
                                .hidden_size = hidden_size,
                                .tokens      = ranked_tokens.data(),
                                .vocabulary  = words};
    const TopTokensView tops{top_tokens.data(), top_logits.data(), top_sums.data()};
    //! [round]
    for (int level = 0; level < options.depth; ++level) {
      const int here = level == 0 ? 1 : options.width;
      const std::uint32_t* before =
          level == 0 ? contexts.data() : draft_contexts[(level - 1) % 2].data();
      const DraftStates states{draft_contexts[level % 2].data(), hidden.data(), draft_masks.data()};
      launch(draft_states, {.grid = static_cast<unsigned>(sequences * here), .block = warp_size},
             stream, before, level <= 1 ? 1 : options.width,
             level == 0 ? DraftFrontierView{} : frontier, here, states);
      project_topk(head, hidden.data(), sequences * here, draft_masks.data(), mask_words,
                   options.children, tops, workspace, stream);
      grow_level(growth, level, tops, frontier, stream);
    }
    fill_best_tree(growth, roots.data(), lengths.data(), tree(), stream);

    const KeyValues<__half> cache{.keys        = keys.data(),
                                  .values      = values.data(),
                                  .slot_stride = head_size,
                                  .head_stride = head_size,
                                  .page_stride = slots * head_size};
    launch(target_pass, {.grid = sequences * max_nodes, .block = warp_size}, stream,
           contexts.data(), lengths.data(), tree(), logits.data(), target_masks.data(), cache);
    find_tokens<float>({.logits     = logits.data(),
                        .rows       = sequences * max_nodes,
                        .vocabulary = words,
                        .mask       = target_masks.data()},
                       sampling, {.seed = seed, .positions = tree_positions.data(), .shift = 1},
                       choices.data(), workspace, stream);
    verify_trees(tree(), choices.data(), verdicts.data(), sequences, stream);
    compact_cache<__half>(std::span(&cache, 1),
                          {.sequences = sequences, .key_heads = 1, .head_size = head_size},
                          verdicts.data(), lengths.data(), stream);
    advance_lengths(verdicts.data(), lengths.data(), sequences, stream);
    launch(next_round, {.grid = 1, .block = sequences}, stream, verdicts.data(), contexts.data(),
           roots.data());
    check(cudaMemcpyAsync(host, verdicts.data(), verdicts.bytes(), cudaMemcpyDeviceToHost, stream));
    //! [round]
  }

  DraftTree host_tree(std::size_t sequence) const {
    const auto tokens       = tree_tokens.download();
    const auto parents      = tree_parents.download();
    const std::size_t first = sequence * max_nodes;
    DraftTree tree(tokens[first]);
    for (int i = 1; i < tree_sizes.download()[sequence]; ++i) {
      const auto at = first + static_cast<std::size_t>(i);
      tree.add(static_cast<std::size_t>(parents[at]), tokens[at]);
    }
    return tree;
  }
};

/// Replays one captured round; its tokens must be those of plain decoding.
void check_rounds(const SamplingOptions& sampling, std::uint64_t seed, int rounds) {
  INFO("temperature " << sampling.temperature << ", seed " << seed);
  const std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 200, 31}, {299}};
  const LogitsPipeline pipeline({.temperature = sampling.temperature,
                                 .top_k       = static_cast<std::size_t>(sampling.top_k),
                                 .top_p       = sampling.top_p,
                                 .min_p       = sampling.min_p});
  const Round round(prompts);
  Verdict* verdicts = nullptr;
  check(cudaMallocHost(&verdicts, sequences * sizeof(Verdict)));
  cudaStream_t stream        = nullptr;
  cudaGraph_t graph          = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  round.run(sampling, seed, verdicts, stream);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));

  std::vector<std::vector<TokenId>> texts = prompts;
  int accepted                            = 0;
  for (int i = 0; i < rounds; ++i) {
    check(cudaGraphLaunch(executable, stream));
    check(cudaStreamSynchronize(stream));
    for (std::size_t b = 0; b < sequences; ++b) {
      INFO("round " << i << ", sequence " << b);
      const DraftTree tree   = round.host_tree(b);
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
  const auto lengths = round.lengths.download();
  const auto keys    = round.keys.download();
  const auto values  = round.values.download();
  for (std::size_t b = 0; b < sequences; ++b) {
    CHECK(texts[b] == plain(prompts[b], texts[b].size(), pipeline, seed));
    CHECK(lengths[b] == static_cast<int>(texts[b].size()) - 1);
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

  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  check(cudaFreeHost(verdicts));
}

}  // namespace

TEST_CASE("A captured speculation round emits the tokens of plain decoding at every replay") {
  test::on_device([] {
    check_rounds({.temperature = 0.7F, .top_k = 30}, 11, 3);
    check_rounds({.temperature = 0}, 12, 2);
  });
}
