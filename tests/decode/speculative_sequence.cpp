#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using td::test::RandomTable;

namespace {

using Tokens = std::vector<td::TokenId>;

/// Guesses at random among the tokens that may follow.
struct Guesses {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::mt19937 random;
  };

  unsigned seed = 0;

  [[nodiscard]] std::size_t budget() const { return 12; }
  [[nodiscard]] double min_probability() const { return 0; }
  [[nodiscard]] Request begin(std::span<const td::TokenId>) const { return {std::mt19937{seed}}; }

  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    for (auto tries = request.random() % 60; tries > 0; --tries) {
      const auto token = request.random() % context.constraint.vocabulary_size();
      candidates.add(request.random() % candidates.size(), static_cast<td::TokenId>(token), -1);
    }
  }
};

}  // namespace

TEST_CASE(
    "SpeculativeSequence driven in any way gives a decoder's answer and a cache to continue from") {
  constexpr std::size_t size = 40;
  std::size_t accepted       = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{size, {.seed = seed}};
    const RandomTable table{size, seed};
    Tokens prompt(1 + random() % 6);
    for (auto& token : prompt) token = static_cast<td::TokenId>(random() % size);
    const td::DecodeOptions options{
        .max_tokens = random() % 30, .temperature = random() % 2 == 0 ? 0.0F : 1.0F, .seed = seed};
    const td::Output alone = td::Decoder{model, table}(prompt, options);

    // The cache of an earlier sequence may hold the beginning of this prompt.
    RandomModel::Cache earlier = model.make_cache();
    earlier.tokens.assign(prompt.begin(),
                          prompt.begin() + static_cast<std::ptrdiff_t>(random() % prompt.size()));
    const td::LogitsPipeline pipeline{options.logits()};
    const td::decode::Run run{table, prompt, pipeline, options};
    const Guesses drafter{seed};
    const td::TreeVerifier verifier{td::GumbelCoupling{}};
    td::decode::SpeculativeSequence sequence{model, run, drafter, verifier,
                                             td::CachedPrefix{td::ModelRef::Cache(earlier)}};
    while (!sequence.is_finished()) {
      if (sequence.take_forced()) continue;
      const auto how = random() % 3;
      if (how == 0 && sequence.can_draft()) {
        sequence.verify(sequence.draft());
      } else if (how == 1) {
        std::vector<td::decode::BatchReading> readings;
        sequence.add_readings(readings);
        td::decode::BatchPass pass{model};
        pass.run(readings);
        sequence.take_pass(pass, 0);
      } else {
        sequence.read();
      }
    }

    const td::Output& output = sequence.output();
    REQUIRE(output.tokens == alone.tokens);
    REQUIRE(output.log_probabilities == alone.log_probabilities);
    REQUIRE(output.finish == alone.finish);
    REQUIRE(output.forced_tokens == alone.forced_tokens);
    for (const std::size_t count : output.drafts.accepted) accepted += count;

    const Tokens& read = sequence.read_so_far().cache.as<RandomModel::Cache>().tokens;
    Tokens whole       = prompt;
    whole.insert(whole.end(), alone.tokens.begin(), alone.tokens.end());
    REQUIRE(read.size() <= whole.size());
    REQUIRE(std::equal(read.begin(), read.end(), whole.begin()));
    REQUIRE(read.size() + sequence.unread().size() == whole.size());
  }
  CHECK(accepted > 50);
}
