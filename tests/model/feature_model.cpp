#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/fixed_order.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;
using td::test::random_tokens;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

namespace {

constexpr std::size_t width = 36, layers = 7;

td::LlamaConfig config_of(std::size_t count) {
  auto config   = td::test::random_llama_config();
  config.layers = count;
  return config;
}

/// The first layers of a model; its final states are the input of the next layer divided by their
/// root mean square.
td::LlamaModel first_layers(const td::model::LlamaWeights& weights, std::size_t count) {
  auto some = weights;
  some.layers.resize(count);
  some.final_norm.assign(width, 1);
  return {config_of(count), some};
}

template <class M>
Floats states_of(const M& model, typename M::Cache& cache, const Tokens& tokens) {
  Floats states(tokens.size() * model.hidden_size());
  model.forward_hidden(cache, tokens, states);
  return states;
}

}  // namespace

TEST_CASE("FeatureModel returns the states of the chosen layers and the model's final state") {
  const auto weights = td::test::random_llama_weights(config_of(layers), 1);
  const td::LlamaModel model{config_of(layers), weights};
  std::mt19937 random{2};
  const Tokens tokens = random_tokens(70, random);  // more than one pass of a layer takes
  auto own_cache      = model.make_cache();
  const Floats own    = states_of(model, own_cache, tokens);
  for (const std::vector<std::size_t>& read :
       {std::vector<std::size_t>{1, 3, 5}, {0}, {}, {0, 1, 2, 3, 4, 5}}) {
    const td::FeatureModel features{model, read};
    CHECK(features.hidden_size() == (read.size() + 1) * width);
    auto cache         = features.make_cache();
    const Floats wide  = states_of(features, cache, tokens);
    const auto part_of = [&](std::size_t token, std::size_t part) {
      return std::span(wide).subspan(token * features.hidden_size() + part * width, width);
    };
    for (std::size_t f = 0; f < read.size(); ++f) {
      const auto shorter = first_layers(weights, read[f]);
      auto short_cache   = shorter.make_cache();
      const Floats ends  = states_of(shorter, short_cache, tokens);
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        Floats normed(width);
        td::model::fill_normed(part_of(t, f), Floats(width, 1), 1e-5F, normed);
        INFO("layer " << read[f] << ", token " << t);
        REQUIRE(normed == Floats(ends.begin() + static_cast<std::ptrdiff_t>(t * width),
                                 ends.begin() + static_cast<std::ptrdiff_t>((t + 1) * width)));
      }
    }
    Floats logits(tokens.size() * 61), expected(logits.size());
    features.fill_logits(wide, logits);
    model.fill_logits(own, expected);
    CHECK(logits == expected);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto last = part_of(t, read.size());
      REQUIRE(std::equal(last.begin(), last.end(),
                         own.begin() + static_cast<std::ptrdiff_t>(t * width)));
    }
  }
}

TEST_CASE("FeatureModel has the same states for a tree and a batch as for appended tokens") {
  const td::LlamaModel model{config_of(layers),
                             td::test::random_llama_weights(config_of(layers), 3)};
  const auto features = td::FeatureModel::for_eagle3(model);
  CHECK(features.hidden_size() == 4 * width);
  std::mt19937 random{4};
  const Tokens prompt = random_tokens(21, random), chain = random_tokens(5, random);
  std::vector<std::uint64_t> ancestors;
  for (std::size_t i = 0; i < chain.size(); ++i) ancestors.push_back((std::uint64_t{2} << i) - 1);
  auto cache        = features.make_cache();
  const Floats head = states_of(features, cache, prompt);
  auto other        = features.fork(cache);
  auto third        = features.make_cache();
  const auto more   = states_of(features, other, chain);
  features.truncate(other, prompt.size());
  Floats nodes(more.size());
  features.forward_tree_hidden(cache, chain, ancestors, nodes);
  CHECK(nodes == more);
  features.commit(cache, std::vector<std::size_t>{});

  Floats both(more.size() + head.size());
  const std::vector<td::model::KvCache*> caches{&other, &third};
  const std::vector<std::span<const td::TokenId>> tokens{chain, prompt};
  const std::vector<std::span<const std::uint64_t>> trees{ancestors, {}};
  features.forward_batch_hidden(caches, tokens, trees, both);
  Floats expected = more;
  expected.insert(expected.end(), head.begin(), head.end());
  CHECK(both == expected);
}

TEST_CASE("Decoder with a FeatureModel decodes the same tokens as with its model") {
  const td::LlamaModel model{config_of(layers),
                             td::test::random_llama_weights(config_of(layers), 5)};
  const auto features = td::FeatureModel::for_eagle3(model);
  const td::Unconstrained any{61};
  const Tokens prompt{3, 1, 4};
  for (const float temperature : {0.0F, 1.0F}) {
    const td::DecodeOptions options{.max_tokens = 30, .temperature = temperature, .seed = 6};
    const auto plain = td::Decoder{model, any}(prompt, options);
    const auto wide  = td::Decoder{features, any}(prompt, options);
    CHECK(wide.tokens == plain.tokens);
    CHECK(wide.log_probabilities == plain.log_probabilities);
  }
}

TEST_CASE("FeatureModel throws for layers that are out of range or out of order") {
  const td::LlamaModel model{config_of(layers),
                             td::test::random_llama_weights(config_of(layers), 7)};
  const auto place = [&](std::vector<std::size_t> read) {
    try {
      static_cast<void>(td::FeatureModel{model, std::move(read)});
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::invalid_option);
      return error.where();
    }
    return std::string("nothing thrown");
  };
  CHECK_THAT(place({7}), td::test::contains("layers[0]"));
  CHECK_THAT(place({2, 2}), td::test::contains("layers[1]"));
  CHECK_THAT(place({2, 1}), td::test::contains("layers[1]"));
  const td::LlamaModel flat = td::test::random_llama(8);
  CHECK_THROWS_AS(td::FeatureModel::for_eagle3(flat), td::Error);
}
