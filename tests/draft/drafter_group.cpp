#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_group.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

/// Guesses one chain, and notes how many candidates it found.
template <bool hidden>
struct Chain {
  static constexpr bool reads_hidden = hidden;
  struct Request {
    std::size_t prompt = 0;
    std::size_t found  = 0;
  };
  Tokens tokens;
  float score = 0;

  std::size_t budget() const { return 1; }
  double min_probability() const { return 0; }
  Request begin(std::span<const td::TokenId> prompt) const { return {prompt.size(), 0}; }
  template <class C>
  void propose(Request& request, const td::DraftContext<C>&,
               td::DraftCandidates<C>& candidates) const {
    request.found                   = candidates.size();
    std::optional<std::size_t> node = 0;
    for (const td::TokenId token : tokens) node = candidates.add(*node, token, score);
  }
};

using Plain  = Chain<false>;
using Hidden = Chain<true>;

static_assert(!td::DrafterGroup<Plain>::reads_hidden);
static_assert(!td::DrafterGroup<Plain, Plain>::reads_hidden);
static_assert(td::DrafterGroup<Plain, Hidden>::reads_hidden);
static_assert(td::DrafterGroup<Hidden, Plain>::reads_hidden);
static_assert(td::CandidateDrafter<td::DrafterGroup<Plain, Hidden>, td::Unconstrained>);
static_assert(
    td::CandidateDrafter<td::DrafterGroup<td::DrafterGroup<Plain>, Hidden>, td::Unconstrained>);

const td::Unconstrained any{50};
const Tokens prompt{5, 6, 7};

template <class D>
td::DraftTree tree_of(const D& drafters, typename D::Request& request) {
  return td::draft_tree(drafters, request,
                        td::DraftContext<td::Unconstrained>{.constraint = any,
                                                            .state      = any.initial(),
                                                            .prompt     = prompt,
                                                            .generated  = {},
                                                            .hidden     = {},
                                                            .max_depth  = 60,
                                                            .max_nodes  = 64});
}

}  // namespace

TEST_CASE("DrafterGroup drafts the union of its drafters' guesses, in their order") {
  const td::DrafterGroup drafters{Plain{{1, 2, 3}, -0.5F}, Hidden{{1, 2, 4}, -0.25F},
                                  Plain{{8}, -1.0F}};
  auto request = drafters.begin(prompt);
  CHECK(std::get<0>(request).prompt == 3);
  CHECK(std::get<2>(request).prompt == 3);
  const td::DraftTree tree = tree_of(drafters, request);
  CHECK(std::get<0>(request).found == 1);
  CHECK(std::get<1>(request).found == 4);
  CHECK(std::get<2>(request).found == 5);
  REQUIRE(tree.size() == 6);
  CHECK(Tokens(tree.tokens().begin(), tree.tokens().end()) == Tokens{7, 1, 2, 3, 4, 8});
  CHECK(tree.parent(3) == 2);
  CHECK(tree.parent(4) == 2);
  CHECK(tree.parent(5) == 0);
  // A token that two drafters guess has the higher probability.
  CHECK(tree.score(2) == -0.5F);
  CHECK(tree.score(3) == -1.0F);
  CHECK(tree.score(4) == -0.75F);
}

TEST_CASE("DrafterGroup has one budget and one least probability for all its drafters") {
  const Plain first{{1, 2, 3}, -0.5F}, second{{4, 5}, -0.75F};
  const auto tokens = [&](td::DrafterGroupOptions options) {
    const td::DrafterGroup drafters{options, first, second};
    auto request             = drafters.begin(prompt);
    const td::DraftTree tree = tree_of(drafters, request);
    return Tokens(tree.tokens().begin() + 1, tree.tokens().end());
  };
  CHECK(td::DrafterGroup{first}.budget() == 32);
  CHECK(tokens({.budget = 9, .min_probability = 0}) == Tokens{1, 2, 3, 4, 5});
  CHECK(tokens({.budget = 2, .min_probability = 0}) == Tokens{1, 4});
  CHECK(tokens({.budget = 3, .min_probability = 0}) == Tokens{1, 2, 4});
  CHECK(tokens({.budget = 0, .min_probability = 0}).empty());
  CHECK(tokens({.budget = 9, .min_probability = 0.3}) == Tokens{1, 2, 4});
}
