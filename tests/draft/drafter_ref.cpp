#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_ref.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

/// Guesses the tokens that follow the last one by counting.
struct Counting {
  static constexpr bool reads_hidden = false;
  struct Request {
    td::TokenId step;
  };
  td::TokenId step = 1;

  [[nodiscard]] std::size_t budget() const { return 3; }
  [[nodiscard]] double min_probability() const { return 0; }
  [[nodiscard]] Request begin(std::span<const td::TokenId>) const { return {step}; }
  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    std::optional<std::size_t> node = 0;
    for (int i = 0; i < 5 && node; ++i) {
      node = candidates.add(*node, candidates.token(*node) + request.step, -0.5F);
    }
    static_cast<void>(context.state);
  }
};

/// The same for one type of constraint only, whose members it calls.
struct Own : Counting {
  static constexpr bool reads_hidden = true;

  void propose(Request& request, const td::DraftContext<td::Unconstrained>& context,
               td::DraftCandidates<td::Unconstrained>& candidates) const {
    if (!context.state.finished) Counting::propose(request, context, candidates);
  }
};

td::DraftTree drafted(td::DrafterRef drafter, const td::Unconstrained& any) {
  const Tokens prompt{1, 2};
  const td::ConstraintRef constraint{any};
  auto request = drafter.begin(prompt);
  return drafter.draft(request, {.constraint = constraint,
                                 .state      = constraint.initial(),
                                 .prompt     = prompt,
                                 .generated  = {},
                                 .hidden     = {},
                                 .max_depth  = 9,
                                 .max_nodes  = 64});
}

}  // namespace

static_assert(std::is_convertible_v<const Counting&, td::DrafterRef>);
static_assert(!std::is_constructible_v<td::DrafterRef, Counting>);  // a temporary
static_assert(!std::is_convertible_v<const Own&, td::DrafterRef>);

TEST_CASE("DrafterRef under any constraint drafts as its drafter") {
  const td::Unconstrained any{100};
  const Counting drafter{.step = 3};
  const td::DrafterRef of_any = td::DrafterRef::under<td::Unconstrained>(drafter);
  CHECK_FALSE(of_any.reads_hidden());
  CHECK(std::ranges::equal(drafted(of_any, any).tokens(), Tokens{2, 5, 8, 11}));
}

TEST_CASE("DrafterRef to a drafter for one constraint type passes the constraint itself") {
  const td::Unconstrained any{100};
  const Own drafter{};
  const td::DrafterRef own = td::DrafterRef::under<td::Unconstrained>(drafter);
  CHECK(own.reads_hidden());
  CHECK(std::ranges::equal(drafted(own, any).tokens(), Tokens{2, 3, 4, 5}));
}
