#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/grammar.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::c_interface;

namespace {

Constrained constrained(const std::string& pattern) {
  const auto tokens = make_tokens(test::byte_vocabulary(), nullptr, nullptr);
  return {tokens, {Constraint(tokens->index, Grammar::regex(pattern))}};
}

}  // namespace

TEST_CASE("Constrained::take accepts a state that it has made and refuses any other") {
  const Constrained one     = constrained("[ab]+");
  const td_state begin      = Constrained::give(one.initial());
  const auto next           = one.advance(one.take(begin), 'a');
  const td_state after      = Constrained::give(*next);
  const auto end            = one.advance(*next, 256);
  const td_state finished   = Constrained::give(*end);
  const Constrained another = constrained("[ab]+");
  CHECK(one.take(after) == *next);
  CHECK(one.take(finished) == *end);
  td_state ahead = after;
  ahead.words[0] += 100;
  td_state marked = after;
  marked.words[1] = 1;
  for (const td_state& wrong : {td_state{}, ahead, marked, Constrained::give(another.initial()),
                                td_state{{~0ULL, ~0ULL}}}) {
    try {
      (void)one.take(wrong);
      FAIL("must throw");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unknown_state);
    }
  }
  CHECK(!one.advance(one.initial(), -1));
  CHECK(!one.advance(one.initial(), 257));
  CHECK(one.advance_bytes(one.initial(), "ab"));
  CHECK(!one.advance_bytes(one.initial(), "\xFF"));
}

TEST_CASE(
    "Constrained::follow gives the allowed beginning; only_tokens those without an alternative") {
  const Constrained word = constrained("abc[de]");
  const std::vector<TokenId> good{'a', 'b', 'c', 'e'};
  const auto [end, all] = word.follow(word.initial(), good);
  CHECK(all == 4);
  CHECK(word.constraint().is_accepting(end));
  const std::vector<TokenId> bad{'a', 'x', 'c'};
  const auto [after, some] = word.follow(word.initial(), bad);
  CHECK(some == 1);
  CHECK(word.only_tokens(word.initial()) == std::vector<TokenId>{'a', 'b', 'c'});
  CHECK(word.only_tokens(after) == std::vector<TokenId>{'b', 'c'});
  CHECK(word.only_tokens(end).empty());
}

TEST_CASE("MaskRows refuses too narrow a row and clears the words beyond the mask") {
  const Constrained word = constrained("a");
  std::vector<std::uint32_t> words(2 * (word.words() + 1), ~0U);
  const MaskRows rows{words.data(), word.words() + 1};
  CHECK_NOTHROW(rows.require_width(word));
  CHECK_THROWS_AS((MaskRows{words.data(), word.words() - 1}).require_width(word), Refusal);
  rows.fill(1, word, word.initial());
  CHECK(words[0] == ~0U);
  CHECK(words[rows.width + 'a' / 32] == 1U << ('a' % 32));
  CHECK(words.back() == 0);
  rows.fill(0, word, std::nullopt);
  CHECK(words[0] == 0);
}
