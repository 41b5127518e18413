/// \file
/// LlamaModel: the reference model of the Llama architecture, on the host.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/kv_cache.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

/// A Llama model (RMSNorm, rotary positions, grouped-query attention, SwiGLU) in float arithmetic.
///
/// A token's logits have the same bits however it is run: alone, in a prefill of any length, beside
/// other sequences or as a node of a draft tree. Every sum has one order, given by its own length
/// alone; attention adds the keys of a token's own path in ascending position.
///
/// \par Shapes      logits [V] of the last token, [N, V] of a tree, [B, V] of a batch; hidden [L,
/// H] \par Complexity  O(weights) per token, weights read once per 64 tokens; memory 4 bytes per
/// weight \par Threads     immutable; const members may run concurrently on different caches \par
/// Errors      `load` as SafeTensors and LlamaConfig; running: Error{limit_exceeded} past the
///                  context and Error{unknown_token}, before the cache is changed
/// \par Source      Touvron et al., LLaMA, arXiv:2302.13971, section 2.2; Su et al., RoFormer,
///                  arXiv:2104.09864, in the rotate-half order of Hugging Face's weights
class LlamaModel {
 public:
  using Cache = KvCache;
  /// The LM head, one row per token.
  using HeadView = Eigen::Map<
      const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;  // [V, H]

  LlamaModel(const LlamaConfig& config, LlamaWeights weights)
      : config_(config), weights_(std::move(weights)) {
    weights_.check(config_);
    const std::size_t half = config_.head_size / 2;
    for (std::size_t i = 0; i < half; ++i) {
      frequencies_.push_back(
          std::pow(config_.rope_theta, -static_cast<float>(i) / static_cast<float>(half)));
    }
  }

  /// Reads config.json and model.safetensors of a directory.
  [[nodiscard]] static LlamaModel load(const std::filesystem::path& directory) {
    const LlamaConfig config = LlamaConfig::load(directory / "config.json");
    const auto weights       = directory / "model.safetensors";
    const auto index         = directory / "model.safetensors.index.json";
    std::error_code failure;
    if (!std::filesystem::exists(weights, failure) && std::filesystem::exists(index, failure)) {
      throw Error(Errc::unknown_format, index.string(),
                  "a model in several files is not supported, merge it into model.safetensors");
    }
    return {config, LlamaWeights::read(SafeTensors::load(weights), config)};
  }

  [[nodiscard]] const LlamaConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return config_.vocabulary_size; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return config_.hidden_size; }
  [[nodiscard]] std::size_t context_length() const noexcept { return config_.context_length; }
  [[nodiscard]] HeadView lm_head() const noexcept {
    return {head().data, static_cast<Eigen::Index>(head().rows),
            static_cast<Eigen::Index>(head().cols)};
  }

  [[nodiscard]] Cache make_cache() const { return {config_.layers, key_width()}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length(); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache.fork(); }
  void truncate(Cache& cache, std::size_t length) const { cache.truncate(length); }
  void commit(Cache& cache, std::span<const std::size_t> path) const { cache.commit(path); }

  /// Appends L >= 1 tokens and writes the logits after the last one.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
    append(cache, tokens, [&](std::size_t first, std::span<const float> hidden) {
      if (const std::size_t count = hidden.size() / hidden_size(); first + count == tokens.size()) {
        fill_logits(hidden.last(hidden_size()), logits);
      }
    });
  }

  /// Appends L tokens and writes their final hidden states, which the head turns into logits.
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(hidden.size() == tokens.size() * hidden_size());
    append(cache, tokens, [&](std::size_t first, std::span<const float> states) {
      std::copy(states.begin(), states.end(),
                hidden.begin() + static_cast<std::ptrdiff_t>(first * hidden_size()));
    });
  }

  /// Runs N <= 64 nodes of a draft tree, which stay in the cache until `commit` or any other call;
  /// writes the logits after each.
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    TOOLDECODE_ASSERT(tokens.size() <= chunk && ancestors.size() == tokens.size());
    TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
    std::vector<Row> rows;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      // Node i sees itself and, of the other nodes, only earlier ones.
      TOOLDECODE_ASSERT(ancestors[i] >> i == 1);
      const auto level = static_cast<std::size_t>(std::popcount(ancestors[i]));
      depth            = std::max(depth, level);
      rows.push_back({&cache, tokens[i], cache.length() + level - 1, cache.length() + i,
                      cache.length(), ancestors[i]});
    }
    check(tokens, cache.length() + depth);
    cache.open(tokens.size());
    std::vector<float> hidden(tokens.size() * hidden_size());  // [N, H]
    run(rows, hidden);
    cache.close_nodes(tokens.size());
    fill_logits(hidden, logits);
  }

  /// Appends L_i >= 1 tokens to each of B different sequences and writes the logits after the last
  /// token of each.
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const {
    TOOLDECODE_ASSERT(caches.size() == tokens.size());
    TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
    std::vector<std::size_t> lengths;  // [B], after the pass
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      TOOLDECODE_ASSERT(!tokens[i].empty());
      lengths.push_back(caches[i]->length() + tokens[i].size());
      check(tokens[i], lengths[i]);
    }
    std::vector<Row> rows;
    std::vector<float> states, last(tokens.size() * hidden_size());  // last [B, H]
    std::size_t done       = 0;                                      // sequences
    const auto run_pending = [&] {
      for (std::size_t i = 0, end = 0; i < rows.size(); i = end) {
        while (end < rows.size() && rows[end].cache == rows[i].cache) ++end;
        rows[i].cache->open(end - i);
      }
      states.resize(rows.size() * hidden_size());
      run(rows, states);
      for (std::size_t i = 0, end = 0; i < rows.size(); i = end) {
        while (end < rows.size() && rows[end].cache == rows[i].cache) ++end;
        rows[i].cache->close(end - i);
        std::ranges::copy(part(states, end - 1, hidden_size()),
                          part(last, done, hidden_size()).begin());
        if (rows[i].cache->length() == lengths[done]) ++done;
      }
      rows.clear();
    };
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t length = caches[i]->length();
      for (std::size_t j = 0; j < tokens[i].size(); ++j) {
        const std::size_t slot = length + j;
        rows.push_back({caches[i], tokens[i][j], slot, slot, slot + 1, 0});
        if (rows.size() == chunk) run_pending();
      }
    }
    if (!rows.empty()) run_pending();
    fill_logits(last, logits);
  }

  /// Multiplies final hidden states [n, H] by the head: logits [n, V].
  void fill_logits(std::span<const float> hidden, std::span<float> logits) const {
    const std::size_t n = hidden.size() / hidden_size();
    fill_products({hidden.data(), n, hidden_size(), hidden_size()}, head(),
                  {logits.data(), n, vocabulary_size(), vocabulary_size()});
  }

 private:
  // Tokens that pass a layer together: enough to use what is read of it, few enough to stay in
  // cache.
  static constexpr std::size_t chunk = 64;

  /// One token on its way through the layers; it sees the slots below `prefix` and, of those from
  /// the cache's length on, the ones in `nodes`.
  struct Row {
    Cache* cache         = nullptr;
    TokenId token        = 0;
    std::size_t position = 0;
    std::size_t slot     = 0;
    std::size_t prefix   = 0;
    std::uint64_t nodes  = 0;
  };

  [[nodiscard]] std::size_t query_width() const noexcept {
    return config_.heads * config_.head_size;
  }
  [[nodiscard]] std::size_t key_width() const noexcept {
    return config_.key_value_heads * config_.head_size;
  }
  [[nodiscard]] RowsView<const float> head() const noexcept {
    const std::vector<float>& weights = config_.tied_head ? weights_.embedding : weights_.head;
    return {weights.data(), vocabulary_size(), hidden_size(), hidden_size()};
  }

  void check(std::span<const TokenId> tokens, std::size_t length) const {
    if (length > context_length()) {
      throw Error(Errc::limit_exceeded, "context",
                  "holds " + std::to_string(context_length()) + " tokens, " +
                      std::to_string(length) + " are needed");
    }
    for (const TokenId token : tokens) {
      if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size()) {
        throw Error(Errc::unknown_token, "token " + std::to_string(token),
                    "is not in the model's vocabulary");
      }
    }
  }

  /// Appends tokens and calls `visit(index of the first, hidden [n, H])` for each chunk.
  template <class Visit>
  void append(Cache& cache, std::span<const TokenId> tokens, Visit visit) const {
    check(tokens, cache.length() + tokens.size());
    std::vector<float> hidden;
    for (std::size_t first = 0; first < tokens.size(); first += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - first);
      std::vector<Row> rows;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t slot = cache.length() + i;
        rows.push_back({&cache, tokens[first + i], slot, slot, slot + 1, 0});
      }
      cache.open(count);
      hidden.resize(count * hidden_size());
      run(rows, hidden);
      cache.close(count);
      visit(first, std::span<const float>(hidden));
    }
  }

  /// Runs rows through all layers; their keys and values go to their slots.
  void run(std::span<const Row> rows, std::span<float> hidden) const {
    const std::size_t n     = rows.size();
    const std::size_t width = hidden_size();
    const std::size_t inner = config_.intermediate_size;
    std::vector<float> states(n * width);             // [n, H]
    std::vector<float> normed(n * width);             // [n, H]
    std::vector<float> query(n * query_width());      // [n, A]
    std::vector<float> attended(n * query_width());   // [n, A]
    std::vector<float> key(n * key_width());          // [n, G]
    std::vector<float> value(n * key_width());        // [n, G]
    std::vector<float> gate(n * inner);               // [n, F]
    std::vector<float> up(n * inner);                 // [n, F]
    std::vector<float> turns(n * config_.head_size);  // [n, 2, head_size / 2]
    std::vector<float> scores;

    for (std::size_t i = 0; i < n; ++i) {
      const auto row = static_cast<std::size_t>(rows[i].token) * width;
      std::copy_n(weights_.embedding.data() + row, width, states.data() + i * width);
      fill_turns(rows[i].position, part(turns, i, config_.head_size));
    }
    for (std::size_t l = 0; l < config_.layers; ++l) {
      const LlamaWeights::Layer& layer = weights_.layers[l];
      for (std::size_t i = 0; i < n; ++i) {
        normalise(part(states, i, width), layer.attention_norm, part(normed, i, width));
      }
      multiply(normed, layer.query, n, query);
      multiply(normed, layer.key, n, key);
      multiply(normed, layer.value, n, value);
      for (std::size_t i = 0; i < n; ++i) {
        rotate(part(query, i, query_width()), part(turns, i, config_.head_size));
        rotate(part(key, i, key_width()), part(turns, i, config_.head_size));
        std::ranges::copy(part(key, i, key_width()), rows[i].cache->key(l, rows[i].slot).begin());
        std::ranges::copy(part(value, i, key_width()),
                          rows[i].cache->value(l, rows[i].slot).begin());
      }
      for (std::size_t i = 0; i < n; ++i) {
        attend(rows[i], l, part(query, i, query_width()), part(attended, i, query_width()), scores);
      }
      multiply(attended, layer.output, n, normed);
      add(normed, states);
      for (std::size_t i = 0; i < n; ++i) {
        normalise(part(states, i, width), layer.feed_forward_norm, part(normed, i, width));
      }
      multiply(normed, layer.gate, n, gate);
      multiply(normed, layer.up, n, up);
      for (std::size_t i = 0; i < n; ++i) activate(part(gate, i, inner), part(up, i, inner));
      multiply(gate, layer.down, n, normed);
      add(normed, states);
    }
    for (std::size_t i = 0; i < n; ++i) {
      normalise(part(states, i, width), weights_.final_norm, hidden.subspan(i * width, width));
    }
  }

  static std::span<float> part(std::vector<float>& rows, std::size_t i, std::size_t width) {
    return {rows.data() + i * width, width};
  }

  static void multiply(const std::vector<float>& x, const std::vector<float>& w, std::size_t n,
                       std::vector<float>& y) {
    const std::size_t columns = x.size() / n;
    const std::size_t rows    = y.size() / n;
    fill_products({x.data(), n, columns, columns}, {w.data(), rows, columns, columns},
                  {y.data(), n, rows, rows});
  }

  static void add(const std::vector<float>& x, std::vector<float>& y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  }

  // The functions of one row are not inlined: one copy of their code, and so one choice of fused
  // multiply-adds, serves a row wherever it stands.

  [[gnu::noinline]] void normalise(std::span<const float> x, std::span<const float> weight,
                                   std::span<float> y) const {
    const float mean  = dot(x, x) / static_cast<float>(x.size());
    const float scale = 1.0F / std::sqrt(mean + config_.norm_epsilon);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  }

  /// Cosines, then sines, of a position's angles; the angle is rounded as the models are trained.
  [[gnu::noinline]] void fill_turns(std::size_t position, std::span<float> turns) const {
    const std::size_t half = frequencies_.size();
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies_[i];
      turns[i]          = std::cos(angle);
      turns[half + i]   = std::sin(angle);
    }
  }

  /// Turns each head's pairs (i, i + half) by their angles.
  [[gnu::noinline]] void rotate(std::span<float> heads, std::span<const float> turns) const {
    const std::size_t half = turns.size() / 2;
    for (std::size_t h = 0; h < heads.size(); h += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const float a       = heads[h + i];
        const float b       = heads[h + half + i];
        heads[h + i]        = a * turns[i] - b * turns[half + i];
        heads[h + half + i] = b * turns[i] + a * turns[half + i];
      }
    }
  }

  /// gate = silu(gate) * up.
  /// Calls `visit(first slot, count)` for the runs of slots that a row sees, ascending, each within
  /// one block.
  template <class Visit>
  static void for_each_run(const Row& row, Visit visit) {
    for (std::size_t slot = 0; slot < row.prefix; slot += KvCache::block_size) {
      visit(slot, std::min(KvCache::block_size, row.prefix - slot));
    }
    for (std::uint64_t bits = row.nodes; bits != 0; bits &= bits - 1) {
      visit(row.prefix + static_cast<std::size_t>(std::countr_zero(bits)), std::size_t{1});
    }
  }

  /// Attention of one token: the heads of a group share a key head and are scored together.
  [[gnu::noinline]] void attend(const Row& row, std::size_t layer, std::span<const float> query,
                                std::span<float> out, std::vector<float>& scores) const {
    const std::size_t size  = config_.head_size;
    const std::size_t group = config_.heads / config_.key_value_heads;
    const std::size_t seen  = row.prefix + static_cast<std::size_t>(std::popcount(row.nodes));
    const float scale       = 1.0F / std::sqrt(static_cast<float>(size));
    scores.resize(std::max(scores.size(), group * seen));  // [group, seen]
    std::ranges::fill(out, 0.0F);
    for (std::size_t k = 0; k < config_.key_value_heads; ++k) {
      const float* heads = query.data() + k * group * size;
      std::size_t column = 0;
      for_each_run(row, [&](std::size_t first, std::size_t count) {
        const auto keys = row.cache->keys(layer, first, count);
        fill_products({heads, group, size, size}, {keys.data + k * size, count, size, keys.stride},
                      {scores.data() + column, group, count, seen});
        column += count;
      });
      for (std::size_t g = 0; g < group; ++g) {
        const std::span<float> weights(scores.data() + g * seen, seen);
        soften(weights, scale);
        column = 0;
        for_each_run(row, [&](std::size_t first, std::size_t count) {
          const auto values = row.cache->values(layer, first, count);
          add_weighted_rows(weights.subspan(column, count),
                            {values.data + k * size, count, size, values.stride},
                            out.subspan((k * group + g) * size, size));
          column += count;
        });
      }
    }
  }

  LlamaConfig config_;
  LlamaWeights weights_;
  std::vector<float> frequencies_;  // [head_size / 2]
};

static_assert(TreeModel<LlamaModel> && HeadModel<LlamaModel>);

}  // namespace tooldecode
