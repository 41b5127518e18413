#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/model/eagle3_model.hpp>
#include <tooldecode/model/feature_model.hpp>

#include <nlohmann/json.hpp>
#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/make_safetensors.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::random_eagle3_weights;
using td::test::random_llama;
using td::test::random_llama_config;
using td::test::Vector;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

namespace {

constexpr std::size_t width = 36;

Tokens random_tokens(std::size_t count, std::mt19937& random) {
  Tokens tokens(count);
  for (auto& token : tokens) token = static_cast<td::TokenId>(random() % 61);
  return tokens;
}

std::span<const float> row(const Floats& rows, std::size_t i, std::size_t size) {
  return std::span(rows).subspan(i * size, size);
}

Vector vector_of(std::span<const float> numbers) {
  return {numbers.begin(), numbers.end()};
}

/// The tensors of a checkpoint for random_llama_config.
td::test::FloatTensors tensors_of(const td::Eagle3Weights& weights) {
  const td::model::LlamaWeights::Layer& layer = weights.layer;
  const std::size_t inner                     = layer.gate.size() / width;
  const std::string prefix                    = "midlayer.";
  return {{"fc.weight", {{width, 3 * width}, weights.projection}},
          {prefix + "input_layernorm.weight", {{width}, weights.embedding_norm}},
          {prefix + "hidden_norm.weight", {{width}, weights.hidden_norm}},
          {prefix + "self_attn.q_proj.weight", {{60, 2 * width}, layer.query}},
          {prefix + "self_attn.k_proj.weight", {{20, 2 * width}, layer.key}},
          {prefix + "self_attn.v_proj.weight", {{20, 2 * width}, layer.value}},
          {prefix + "self_attn.o_proj.weight", {{width, 60}, layer.output}},
          {prefix + "post_attention_layernorm.weight", {{width}, layer.feed_forward_norm}},
          {prefix + "mlp.gate_proj.weight", {{inner, width}, layer.gate}},
          {prefix + "mlp.up_proj.weight", {{inner, width}, layer.up}},
          {prefix + "mlp.down_proj.weight", {{width, inner}, layer.down}}};
}

}  // namespace

TEST_CASE("Eagle3Model equals a float64 reference for a sequence and a tree") {
  const auto config  = random_llama_config();
  const auto target  = random_llama(1);
  const auto weights = random_eagle3_weights(config, 2);
  const td::Eagle3Model model{target, weights};
  CHECK(model.state_size() == 4 * width);
  std::mt19937 random{3};
  const std::size_t prefix = 35, nodes = 20;
  const Tokens line = random_tokens(prefix, random), below = random_tokens(nodes, random);
  const Floats states = td::test::random_numbers(prefix * 4 * width, 1, random);
  const Floats from   = td::test::random_numbers(nodes * width, 1, random);

  std::vector<td::test::SlowRow> rows;
  const auto push = [&](td::TokenId token, const Vector& state, std::size_t position) {
    Vector attended = td::test::normed(vector_of(target.embedding(token)), weights.embedding_norm,
                                       config.norm_epsilon);
    const Vector hidden = td::test::normed(state, weights.hidden_norm, config.norm_epsilon);
    attended.insert(attended.end(), hidden.begin(), hidden.end());
    rows.push_back({state, position, {}, attended});
  };
  for (std::size_t i = 0; i < prefix; ++i) {
    const auto features = row(states, i, 4 * width).first(3 * width);
    push(line[i], td::test::times(weights.projection, vector_of(features)), i);
    for (std::size_t s = 0; s <= i; ++s) rows[i].sees.push_back(s);
  }
  std::vector<std::uint64_t> ancestors;
  for (std::size_t i = 0; i < nodes; ++i) {
    const bool is_root       = i == 0 || random() % 6 == 0;
    const std::size_t parent = is_root ? 0 : random() % i;
    const std::size_t level  = is_root ? 0 : rows[prefix + parent].position - prefix + 1;
    push(below[i], vector_of(row(from, i, width)), prefix + level);
    ancestors.push_back((is_root ? 0 : ancestors[parent]) | std::uint64_t{1} << i);
    rows.back().sees = is_root ? rows[prefix - 1].sees : rows[prefix + parent].sees;
    rows.back().sees.push_back(prefix + i);
  }
  const auto expected = td::test::slow_layer(config, weights.layer, rows);

  for (const std::size_t step : {1U, 7U, 64U}) {
    auto cache = model.make_cache();
    Floats guesses((prefix + nodes) * width);
    const auto out = std::span(guesses);
    for (std::size_t at = 0; at < prefix; at += step) {
      const std::size_t n = std::min<std::size_t>(step, prefix - at);
      model.forward(cache, std::span(line).subspan(at, n),
                    std::span(states).subspan(at * 4 * width, n * 4 * width),
                    out.subspan(at * width, n * width));
    }
    CHECK(model.length(cache) == prefix);
    for (std::size_t at = 0; at < nodes; at += step) {
      const std::size_t n = std::min<std::size_t>(step, nodes - at);
      model.forward_nodes(
          cache, std::span(below).subspan(at, n), std::span(from).subspan(at * width, n * width),
          std::span(ancestors).subspan(at, n), out.subspan((prefix + at) * width, n * width));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO("step " << step << ", row " << i);
      CHECK(td::test::relative_error(row(guesses, i, width), expected[i]) < 1e-5);
    }
  }
}

TEST_CASE(
    "Eagle3Weights::read reads EAGLE-3's tensors and names one that is missing or does not fit") {
  const auto config  = random_llama_config();
  const auto weights = random_eagle3_weights(config, 5);
  auto tensors       = tensors_of(weights);
  const auto read    = td::Eagle3Weights::read(td::test::make_safetensors(tensors), config);
  CHECK(tensors_of(read).size() == tensors.size());
  for (const auto& [name, tensor] : tensors_of(read)) {
    INFO(name);
    CHECK(tensor.numbers == tensors[name].numbers);
  }
  const auto failure = [&](const auto& changed) {
    try {
      static_cast<void>(td::Eagle3Weights::read(td::test::make_safetensors(changed), config));
    } catch (const td::Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(td::Errc::invalid_option, std::string("none"));
  };
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    auto missing = tensors;
    missing.erase(name);
    CHECK_THAT(failure(missing).second, td::test::contains(name));
    auto longer = tensors;
    longer[name].shape[0] += 1;
    longer[name].numbers.resize(tensor.numbers.size() / tensor.shape[0] * longer[name].shape[0]);
    const auto wrong = failure(longer);
    CHECK(wrong.first == td::Errc::shape_mismatch);
    // The gate defines the width of the layer, so another tensor does not fit.
    const bool is_gate = name == "midlayer.mlp.gate_proj.weight";
    CHECK_THAT(wrong.second, td::test::contains(is_gate ? "up_proj" : name));
  }
}

TEST_CASE("Eagle3Model checks the shapes of weights in memory") {
  const auto target = random_llama(6);
  const auto right  = random_eagle3_weights(target.config(), 7);
  const auto place  = [&](auto change) {
    auto weights = right;
    change(weights);
    try {
      static_cast<void>(td::Eagle3Model{target, weights});
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::shape_mismatch);
      return error.where();
    }
    return std::string("nothing thrown");
  };
  using Weights = td::Eagle3Weights;
  using Layer   = td::model::LlamaWeights::Layer;
  CHECK(place([](Weights&) {}) == "nothing thrown");
  CHECK(place([](Weights& w) { w.projection.pop_back(); }) == "fc");
  CHECK(place([](Weights& w) { w.embedding_norm.clear(); }) == "input_layernorm");
  CHECK(place([](Weights& w) { w.hidden_norm.clear(); }) == "hidden_norm");
  const auto one_less = [&](auto part) {
    return place([part](Weights& w) { (w.layer.*part).pop_back(); });
  };
  CHECK(one_less(&Layer::query) == "self_attn.q_proj");
  CHECK(one_less(&Layer::key) == "self_attn.k_proj");
  CHECK(one_less(&Layer::value) == "self_attn.v_proj");
  CHECK(one_less(&Layer::output) == "self_attn.o_proj");
  CHECK(one_less(&Layer::feed_forward_norm) == "post_attention_layernorm");
  CHECK(one_less(&Layer::gate) == "mlp.gate_proj");
  CHECK(one_less(&Layer::up) == "mlp.up_proj");
  CHECK(one_less(&Layer::down) == "mlp.down_proj");
}

TEST_CASE("Eagle3Model of SmolLM2 equals PyTorch in states and tokens", "[published]") {
  const auto file = td::test::cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!file) return td::test::report_skipped("SmolLM2: bash examples/models.sh smollm2");
  const auto directory  = td::test::example_data("smollm2_draft");
  const auto checkpoint = td::SafeTensors::load(directory / "eagle3.safetensors");
  const auto target     = td::LlamaModel::load(*file);
  const auto features   = td::FeatureModel::for_eagle3(target);
  const td::Eagle3Model model{target, td::Eagle3Weights::read(checkpoint, target.config())};
  const auto head = td::MappedHead::read(checkpoint, target.config());
  const auto reference =
      nlohmann::json::parse(td::test::read_text(directory / "reference_draft.json"));
  CHECK(!reference["cases"].empty());
  for (const auto& one : reference["cases"]) {
    INFO(one["text"]);
    const std::size_t hidden = target.hidden_size();
    Tokens tokens            = one["tokens"].get<Tokens>();
    const Tokens given       = one["given"].get<Tokens>();
    Floats states(tokens.size() * features.hidden_size()), guesses(tokens.size() * hidden);
    auto target_cache = features.make_cache();
    features.forward_hidden(target_cache, tokens, states);
    tokens.push_back(given[0]);
    auto cache = model.make_cache();
    model.forward(cache, std::span(tokens).subspan(1), states, guesses);
    const Floats first(guesses.end() - static_cast<std::ptrdiff_t>(hidden), guesses.end());
    Floats second(hidden);
    const std::uint64_t root = 1;
    model.forward_nodes(cache, std::span(given).subspan(1, 1), first, std::span(&root, 1), second);
    CHECK(td::test::relative_error(first, one["eagle3"][0].get<Vector>()) < 2e-5);
    CHECK(td::test::relative_error(second, one["eagle3"][1].get<Vector>()) < 2e-5);
    const auto likeliest = [&](const Floats& guess) {
      return head.project_topk(guess, 1)[0].tokens[0].token;
    };
    CHECK(Tokens{likeliest(first), likeliest(second)} == one["eagle3_tokens"].get<Tokens>());
  }
}
