#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/token_trie.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;

static_assert(td::ConstraintPolicy<td::ConstraintRef>);
static_assert(sizeof(td::ConstraintRef::State) == 16);
static_assert(std::is_convertible_v<const td::TokenTrie&, td::ConstraintRef>);
static_assert(!std::is_constructible_v<td::ConstraintRef, td::TokenTrie>);  // a temporary
static_assert(!std::is_convertible_v<int, td::ConstraintRef>);

namespace {

/// Requires a reference to answer as its constraint does, along a random walk.
template <class C>
void follow(const C& constraint, std::mt19937& random) {
  const td::ConstraintRef any{constraint};
  REQUIRE(any.vocabulary_size() == constraint.vocabulary_size());
  auto state              = constraint.initial();
  auto erased             = any.initial();
  const std::size_t count = constraint.vocabulary_size();
  for (int step = 0; step < 40; ++step) {
    REQUIRE(erased.template as<typename C::State>() == state);
    REQUIRE(any.is_accepting(erased) == constraint.is_accepting(state));
    REQUIRE(any.is_finished(erased) == constraint.is_finished(state));
    REQUIRE(any.jump_forward(erased) == std::string(constraint.jump_forward(state)));
    td::TokenMask mask(count), expected(count);
    any.fill_mask(erased, mask.words());
    constraint.fill_mask(state, expected.words());
    REQUIRE(mask == expected);
    const auto token = static_cast<td::TokenId>(random() % count);
    const auto next  = constraint.advance(state, token);
    const auto after = any.advance(erased, token);
    REQUIRE(next.has_value() == after.has_value());
    if (!next) continue;
    state  = *next;
    erased = *after;
  }
}

}  // namespace

TEST_CASE("ConstraintRef along random walks answers as the constraint it refers to") {
  const td::VocabularyIndex masks{td::test::byte_vocabulary()};
  std::mt19937 random{1};
  for (int round = 0; round < 20; ++round) {
    follow(td::Constraint{masks, td::Grammar::choice({"a", "abc", "b"})}, random);
    follow(td::Unconstrained{40, {7}}, random);
    follow(td::TokenTrie{masks.vocabulary(), std::vector<std::vector<td::TokenId>>{{1, 2}, {3}}},
           random);
  }
}

TEST_CASE("ConstraintRef::make_endings works for Constraint and Unconstrained, not for TokenTrie") {
  const td::VocabularyIndex masks{td::test::byte_vocabulary()};
  const td::Constraint texts{masks, td::Grammar::choice({"abc", "abcd"})};
  const auto of_texts = td::ConstraintRef(texts).make_endings({});
  REQUIRE(of_texts);
  CHECK(of_texts->shortest(td::ConstraintRef(texts).initial(), 10) == 4U);

  const td::Unconstrained any{40, {7}};
  const auto of_any = td::ConstraintRef(any).make_endings({});
  REQUIRE(of_any);
  CHECK(of_any->shortest(td::ConstraintRef(any).initial(), 10) == 1U);
  td::TokenMask mask(40);
  any.fill_mask(any.initial(), mask.words());
  of_any->narrow(td::ConstraintRef(any).initial(), 2, mask.words());
  CHECK(mask.count() == 40);
  of_any->narrow(td::ConstraintRef(any).initial(), 1, mask.words());
  CHECK(mask.count() == 1);
  CHECK(mask.contains(7));

  const td::TokenTrie trie{masks.vocabulary(), std::vector<std::vector<td::TokenId>>{{1}}};
  CHECK_FALSE(td::ConstraintRef(trie).make_endings({}));
}

TEST_CASE("ConstraintRef::find returns the constraint for its own type and null for another") {
  const td::Unconstrained any{40};
  CHECK(td::ConstraintRef(any).find<td::Unconstrained>() == &any);
  CHECK(td::ConstraintRef(any).find<td::TokenTrie>() == nullptr);
  CHECK(&td::ConstraintRef(any).as<td::Unconstrained>() == &any);
}
