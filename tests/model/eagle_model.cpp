#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <nlohmann/json.hpp>
#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/make_safetensors.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::make_safetensors;
using td::test::random_eagle3_weights;
using td::test::random_eagle_weights;
using td::test::random_llama;
using td::test::random_llama_config;
using td::test::random_tokens;
using td::test::Vector;
using Layer  = td::model::LlamaWeights::Layer;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

namespace {

// Every matrix of a layer, by the end of its name: rows and columns.
std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes_of(
    const td::LlamaConfig& config, std::size_t inputs, std::size_t inner) {
  const std::size_t hidden  = config.hidden_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  return {{"self_attn.q_proj", {queries, inputs}}, {"self_attn.k_proj", {keys, inputs}},
          {"self_attn.v_proj", {keys, inputs}},    {"self_attn.o_proj", {hidden, queries}},
          {"post_attention_layernorm", {hidden}},  {"mlp.gate_proj", {inner, hidden}},
          {"mlp.up_proj", {inner, hidden}},        {"mlp.down_proj", {hidden, inner}}};
}

// The code and the text of the error that reading weights throws; "none" without one.
template <class Weights>
std::pair<td::Errc, std::string> read_error(const td::test::FloatTensors& tensors,
                                            const td::LlamaConfig& config) {
  try {
    static_cast<void>(Weights::read(make_safetensors(tensors), config));
  } catch (const td::Error& error) {
    return {error.code(), error.what()};
  }
  return {td::Errc::invalid_option, "none"};
}

}  // namespace

TEST_CASE("read_draft_layer reads what check_draft_layer accepts, whatever is before the names") {
  const auto config = random_llama_config();
  for (const std::size_t inputs : {config.hidden_size, 2 * config.hidden_size}) {
    for (const std::string prefix : {"layers.0.", "midlayer.", ""}) {
      CAPTURE(inputs, prefix);
      td::test::FloatTensors tensors;
      float first = 1;
      for (const auto& [name, shape] : shapes_of(config, inputs, 43)) {
        std::vector<float> numbers(shape[0] * (shape.size() > 1 ? shape[1] : 1), first++);
        tensors[prefix + name + ".weight"] = {shape, std::move(numbers)};
      }
      const auto layer =
          td::model::read_draft_layer(make_safetensors(tensors), config, prefix, inputs);
      CHECK(layer.query[0] == 1);
      CHECK(layer.key[0] == 2);
      CHECK(layer.value[0] == 3);
      CHECK(layer.output[0] == 4);
      CHECK(layer.feed_forward_norm[0] == 5);
      CHECK(layer.gate[0] == 6);
      CHECK(layer.up[0] == 7);
      CHECK(layer.down[0] == 8);
      CHECK(layer.attention_norm.empty());
      td::model::check_draft_layer(layer, config, prefix, inputs);
      for (const auto part : {&Layer::query, &Layer::key, &Layer::value, &Layer::output,
                              &Layer::feed_forward_norm, &Layer::gate, &Layer::up, &Layer::down}) {
        Layer wrong = layer;
        (wrong.*part).pop_back();
        try {
          td::model::check_draft_layer(wrong, config, prefix, inputs);
          FAIL("nothing thrown");
        } catch (const td::Error& error) {
          CHECK(error.code() == td::Errc::shape_mismatch);
          CHECK(error.where().starts_with(prefix));
        }
      }
    }
  }
}

namespace {

constexpr std::size_t width = 36;

/// Tokens and the states that are read with them.
struct Pairs {
  Tokens tokens;
  Floats states;  // [n, H]

  std::size_t size() const { return tokens.size(); }
  std::span<const float> state(std::size_t i) const {
    return std::span(states).subspan(i * width, width);
  }
  void append(const Pairs& from, std::size_t i) {
    tokens.push_back(from.tokens[i]);
    states.insert(states.end(), from.state(i).begin(), from.state(i).end());
  }
};

Pairs random_pairs(std::size_t count, std::mt19937& random) {
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) {
    pairs.tokens.push_back(static_cast<td::TokenId>(random() % 61));
  }
  pairs.states = td::test::random_numbers(count * width, 1, random);
  return pairs;
}

Floats appended(const td::EagleModel& model, td::model::KvCache& cache, const Pairs& pairs) {
  Floats guesses(pairs.size() * width);
  model.forward(cache, pairs.tokens, pairs.states, guesses);
  return guesses;
}

/// The guess after the last of some pairs that are appended one by one.
Floats one_by_one(const td::EagleModel& model, const Pairs& pairs) {
  auto cache = model.make_cache();
  Floats guess(width);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    model.forward(cache, std::span(pairs.tokens).subspan(i, 1), pairs.state(i), guess);
  }
  return guess;
}

/// Several trees of nodes: ancestors by bits, and paths from a root.
struct Forest {
  Pairs pairs;
  std::vector<std::uint64_t> ancestors;
  std::vector<std::vector<std::size_t>> paths;
};

Forest random_forest(std::size_t size, std::mt19937& random) {
  Forest forest{random_pairs(size, random), {}, {}};
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_root       = i == 0 || random() % 6 == 0;
    const std::size_t parent = is_root             ? 0
                               : random() % 2 == 0 ? i - 1
                                                   : static_cast<std::size_t>(random() % i);
    forest.ancestors.push_back((is_root ? 0 : forest.ancestors[parent]) | std::uint64_t{1} << i);
    forest.paths.push_back(is_root ? std::vector<std::size_t>{} : forest.paths[parent]);
    forest.paths.back().push_back(i);
  }
  return forest;
}

/// Runs a forest in calls of at most `step` nodes.
Floats run_nodes(const td::EagleModel& model, td::model::KvCache& cache, const Forest& forest,
                 std::size_t step) {
  Floats guesses(forest.pairs.size() * width);
  for (std::size_t first = 0; first < forest.pairs.size(); first += step) {
    const std::size_t count = std::min(step, forest.pairs.size() - first);
    model.forward_nodes(cache, std::span(forest.pairs.tokens).subspan(first, count),
                        std::span(forest.pairs.states).subspan(first * width, count * width),
                        std::span(forest.ancestors).subspan(first, count),
                        std::span(guesses).subspan(first * width, count * width));
  }
  return guesses;
}

/// The tensors of a checkpoint for random_llama_config.
td::test::FloatTensors tensors_of(const td::EagleWeights& weights) {
  const td::model::LlamaWeights::Layer& layer = weights.layer;
  const std::size_t inner                     = layer.gate.size() / width;
  const std::string prefix                    = "layers.0.";
  return {{"fc.weight", {{width, 2 * width}, weights.projection}},
          {"fc.bias", {{width}, weights.bias}},
          {prefix + "self_attn.q_proj.weight", {{60, width}, layer.query}},
          {prefix + "self_attn.k_proj.weight", {{20, width}, layer.key}},
          {prefix + "self_attn.v_proj.weight", {{20, width}, layer.value}},
          {prefix + "self_attn.o_proj.weight", {{width, 60}, layer.output}},
          {prefix + "post_attention_layernorm.weight", {{width}, layer.feed_forward_norm}},
          {prefix + "mlp.gate_proj.weight", {{inner, width}, layer.gate}},
          {prefix + "mlp.up_proj.weight", {{inner, width}, layer.up}},
          {prefix + "mlp.down_proj.weight", {{width, inner}, layer.down}}};
}

nlohmann::json read_reference(const std::filesystem::path& directory) {
  auto reference = nlohmann::json::parse(td::test::read_text(directory / "reference_draft.json"));
  CHECK(!reference["cases"].empty());
  return reference;
}

/// Compares a trained layer with PyTorch's results.
void check_reference(const td::LlamaModel& target, const std::filesystem::path& directory) {
  const auto model     = td::EagleModel::load(target, directory / "eagle.safetensors");
  const auto reference = read_reference(directory);
  for (const auto& row : reference["cases"]) {
    INFO(row["tokens"]);
    const std::size_t hidden = target.hidden_size();
    Tokens tokens            = row["tokens"].get<Tokens>();
    const Tokens given       = row["given"].get<Tokens>();
    Floats states(tokens.size() * hidden), guesses(states.size());
    auto target_cache = target.make_cache();
    target.forward_hidden(target_cache, tokens, states);
    const auto last = [&](const Floats& rows) {
      return Floats(rows.end() - static_cast<std::ptrdiff_t>(hidden), rows.end());
    };
    if (row.contains("state")) {
      CHECK(td::test::relative_error(last(states), row["state"].get<Vector>()) < 2e-5);
    }
    tokens.push_back(given[0]);
    auto cache = model.make_cache();
    model.forward(cache, std::span(tokens).subspan(1), states, guesses);
    const Floats first = last(guesses);
    Floats second(hidden);
    const std::uint64_t root = 1;
    model.forward_nodes(cache, std::span(given).subspan(1, 1), first, std::span(&root, 1), second);
    CHECK(td::test::relative_error(first, row["eagle"][0].get<Vector>()) < 2e-5);
    CHECK(td::test::relative_error(second, row["eagle"][1].get<Vector>()) < 2e-5);
  }
}

}  // namespace

TEST_CASE("EagleModel equals a float64 reference for a sequence and a tree") {
  const auto config = random_llama_config();
  const auto target = random_llama(1);
  for (const bool has_bias : {true, false}) {
    auto weights = random_eagle_weights(config, 2);
    if (!has_bias) weights.bias.clear();
    const td::EagleModel model{target, weights};
    std::mt19937 random{3};
    const std::size_t prefix = 35;
    const Pairs line         = random_pairs(prefix, random);
    const Forest forest      = random_forest(20, random);
    std::vector<td::test::SlowRow> rows;
    const auto push = [&](const Pairs& pairs, std::size_t i) {
      const auto embedding = target.embedding(pairs.tokens[i]);
      Vector pair(embedding.begin(), embedding.end());
      pair.insert(pair.end(), pairs.state(i).begin(), pairs.state(i).end());
      Vector state = td::test::times(weights.projection, pair);
      for (std::size_t h = 0; has_bias && h < width; ++h) {
        state[h] += static_cast<double>(weights.bias[h]);
      }
      rows.push_back({state, 0, {}});
    };
    for (std::size_t i = 0; i < prefix; ++i) {
      push(line, i);
      rows[i].position = i;
      for (std::size_t s = 0; s <= i; ++s) rows[i].sees.push_back(s);
    }
    for (std::size_t i = 0; i < forest.paths.size(); ++i) {
      push(forest.pairs, i);
      rows.back().position = prefix + forest.paths[i].size() - 1;
      rows.back().sees     = rows[prefix - 1].sees;
      for (const std::size_t node : forest.paths[i]) rows.back().sees.push_back(prefix + node);
    }
    const auto expected = td::test::slow_layer(config, weights.layer, rows);
    auto cache          = model.make_cache();
    Floats guesses      = appended(model, cache, line);
    const Floats nodes  = run_nodes(model, cache, forest, 64);
    guesses.insert(guesses.end(), nodes.begin(), nodes.end());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO("bias " << has_bias << ", row " << i);
      CHECK(td::test::relative_error(guesses.data() + i * width, expected[i]) < 1e-5);
    }
  }
}

TEST_CASE("EagleModel::forward_nodes has the bits of each path appended token by token") {
  const auto target = random_llama(4);
  const td::EagleModel model{target, random_eagle_weights(target.config(), 5)};
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const Pairs line = random_pairs(1 + random() % 60, random);
    Forest forest    = random_forest(seed == 0 ? 64 : 1 + random() % 40, random);
    if (seed == 1) {  // a chain
      for (std::size_t i = 0; i < forest.paths.size(); ++i) {
        forest.ancestors[i] = (std::uint64_t{2} << i) - 1;
        forest.paths[i].resize(i + 1);
        for (std::size_t j = 0; j <= i; ++j) forest.paths[i][j] = j;
      }
    }
    auto cache = model.make_cache();
    appended(model, cache, line);
    const Floats guesses = run_nodes(model, cache, forest, 64);
    CHECK(model.length(cache) == line.size());
    for (std::size_t i = 0; i < forest.paths.size(); ++i) {
      Pairs path = line;
      for (const std::size_t node : forest.paths[i]) path.append(forest.pairs, node);
      const auto from = guesses.begin() + static_cast<std::ptrdiff_t>(i * width);
      REQUIRE(Floats(from, from + width) == one_by_one(model, path));
    }
  }
}

TEST_CASE(
    "EagleModel::forward_nodes is independent of the split of calls and forward drops nodes") {
  const auto target = random_llama(6);
  const td::EagleModel model{target, random_eagle_weights(target.config(), 7)};
  std::mt19937 random{8};
  const Pairs line    = random_pairs(30, random);
  const Pairs next    = random_pairs(5, random);
  const Forest forest = random_forest(40, random);
  auto plain          = model.make_cache();
  appended(model, plain, line);
  const Floats after = appended(model, plain, next);
  Floats whole;
  for (const std::size_t step : {40U, 1U, 3U, 16U}) {
    INFO("nodes per call: " << step);
    auto cache = model.make_cache();
    appended(model, cache, line);
    const Floats nodes = run_nodes(model, cache, forest, step);
    if (whole.empty()) whole = nodes;
    CHECK(nodes == whole);
    CHECK(appended(model, cache, next) == after);
    CHECK(model.length(cache) == 35);
    // Nodes are numbered from 0 again.
    const Floats again = run_nodes(model, cache, forest, step);
    auto fresh         = model.make_cache();
    appended(model, fresh, line);
    appended(model, fresh, next);
    CHECK(again == run_nodes(model, fresh, forest, 40));
  }
}

TEST_CASE("EagleModel::forward has the bits of pairs appended one by one") {
  const auto target = random_llama(9);
  const td::EagleModel model{target, random_eagle_weights(target.config(), 10)};
  std::mt19937 random{11};
  const Pairs line   = random_pairs(70, random);
  auto cache         = model.make_cache();
  const Floats whole = appended(model, cache, line);
  CHECK(Floats(whole.end() - width, whole.end()) == one_by_one(model, line));
}

TEST_CASE(
    "EagleWeights::read reads EAGLE's tensors and takes the feed-forward width from their shape") {
  const auto target  = random_llama(12);
  const auto config  = target.config();
  const auto weights = random_eagle_weights(config, 13);
  auto tensors       = tensors_of(weights);
  const auto read    = td::EagleWeights::read(make_safetensors(tensors), config);
  CHECK(read.projection == weights.projection);
  CHECK(read.bias == weights.bias);
  CHECK(read.layer.attention_norm.empty());
  CHECK(read.layer.query == weights.layer.query);
  CHECK(read.layer.key == weights.layer.key);
  CHECK(read.layer.value == weights.layer.value);
  CHECK(read.layer.output == weights.layer.output);
  CHECK(read.layer.feed_forward_norm == weights.layer.feed_forward_norm);
  CHECK(read.layer.gate == weights.layer.gate);
  CHECK(read.layer.up == weights.layer.up);
  CHECK(read.layer.down == weights.layer.down);
  tensors.erase("fc.bias");
  tensors["embed_tokens.weight"] = {{1, 1},
                                    {0}};  // some checkpoints contain the target's embedding
  CHECK(td::EagleWeights::read(make_safetensors(tensors), config).bias.empty());
}

TEST_CASE("EagleWeights::read names a tensor that is missing or does not fit the target") {
  const auto config  = random_llama_config();
  const auto tensors = tensors_of(random_eagle_weights(config, 14));
  const auto failure = [&](const auto& changed) {
    return read_error<td::EagleWeights>(changed, config);
  };
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    auto missing = tensors;
    missing.erase(name);
    const auto absent = failure(missing);
    if (name == "fc.bias") {
      CHECK(absent.second == "none");
    } else {
      CHECK_THAT(absent.second, td::test::contains(name));
    }
    auto narrow = tensors;
    narrow[name].shape[0] += 1;
    const std::size_t others = narrow[name].shape.size() == 2 ? narrow[name].shape[1] : 1;
    narrow[name].numbers.resize(narrow[name].shape[0] * others);
    const auto wrong = failure(narrow);
    CHECK(wrong.first == td::Errc::shape_mismatch);
    // The gate defines the width of the layer, so another tensor does not fit.
    CHECK_THAT(wrong.second,
               td::test::contains(name == "layers.0.mlp.gate_proj.weight" ? "up_proj" : name));
  }
}

TEST_CASE("EagleModel checks the shapes of weights in memory") {
  const auto target = random_llama(15);
  const auto code   = [&](auto change) {
    auto weights = random_eagle_weights(target.config(), 16);
    change(weights);
    try {
      td::EagleModel model{target, std::move(weights)};
    } catch (const td::Error& error) {
      return error.code();
    }
    return td::Errc::invalid_option;
  };
  CHECK(code([](td::EagleWeights&) {}) == td::Errc::invalid_option);
  CHECK(code([](td::EagleWeights& w) { w.projection.pop_back(); }) == td::Errc::shape_mismatch);
  CHECK(code([](td::EagleWeights& w) { w.bias.pop_back(); }) == td::Errc::shape_mismatch);
  for (const auto part : {&Layer::query, &Layer::key, &Layer::value, &Layer::output,
                          &Layer::feed_forward_norm, &Layer::gate, &Layer::up, &Layer::down}) {
    CHECK(code([part](td::EagleWeights& w) { (w.layer.*part).pop_back(); }) ==
          td::Errc::shape_mismatch);
  }
  CHECK(code([](td::EagleWeights& w) { w.layer.attention_norm = {1}; }) ==
        td::Errc::shape_mismatch);

  const auto text = [&](auto change) {
    auto weights = random_eagle_weights(target.config(), 16);
    change(weights);
    try {
      td::EagleModel model{target, std::move(weights)};
    } catch (const td::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const auto right  = random_eagle_weights(target.config(), 16);
  const auto hidden = target.hidden_size();
  CHECK(text([](td::EagleWeights& w) { w.bias = {1}; }) ==
        "fc: " + number(2 * hidden * hidden) +
            " numbers with a bias of 1: must be [H, 2 H] with a bias of [H] or none, where H is " +
            number(hidden));
  const auto one_less = [&](const char* name, auto part) {
    const std::size_t size = (right.layer.*part).size();
    CHECK(text([part](td::EagleWeights& w) { (w.layer.*part).pop_back(); }) ==
          std::string("layers.0.") + name + ": " + number(size - 1) + " numbers: must be " +
              (part == &Layer::gate ? "a multiple of H, " + number(hidden) : number(size)));
  };
  one_less("self_attn.q_proj", &Layer::query);
  one_less("self_attn.k_proj", &Layer::key);
  one_less("self_attn.v_proj", &Layer::value);
  one_less("self_attn.o_proj", &Layer::output);
  one_less("post_attention_layernorm", &Layer::feed_forward_norm);
  one_less("mlp.gate_proj", &Layer::gate);
  one_less("mlp.up_proj", &Layer::up);
  one_less("mlp.down_proj", &Layer::down);
  CHECK(text([](td::EagleWeights& w) { w.layer.attention_norm = {1}; }) ==
        "layers.0.input_layernorm: 1 numbers: must be " + number(hidden));
}

TEST_CASE("EagleModel of the embedded model equals PyTorch") {
  const auto directory = td::test::example_data("tiny");
  if (!std::filesystem::exists(directory / "reference_draft.json")) {
    std::cerr << "SKIPPED: no " << (directory / "reference_draft.json").string() << '\n';
    return;
  }
  check_reference(td::LlamaModel::load(directory), directory);
}

TEST_CASE("EagleModel of SmolLM2 equals PyTorch in tokens and states", "[published]") {
  const auto file = td::test::cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!file) return td::test::report_skipped("SmolLM2: bash examples/models.sh smollm2");
  const auto directory = td::test::example_data("smollm2_draft");
  const auto tokenizer = td::load_tokenizer(*file);
  const auto reference = read_reference(directory);
  for (const auto& row : reference["cases"]) {
    INFO(row["text"]);
    CHECK(tokenizer.encode(row["text"].get<std::string>(), {.parse_special = true}) ==
          row["tokens"].get<Tokens>());
  }
  check_reference(td::LlamaModel::load(*file), directory);
}

namespace {

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
  const auto read    = td::Eagle3Weights::read(make_safetensors(tensors), config);
  CHECK(tensors_of(read).size() == tensors.size());
  for (const auto& [name, tensor] : tensors_of(read)) {
    INFO(name);
    CHECK(tensor.numbers == tensors[name].numbers);
  }
  const auto failure = [&](const auto& changed) {
    return read_error<td::Eagle3Weights>(changed, config);
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
