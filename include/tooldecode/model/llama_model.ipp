#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <system_error>
#include <utility>

#include <tooldecode/core/read_file.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/gguf_llama.hpp>
#include <tooldecode/model/gguf_tensors.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

TOOLDECODE_INLINE LlamaModel::LlamaModel(const LlamaConfig& config, model::LlamaWeights weights)
    : config_(config), weights_(std::move(weights)), layers_(config) {
  weights_.check(config_);
}

TOOLDECODE_INLINE LlamaModel LlamaModel::load(const std::filesystem::path& path) {
  if (std::error_code failure; std::filesystem::is_regular_file(path, failure)) {
    const std::string bytes = core::read_file(path);
    try {
      return parse_gguf(bytes);
    } catch (const Error& error) {
      throw error.within(path.string());
    }
  }
  return load_directory(path);
}

TOOLDECODE_INLINE LlamaModel LlamaModel::parse_gguf(std::string_view bytes) {
  const model::GgufTensors file(bytes);
  const LlamaConfig config = model::read_llama_config(file);
  return {config, model::read_llama_weights(file, config)};
}

TOOLDECODE_INLINE LlamaModel LlamaModel::load_ends(const std::filesystem::path& path) {
  const std::string bytes = core::read_file(path);
  try {
    const model::GgufTensors file(bytes);
    LlamaConfig config = model::read_llama_config(file);
    config.layers      = 0;
    return {config, model::LlamaWeights::read(file, config, model::detail::gguf_name)};
  } catch (const Error& error) {
    throw error.within(path.string());
  }
}

TOOLDECODE_INLINE std::span<const float> LlamaModel::embedding(TokenId token) const noexcept {
  return std::span(weights_.embedding)
      .subspan(static_cast<std::size_t>(token) * hidden_size(), hidden_size());
}

TOOLDECODE_INLINE HeadView LlamaModel::lm_head() const noexcept {
  const std::vector<float>& weights = config_.tied_head ? weights_.embedding : weights_.head;
  return model::RowsView<const float>{weights.data(), vocabulary_size(), hidden_size(),
                                      hidden_size()};
}

TOOLDECODE_INLINE void LlamaModel::forward(Cache& cache, std::span<const TokenId> tokens,
                                           std::span<float> logits) const {
  TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
  append(cache, tokens, [&](std::size_t first, std::span<const float> hidden) {
    if (const std::size_t count = hidden.size() / hidden_size(); first + count == tokens.size()) {
      fill_logits(hidden.last(hidden_size()), logits);
    }
  });
}

TOOLDECODE_INLINE void LlamaModel::forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                                                  std::span<float> hidden,
                                                  std::span<const std::size_t> features) const {
  const std::size_t width = state_size(features);
  TOOLDECODE_ASSERT(hidden.size() == tokens.size() * width);
  append(
      cache, tokens,
      [&](std::size_t first, std::span<const float> states) {
        std::ranges::copy(states, hidden.subspan(first * width, states.size()).begin());
      },
      features);
}

TOOLDECODE_INLINE void LlamaModel::forward_tree(Cache& cache, std::span<const TokenId> tokens,
                                                std::span<const std::uint64_t> ancestors,
                                                std::span<float> logits) const {
  TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
  std::vector<float> hidden(tokens.size() * hidden_size());  // [N, H]
  forward_tree_hidden(cache, tokens, ancestors, hidden);
  fill_logits(hidden, logits);
}

TOOLDECODE_INLINE void LlamaModel::forward_tree_hidden(
    Cache& cache, std::span<const TokenId> tokens, std::span<const std::uint64_t> ancestors,
    std::span<float> hidden, std::span<const std::size_t> features) const {
  TOOLDECODE_ASSERT(tokens.size() <= chunk && ancestors.size() == tokens.size());
  TOOLDECODE_ASSERT(hidden.size() == tokens.size() * state_size(features));
  config_.check(tokens, cache.length() + depth_of(ancestors));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(node_row(cache, tokens[i], i, ancestors[i]));
  }
  cache.open(tokens.size());
  run(rows, hidden, features);
  cache.close_nodes(tokens.size());
}

TOOLDECODE_INLINE void LlamaModel::forward_batch(std::span<Cache* const> caches,
                                                 std::span<const std::span<const TokenId>> tokens,
                                                 std::span<float> logits) const {
  TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
  std::vector<float> last(tokens.size() * hidden_size());  // [B, H]
  run_batch(caches, tokens, {}, [&](const Part& of, std::span<const float> states) {
    std::ranges::copy(states.last(hidden_size()), part(last, of.sequence, hidden_size()).begin());
  });
  fill_logits(last, logits);
}

TOOLDECODE_INLINE void LlamaModel::forward_batch_hidden(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors, std::span<float> hidden,
    std::span<const std::size_t> features) const {
  const std::size_t width = state_size(features);
  TOOLDECODE_ASSERT(ancestors.size() == tokens.size());
  std::vector<std::size_t> begins;  // first state of each sequence
  std::size_t total = 0;
  for (const auto& of : tokens) begins.push_back(std::exchange(total, total + of.size()));
  TOOLDECODE_ASSERT(hidden.size() == total * width);
  run_batch(
      caches, tokens, ancestors,
      [&](const Part& of, std::span<const float> states) {
        const std::size_t at = (begins[of.sequence] + of.first) * width;
        std::ranges::copy(states, hidden.subspan(at, states.size()).begin());
      },
      features);
}

TOOLDECODE_INLINE void LlamaModel::fill_logits(std::span<const float> hidden,
                                               std::span<float> logits) const {
  model::fill_packed_products(hidden, lm_head(), logits);
}

TOOLDECODE_INLINE LlamaModel LlamaModel::load_directory(const std::filesystem::path& directory) {
  const LlamaConfig config = LlamaConfig::load(directory / "config.json");
  const auto weights       = directory / "model.safetensors";
  const auto index         = directory / "model.safetensors.index.json";
  std::error_code failure;
  if (!std::filesystem::exists(weights, failure) && std::filesystem::exists(index, failure)) {
    throw Error(Errc::unknown_format, index.string(),
                "a model in several files is not supported, merge it into model.safetensors");
  }
  return {config, model::LlamaWeights::read(SafeTensors::load(weights), config)};
}

TOOLDECODE_INLINE std::size_t LlamaModel::state_size(
    std::span<const std::size_t> features) const noexcept {
  return (features.size() + 1) * hidden_size();
}

TOOLDECODE_INLINE void LlamaModel::append(
    Cache& cache, std::span<const TokenId> tokens,
    const std::function<void(std::size_t, std::span<const float>)>& visit,
    std::span<const std::size_t> features) const {
  config_.check(tokens, cache.length() + tokens.size());
  std::vector<float> hidden;
  for (std::size_t first = 0; first < tokens.size(); first += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - first);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < count; ++i) {
      rows.push_back(appended_row(cache, tokens[first + i], cache.length() + i));
    }
    cache.open(count);
    hidden.resize(count * state_size(features));
    run(rows, hidden, features);
    cache.close(count);
    visit(first, std::span<const float>(hidden));
  }
}

TOOLDECODE_INLINE LlamaModel::Row LlamaModel::appended_row(Cache& cache, TokenId token,
                                                           std::size_t slot) {
  return {token, model::LlamaRow::appended(cache, slot)};
}

TOOLDECODE_INLINE LlamaModel::Row LlamaModel::node_row(Cache& cache, TokenId token, std::size_t i,
                                                       std::uint64_t ancestors) {
  // A node sees itself and only earlier nodes.
  TOOLDECODE_ASSERT(ancestors >> i == 1);
  return {token, model::LlamaRow::node(cache, cache.length() + i, ancestors)};
}

TOOLDECODE_INLINE std::size_t LlamaModel::depth_of(std::span<const std::uint64_t> ancestors) {
  int depth = 0;
  for (const std::uint64_t of_node : ancestors) depth = std::max(depth, std::popcount(of_node));
  return static_cast<std::size_t>(depth);
}

TOOLDECODE_INLINE void LlamaModel::run_batch(
    std::span<Cache* const> caches, std::span<const std::span<const TokenId>> tokens,
    std::span<const std::span<const std::uint64_t>> ancestors,
    const std::function<void(const Part&, std::span<const float>)>& visit,
    std::span<const std::size_t> features) const {
  const std::size_t width = state_size(features);
  TOOLDECODE_ASSERT(caches.size() == tokens.size());
  const auto tree_of = [&](std::size_t i) {
    return ancestors.empty() ? std::span<const std::uint64_t>() : ancestors[i];
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto tree = tree_of(i);
    TOOLDECODE_ASSERT(!tokens[i].empty());
    TOOLDECODE_ASSERT(tree.empty() || (tree.size() == tokens[i].size() && tree.size() <= chunk));
    config_.check(tokens[i],
                  caches[i]->length() + (tree.empty() ? tokens[i].size() : depth_of(tree)));
  }
  std::vector<Row> rows;
  std::vector<Part> parts;
  std::vector<float> states;
  const auto run_pending = [&] {
    for (const Part& of : parts) caches[of.sequence]->open(of.count);
    states.resize(rows.size() * width);
    run(rows, states, features);
    std::size_t done = 0;
    for (const Part& of : parts) {
      Cache& cache = *caches[of.sequence];
      tree_of(of.sequence).empty() ? cache.close(of.count) : cache.close_nodes(of.count);
      visit(of, std::span<const float>(states).subspan(done, of.count * width));
      done += of.count * width;
    }
    rows.clear();
    parts.clear();
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto tree = tree_of(i);
    if (!tree.empty() && rows.size() + tree.size() > chunk) run_pending();
    for (std::size_t first = 0; first < tokens[i].size();) {
      const std::size_t count = std::min(tokens[i].size() - first, chunk - rows.size());
      for (std::size_t j = 0; j < count; ++j) {
        const TokenId token = tokens[i][first + j];
        rows.push_back(tree.empty() ? appended_row(*caches[i], token, caches[i]->length() + j)
                                    : node_row(*caches[i], token, j, tree[j]));
      }
      parts.push_back({i, first, count});
      first += count;
      if (rows.size() == chunk) run_pending();
    }
  }
  if (!rows.empty()) run_pending();
}

TOOLDECODE_INLINE void LlamaModel::run(std::span<const Row> rows, std::span<float> hidden,
                                       std::span<const std::size_t> features) const {
  const std::size_t width  = hidden_size();
  const std::size_t stride = state_size(features);
  std::vector<float> states(rows.size() * width);  // [n, H]
  std::vector<model::LlamaRow> places;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(embedding(rows[i].token), part(states, i, width).begin());
    places.push_back(rows[i].place);
  }
  std::size_t column   = 0;
  const auto next_part = [&](std::size_t i) { return hidden.subspan(i * stride + column, width); };
  const auto before    = [&](std::size_t layer) {
    if (column == features.size() * width || layer != features[column / width]) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(part(states, i, width), next_part(i).begin());
    }
    column += width;
  };
  layers_.run(weights_.layers, places, states, {}, before);
  TOOLDECODE_ASSERT(column == features.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    layers_.normalise(part(states, i, width), weights_.final_norm, next_part(i));
  }
}

TOOLDECODE_INLINE std::span<float> LlamaModel::part(std::vector<float>& rows, std::size_t i,
                                                    std::size_t width) {
  return {rows.data() + i * width, width};
}

}  // namespace tooldecode
