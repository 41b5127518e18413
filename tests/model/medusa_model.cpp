#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>

#include <nlohmann/json.hpp>
#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/make_safetensors.hpp>
#include <support/random_eagle.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::make_safetensors;
using td::test::Vector;
using Floats  = std::vector<float>;
using Tensors = td::test::FloatTensors;

namespace {

Tensors tensors_of(const std::vector<td::MedusaModel::Head>& heads, std::size_t width) {
  Tensors tensors;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (std::size_t b = 0; b < heads[h].size(); ++b) {
      const std::string name   = std::to_string(h) + "." + std::to_string(b) + ".linear.";
      tensors[name + "weight"] = {{width, width}, heads[h][b].weight};
      tensors[name + "bias"]   = {{width}, heads[h][b].bias};
    }
  }
  return tensors;
}

Vector slow_state(const td::MedusaModel::Head& head, const Floats& state) {
  Vector x(state.begin(), state.end());
  for (const auto& block : head) {
    Vector y = td::test::times(block.weight, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] += static_cast<double>(block.bias[i]);
      x[i] += y[i] / (1 + std::exp(-y[i]));
    }
  }
  return x;
}

/// Compares trained heads with PyTorch's results.
void check_reference(const td::LlamaModel& target, const std::filesystem::path& directory) {
  const std::size_t hidden = target.hidden_size();
  const auto model         = td::MedusaModel::load(directory / "medusa.safetensors", hidden);
  const auto reference =
      nlohmann::json::parse(td::test::read_text(directory / "reference_draft.json"));
  CHECK(!reference["cases"].empty());
  for (const auto& row : reference["cases"]) {
    INFO(row["tokens"]);
    const auto tokens = row["tokens"].get<std::vector<td::TokenId>>();
    Floats states(tokens.size() * hidden);
    auto cache = target.make_cache();
    target.forward_hidden(cache, tokens, states);
    Floats guesses(model.heads() * hidden);
    model.fill_states(std::span(states).last(hidden), guesses);
    REQUIRE(row["medusa"].size() == model.heads());
    for (std::size_t h = 0; h < model.heads(); ++h) {
      const auto expected = row["medusa"][h].get<Vector>();
      CHECK(td::test::relative_error(guesses.data() + h * hidden, expected) < 2e-5);
    }
  }
}

}  // namespace

TEST_CASE(
    "MedusaModel::fill_states equals a float64 reference for heads from a file and in memory") {
  for (const std::size_t width : {1U, 7U, 36U}) {
    std::mt19937 random{static_cast<unsigned>(width)};
    auto heads = td::test::random_medusa_heads(width, 3, 21);
    heads[1].pop_back();                                                    // one block
    heads[2].push_back(td::test::random_medusa_heads(width, 1, 22)[0][0]);  // three blocks
    const td::MedusaModel given{width, heads};
    const auto read = td::MedusaModel::read(make_safetensors(tensors_of(heads, width)), width);
    CHECK(given.heads() == 3);
    CHECK(read.heads() == 3);
    CHECK(read.hidden_size() == width);
    for (int round = 0; round < 5; ++round) {
      const Floats state = td::test::random_numbers(width, 1.5F, random);
      Floats states(3 * width), same(3 * width);
      given.fill_states(state, states);
      read.fill_states(state, same);
      CHECK(states == same);
      for (std::size_t h = 0; h < 3; ++h) {
        INFO("width " << width << ", head " << h);
        CHECK(td::test::relative_error(states.data() + h * width, slow_state(heads[h], state)) <
              1e-5);
      }
    }
  }
}

TEST_CASE("MedusaModel::fill_states of a head without blocks returns the state") {
  const td::MedusaModel model{3, {{}}};
  Floats states(3);
  model.fill_states(Floats{1, -2, 3}, states);
  CHECK(states == Floats{1, -2, 3});
}

TEST_CASE("MedusaModel names a tensor that is missing or does not fit") {
  const std::size_t width = 4;
  const auto heads        = td::test::random_medusa_heads(width, 2, 23);
  const auto tensors      = tensors_of(heads, width);
  const auto failure      = [&](const Tensors& changed) {
    try {
      static_cast<void>(td::MedusaModel::read(make_safetensors(changed), width));
    } catch (const td::Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(td::Errc::invalid_option, std::string("none"));
  };
  CHECK(failure(tensors).second == "none");
  const auto none = failure({});
  CHECK(none.first == td::Errc::malformed_file);
  CHECK(none.second == "0.0.linear.weight: must be there");
  auto changed = tensors;
  changed.erase("1.1.linear.bias");
  CHECK_THAT(failure(changed).second, td::test::contains("1.1.linear.bias"));
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    changed = tensors;
    changed[name].shape[0] += 1;
    changed[name].numbers.resize(changed[name].shape[0] * (tensor.shape.size() == 2 ? width : 1));
    const auto wrong = failure(changed);
    CHECK(wrong.first == td::Errc::shape_mismatch);
    CHECK_THAT(wrong.second, td::test::contains(name));
  }
  auto short_weight = heads;
  short_weight[1][0].weight.pop_back();
  CHECK_THROWS_WITH((td::MedusaModel{width, short_weight}),
                    "medusa: 15 numbers with a bias of 4: a block must be [H, H] with a bias of "
                    "[H], where H is 4");
  auto long_bias = heads;
  long_bias[0][1].bias.push_back(0);
  CHECK_THROWS_WITH((td::MedusaModel{width, long_bias}),
                    "medusa: 16 numbers with a bias of 5: a block must be [H, H] with a bias of "
                    "[H], where H is 4");
}

TEST_CASE("MedusaModel of the embedded model equals PyTorch") {
  const auto directory = td::test::example_data("tiny");
  if (!std::filesystem::exists(directory / "reference_draft.json")) {
    std::cerr << "SKIPPED: no " << (directory / "reference_draft.json").string() << '\n';
    return;
  }
  check_reference(td::LlamaModel::load(directory), directory);
}

TEST_CASE("MedusaModel of SmolLM2 equals PyTorch", "[published]") {
  const auto file = td::test::cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!file) return td::test::report_skipped("SmolLM2: bash examples/models.sh smollm2");
  check_reference(td::LlamaModel::load(*file), td::test::example_data("smollm2_draft"));
}
