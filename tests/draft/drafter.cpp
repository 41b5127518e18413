#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

using Context = td::DraftContext<td::Unconstrained>;

/// Guesses a chain and, less likely, a child at every node of it.
struct Comb {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::size_t rounds = 0;
  };
  std::size_t nodes = 0;
  double min        = 0;

  std::size_t budget() const { return nodes; }
  double min_probability() const { return min; }
  Request begin(std::span<const td::TokenId>) const { return {}; }
  template <class C>
  void propose(Request& request, const td::DraftContext<C>&,
               td::DraftCandidates<C>& candidates) const {
    ++request.rounds;
    std::optional<std::size_t> node = 0;
    while (node) {
      candidates.add(*node, 2, -100);
      node = candidates.add(*node, 1, -0.5F);
    }
  }
};

struct OneToken {
  static constexpr bool reads_hidden                    = false;
  static constexpr bool preserves_proposal_distribution = true;
  struct Request {};
  Request begin(std::span<const td::TokenId>) const { return {}; }
  template <class C>
  td::DraftTree draft(Request&, const td::DraftContext<C>& context) const {
    td::DraftTree tree(context.root());
    tree.add(0, 6);
    return tree;
  }
};

struct NoBudget : Comb {
  std::size_t budget() const = delete;
};

static_assert(td::CandidateDrafter<Comb, td::Unconstrained>);
static_assert(td::DistributionDrafter<OneToken, td::Unconstrained>);
static_assert(td::Drafter<Comb, td::Unconstrained> && td::Drafter<OneToken, td::Unconstrained>);
static_assert(!td::CandidateDrafter<OneToken, td::Unconstrained>);
static_assert(!td::DistributionDrafter<Comb, td::Unconstrained>);
static_assert(!td::Drafter<NoBudget, td::Unconstrained> && !td::Drafter<int, td::Unconstrained>);

const td::Unconstrained any{50};
const std::vector<td::TokenId> prompt{5, 6, 7};
const std::vector<td::TokenId> generated{8, 9};

Context context_of(std::size_t depth, std::size_t nodes) {
  return {.constraint = any,
          .state      = any.initial(),
          .prompt     = prompt,
          .generated  = generated,
          .hidden     = {},
          .max_depth  = depth,
          .max_nodes  = nodes};
}

}  // namespace

TEST_CASE("DraftContext::token gives the prompt's tokens, then the emitted ones") {
  Context context = context_of(1, 1);
  CHECK(context.length() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(context.token(i) == static_cast<td::TokenId>(5 + i));
  CHECK(context.root() == 9);
  context.generated = {};
  CHECK(context.length() == 3);
  CHECK(context.root() == 7);
}

TEST_CASE("draft_tree keeps to the least of depth, nodes and budget") {
  Comb::Request request;
  const auto tree_of = [&](std::size_t budget, std::size_t depth, std::size_t nodes) {
    return td::draft_tree(Comb{budget}, request, context_of(depth, nodes));
  };
  const td::DraftTree chain = tree_of(4, 20, 64);
  CHECK(chain.size() == 5);
  CHECK(chain.token(0) == 9);
  CHECK(chain.depth(4) == 4);
  CHECK(tree_of(60, 20, 7).size() == 7);
  CHECK(tree_of(60, 3, 64).size() == 7);  // two children at each of three levels
  CHECK(tree_of(0, 20, 64).size() == 1);
  CHECK(tree_of(9, 20, 1).size() == 1);
  CHECK(tree_of(9, 0, 64).size() == 1);
  CHECK(tree_of(63, 60, 64).size() == 64);
  CHECK(request.rounds == 7);
  // The chain's tokens have exp(-0.5) each.
  const td::DraftTree likely = td::draft_tree(Comb{60, 0.2}, request, context_of(60, 64));
  CHECK(likely.size() == 4);
  CHECK(likely.depth(3) == 3);
}

TEST_CASE("draft_tree takes the tree of a drafter that keeps its distribution") {
  OneToken::Request request;
  const td::DraftTree tree = td::draft_tree(OneToken{}, request, context_of(9, 9));
  CHECK(tree.size() == 2);
  CHECK(tree.token(0) == 9);
  CHECK(tree.token(1) == 6);
}
