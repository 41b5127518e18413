#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Tokens = std::vector<td::TokenId>;

namespace {

/// Guesses a chain of a known answer, each token wrong with some chance and beside a wrong sibling;
/// gives every correct one the same probability.
struct Teacher {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::mt19937 random{7};
  };

  Tokens answer;
  unsigned right     = 100;  ///< percent
  float log          = -0.2F;
  std::size_t length = 10;

  std::size_t budget() const { return 40; }
  double min_probability() const { return 1e-9; }
  Request begin(std::span<const td::TokenId>) const { return {}; }
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    std::optional<std::size_t> node = 0;
    for (std::size_t i = 0; i < std::min(length, context.max_depth) && node; ++i) {
      const std::size_t at = context.generated.size() + i;
      const bool is_right  = at < answer.size() && request.random() % 100 < right;
      const auto wrong     = static_cast<td::TokenId>(request.random() % 40);
      candidates.add(*node, wrong, -4.0F);
      node = candidates.add(*node, is_right ? answer[at] : (wrong + 1) % 40, log);
    }
  }
};

/// The same, except that reading the prompt takes time.
struct Reader : Teacher {
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    if (context.generated.size() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
    Teacher::propose(request, context, candidates);
  }
};

/// Drafts a chain as long as it may, certain of one round and unsure in the next.
struct Moody {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::size_t round = 0;
  };
  std::vector<std::size_t>* levels;  // of each round
  std::size_t budget() const { return 40; }
  double min_probability() const { return 1e-9; }
  Request begin(std::span<const td::TokenId>) const { return {}; }
  void propose(Request& request, const td::DraftContext<td::Unconstrained>& context,
               td::DraftCandidates<td::Unconstrained>& candidates) const {
    const double probability        = request.round++ % 2 == 0 ? 0.99 : 0.3;
    std::optional<std::size_t> node = 0;
    std::size_t depth               = 0;
    for (double path = 1; node && path >= context.min_probability && depth < 12; ++depth) {
      if (depth >= context.max_depth) break;
      node = candidates.add(*node, static_cast<td::TokenId>(depth % 40),
                            static_cast<float>(std::log(probability)));
      path *= probability;
    }
    levels->push_back(depth);
  }
};

/// What drafters below have in common; their requests count rounds.
struct Scripted {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::size_t round = 0;
  };
  std::size_t budget() const { return 40; }
  double min_probability() const { return 0; }
  Request begin(std::span<const td::TokenId>) const { return {}; }
};

/// Copies one correct token in each second round, and four in the others.
struct Copier : Scripted {
  Tokens answer;
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    const std::size_t length        = request.round++ % 2 == 0 ? 1 : 4;
    std::optional<std::size_t> node = 0;
    for (std::size_t i = 0; i < length && node; ++i) {
      const std::size_t at = context.generated.size() + i;
      if (at < answer.size()) node = candidates.add_free(*node, answer[at], -0.01F);
    }
  }
};

/// Guesses one wrong token below what others guess, in each second round at most, and takes 5 ms.
struct Sluggish : Scripted {
  std::size_t* passes;
  bool heeds_passes = true;  ///< drafts nothing where no pass is wanted
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    if (request.round++ % 2 == 0 || context.max_depth == 0) return;
    if (heeds_passes && context.max_passes == 0) return;
    ++*passes;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    candidates.add(candidates.size() - 1, 39, -3.0F);
  }
};

/// Guesses wrong tokens on two levels, and takes 5 ms for each token that it has not read.
struct Follower {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::size_t read = 0;
  };
  std::size_t* catches;  // rounds with many such tokens
  std::size_t budget() const { return 40; }
  double min_probability() const { return 0; }
  Request begin(std::span<const td::TokenId>) const { return {}; }
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    if (context.max_depth == 0 || context.max_passes == 0) return;
    const std::size_t missed = context.generated.size() - request.read;
    *catches += missed > 4 ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * missed));
    request.read    = context.generated.size();
    const auto node = candidates.add(0, 39, -1.0F);
    if (node) candidates.add(*node, 39, -1.0F);
  }
};

const RandomModel model(40, {.seed = 3, .peak = 6.0F});
const td::Unconstrained any{40};
const Tokens prompt{1, 2, 3};

td::TreeCosts costs_of(double first, double last) {
  return td::TreeCosts(
      std::vector<std::pair<std::size_t, double>>{{1, first}, {td::TreeCosts::max_tokens, last}});
}

template <class D>
td::Output decode(const D& drafter, const td::DecodeOptions& options) {
  return td::Decoder{model, any,
                     td::TreeSpeculation{drafter, td::TreeVerifier<td::GumbelCoupling>{}}}(prompt,
                                                                                           options);
}

}  // namespace

static_assert(td::CandidateDrafter<td::SizedDrafter<Teacher>, td::Unconstrained>);
static_assert(td::CandidateDrafter<Moody, td::Unconstrained>);
static_assert(!td::SizedDrafter<td::SuffixDrafter>::reads_hidden);

TEST_CASE(
    "SizedDrafter does not change what is decoded, whatever passes cost and guesses are worth") {
  for (const float temperature : {0.0F, 1.0F}) {
    for (const double last : {0.001, 0.01, 1.0}) {
      for (const unsigned right : {0U, 50U, 100U}) {
        const td::DecodeOptions options{.max_tokens = 200, .temperature = temperature, .seed = 5};
        const td::Output plain = td::Decoder{model, any}(prompt, options);
        const td::SizedDrafter drafter{Teacher{plain.tokens, right}, costs_of(0.001, last)};
        const td::Output drafted = decode(drafter, options);
        INFO("last " << last << ", right " << right << " %, temperature " << temperature);
        CHECK(drafted.tokens == plain.tokens);
        CHECK(drafted.log_probabilities == plain.log_probabilities);
      }
    }
  }
}

TEST_CASE("SizedDrafter verifies correct guesses in full where large passes cost no more") {
  const td::DecodeOptions options{.max_tokens = 300};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  const td::SizedDrafter drafter{Teacher{answer}, costs_of(1000, 1000)};
  const td::Output output = decode(drafter, options);
  // A first round of levels that were never tried, then ten correct tokens and one more each.
  CHECK(output.passes <= 2 + 300 / 11 + 4);
  CHECK(drafter.acceptance().of_level(5) > 0.8);
}

TEST_CASE("SizedDrafter does not count the prompt's time as that of levels") {
  const td::DecodeOptions options{.max_tokens = 300};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  // A pass of any size takes 20 ms, a level of guesses almost nothing, except the first ones.
  const td::SizedDrafter drafter{Reader{Teacher{answer}}, costs_of(0.02, 0.02)};
  CHECK(decode(drafter, options).passes < 60);
}

TEST_CASE("SizedDrafter counts no time for levels that take no pass of a draft model") {
  const td::DecodeOptions options{.max_tokens = 100};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  std::size_t passes  = 0;
  const td::SizedDrafter drafter{td::DrafterGroup{Copier{{}, answer}, Sluggish{{}, &passes}},
                                 costs_of(1000, 1000)};
  static_cast<void>(decode(drafter, options));
  CHECK(passes > 3);
  CHECK(drafter.acceptance().seconds_of_level() >= 0.005);
}

TEST_CASE("SizedDrafter does not count as time of levels what a model reads after a rest") {
  std::size_t catches = 0;
  const td::SizedDrafter drafter{Follower{&catches}, costs_of(0.001, 0.001)};
  static_cast<void>(decode(drafter, {.max_tokens = 100}));
  CHECK(catches >= 4);
  CHECK(drafter.acceptance().seconds_of_level() >= 0.0025);
  CHECK(drafter.acceptance().seconds_of_level() < 0.02);
}

TEST_CASE("SizedDrafter keeps copied guesses where a draft model's do not pay") {
  const td::DecodeOptions options{.max_tokens = 100};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  for (const bool heeds_passes : {true, false}) {
    INFO("heeds max_passes: " << heeds_passes);
    std::size_t passes = 0;
    const td::SizedDrafter drafter{
        td::DrafterGroup{Copier{{}, answer}, Sluggish{{}, &passes, heeds_passes}},
        costs_of(0.001, 0.001)};
    const td::Output output = decode(drafter, options);
    CHECK(output.tokens == answer);
    CHECK(passes <= 6);
    if (heeds_passes) CHECK(output.passes < 45);
  }
}

TEST_CASE("SizedDrafter hardly verifies guesses that are never correct") {
  const td::DecodeOptions options{.max_tokens = 400};
  const td::SizedDrafter wrong{Teacher{{}, 0}, costs_of(1000, 64'000)};
  const td::Output output = decode(wrong, options);
  CHECK(output.passes >= 390);
  CHECK(output.drafts.nodes <= 120);  // of the 8,000 and more that there were
  CHECK(wrong.acceptance().of_level(1) < 0.3);

  // The next request knows what the first one has learnt.
  const td::Output again = decode(wrong, options);
  CHECK(again.drafts.nodes <= 60);
}

TEST_CASE("SizedDrafter judges a level by its best guess") {
  // The correct token stands beside one with a higher probability that is never correct.
  const td::DecodeOptions options{.max_tokens = 300};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  const td::SizedDrafter second{Teacher{answer, 100, -5.0F, 1}, costs_of(1000, 1000)};
  static_cast<void>(decode(second, options));
  CHECK(second.acceptance().of_level(1) < 0.1);
  CHECK(second.acceptance().of_guess(0.001) > 0.3);
}

TEST_CASE("SizedDrafter extends guesses where they are likely and stops where they are not") {
  std::vector<std::size_t> levels;
  const td::SizedDrafter drafter{Moody{&levels}, costs_of(1000, 10'000)};
  auto request = drafter.begin(prompt);
  for (int round = 0; round < 8; ++round) {
    td::DraftContext<td::Unconstrained> context{.constraint = any,
                                                .state      = any.initial(),
                                                .prompt     = prompt,
                                                .generated  = {},
                                                .hidden     = {},
                                                .max_depth  = 40,
                                                .max_nodes  = 60};
    td::DraftCandidates<td::Unconstrained> candidates(any, any.initial(), 1, 40);
    drafter.propose(request, context, candidates);
  }
  REQUIRE(levels.size() == 8);
  for (std::size_t round = 2; round < levels.size(); ++round) {
    INFO("round " << round);
    if (round % 2 == 0) CHECK(levels[round] == 12);
    if (round % 2 == 1) CHECK(levels[round] <= 2);
  }
}

TEST_CASE("SizedDrafter corrects probabilities that are too low by what was accepted") {
  // Correct nine times of ten, with a probability of one in fifty.
  const td::DecodeOptions options{.max_tokens = 600};
  const Tokens answer = td::Decoder{model, any}(prompt, options).tokens;
  const td::SizedDrafter modest{Teacher{answer, 90, -3.9F, 1}, costs_of(1000, 10'000)};
  static_cast<void>(decode(modest, options));
  const td::Output output = decode(modest, options);
  CHECK(modest.acceptance().of_guess(0.02) > 0.3);  // beside it stands one that is never correct
  CHECK(output.drafts.nodes >= 150);
  CHECK(output.passes < 480);
}
