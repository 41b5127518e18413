#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tooldecode/decode/decoder.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

struct ShortModel : RandomModel {
  using RandomModel::RandomModel;
  std::size_t context_length() const { return 8; }
};

/// A strategy that returns what it received.
struct Echo {
  template <class M, class C>
  td::Output operator()(const M&, const C& constraint, std::span<const td::TokenId> prompt,
                        const td::LogitsPipeline& pipeline, const td::DecodeOptions&) const {
    td::Output out;
    out.tokens.assign(prompt.begin(), prompt.end());
    out.passes        = pipeline.options().top_k;
    out.forced_tokens = constraint.vocabulary_size();
    return out;
  }
};

}  // namespace

TEST_CASE("Decoder runs its strategy with its model, constraint and options") {
  const RandomModel model{40};
  const td::Unconstrained any{30};
  const td::Decoder decode{model, any, Echo{}};
  const std::vector<td::TokenId> prompt{1, 2, 3};
  const auto out = decode(prompt, {.top_k = 5});
  CHECK(out.tokens == prompt);
  CHECK(out.passes == 5);
  CHECK(out.forced_tokens == 30);
}

TEST_CASE("Decoder without a constraint allows every token of the model") {
  const RandomModel model{40};
  const td::Decoder decode{model};
  STATIC_REQUIRE(
      std::is_same_v<decltype(decode), const td::Decoder<RandomModel, td::Unconstrained>>);
  CHECK(decode.constraint().vocabulary_size() == 40);
  const std::vector<td::TokenId> prompt{1};
  const auto copy = decode;
  CHECK(copy(prompt, {.max_tokens = 7}).tokens == decode(prompt, {.max_tokens = 7}).tokens);
  CHECK(decode(prompt, {.max_tokens = 0}).tokens.empty());
}

TEST_CASE("Decoder is not constructible from temporaries") {
  struct Any : td::Unconstrained {
    using td::Unconstrained::Unconstrained;
  };
  using D = td::Decoder<RandomModel, Any>;
  STATIC_REQUIRE(std::is_constructible_v<D, RandomModel&, Any&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<D, RandomModel&, Any>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<D, RandomModel, Any&>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<D, RandomModel, Any>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<td::Decoder<RandomModel>, RandomModel>);
}

TEST_CASE("Decoder refuses bad prompts, options and constraints before decoding and names them") {
  const ShortModel model{40};
  const td::Decoder decode{model};
  const auto failure = [&](const std::vector<td::TokenId>& prompt,
                           const td::DecodeOptions& options) {
    try {
      static_cast<void>(decode(prompt, options));
    } catch (const td::Error& error) {
      return std::string(name(error.code())) + " " + error.what();
    }
    return std::string("none");
  };
  CHECK(failure({}, {}) == "invalid_option prompt: must hold at least one token");
  CHECK(failure({1, 40}, {}) ==
        "unknown_token prompt token 1: id 40 must be one of the model's vocabulary, below 40");
  CHECK(failure({-1}, {}) ==
        "unknown_token prompt token 0: id -1 must be one of the model's vocabulary, below 40");
  CHECK(failure(std::vector<td::TokenId>(9, 1), {}) ==
        "limit_exceeded prompt: 9 tokens: must be at most the model's context, 8");
  CHECK(failure({1}, {.temperature = -1}) ==
        "invalid_option temperature -1: must be 0, or from 1e-6 to 1e6");
  CHECK(failure(std::vector<td::TokenId>(8, 1), {}) == "none");

  const td::Unconstrained wide{41};
  CHECK_THROWS_WITH(
      (td::Decoder{model, wide}),
      "constraint: 41 tokens: must be at most those that the model has logits for, 40");
}

TEST_CASE("Decoder ends at the model's context length") {
  const ShortModel model{40};
  const td::Decoder decode{model};
  for (std::size_t length = 1; length <= 8; ++length) {
    const auto out = decode(std::vector<td::TokenId>(length, 1));
    // The last token is chosen from the last position's logits and is not read itself.
    CHECK(out.tokens.size() == 9 - length);
    CHECK(out.finish == td::Finish::context);
  }
}

namespace {

/// A constraint that counts how often it was renewed.
struct Renewable : td::Unconstrained {
  using td::Unconstrained::Unconstrained;
  int renewals = 0;
  void reset() { ++renewals; }
};
struct TellRenewals {
  td::Output operator()(const RandomModel&, const Renewable& constraint,
                        std::span<const td::TokenId>, const td::LogitsPipeline&,
                        const td::DecodeOptions&) const {
    td::Output out;
    out.passes = static_cast<std::size_t>(constraint.renewals);
    return out;
  }
};

}  // namespace

TEST_CASE(
    "Decoder gives each prompt a renewed copy of the constraint, which itself stays unchanged") {
  const RandomModel model{40};
  Renewable constraint{40};
  constraint.renewals = 3;
  const td::Decoder decode{model, constraint, TellRenewals{}};
  const std::vector<td::TokenId> prompt{1};
  CHECK(decode(prompt).passes == 4);
  CHECK(decode(prompt).passes == 4);
  CHECK(constraint.renewals == 3);
}
