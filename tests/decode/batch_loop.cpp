#include <cstddef>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/batch_loop.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_group.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Tokens = std::vector<td::TokenId>;

namespace {

struct ReadsStates : td::DrafterGroup<> {
  static constexpr bool reads_hidden = true;
};

}  // namespace

TEST_CASE("BatchLoop with sequences of several types gives each the answer that it has alone") {
  const RandomModel model{50, {.seed = 3}};
  const td::Unconstrained any{50}, fewer{20};
  const td::DrafterGroup<> none;
  td::decode::BatchLoop loop{model, {.max_batch = 2}};
  std::vector<td::Output> outputs(4);
  std::size_t renewed = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    loop.add({.prompt     = Tokens{1, static_cast<td::TokenId>(i)},
              .owner      = nullptr,
              .constraint = i % 2 == 0 ? td::ConstraintRef(any) : td::ConstraintRef(fewer),
              .reset      = [&] { ++renewed; },
              .drafter    = none,
              .options    = {.max_tokens = 5 + i},
              .on_end     = [&outputs, i](const td::Output& output) -> td::AfterTurn {
                outputs[i] = output;
                return td::Leave{};
              }});
  }
  CHECK(loop.arrived() == 4);
  while (loop.step()) {}
  CHECK(loop.present() + loop.arrived() == 0);
  CHECK(renewed == 4);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const td::Decoder decode{model, i % 2 == 0 ? any : fewer};
    CHECK(outputs[i].tokens ==
          decode(Tokens{1, static_cast<td::TokenId>(i)}, {.max_tokens = 5 + i}).tokens);
  }
}

TEST_CASE("BatchLoop refuses a drafter that reads hidden states which the model does not give") {
  const RandomModel model{50};
  const td::Unconstrained any{50};
  const ReadsStates drafter;
  td::decode::BatchLoop loop{model, {}};
  CHECK_THROWS_AS(loop.add({.prompt     = Tokens{1},
                            .owner      = nullptr,
                            .constraint = any,
                            .reset      = {},
                            .drafter    = drafter}),
                  td::Error);
}
