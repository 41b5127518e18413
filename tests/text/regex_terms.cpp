#include <tooldecode/core/error.hpp>
#include <tooldecode/text/regex_terms.hpp>

#include <support/catch.hpp>

using tooldecode::text::Occurrences;
using tooldecode::text::RegexTerms;

TEST_CASE("RegexTerms builds one term for expressions that algebraic rules make equal") {
  RegexTerms t(3);
  const auto a = t.set({1}), b = t.set({2}), ab = t.set({3}), none = t.nothing(), empty = t.empty();
  const Occurrences star{}, plus{1};
  CHECK(t.set({7}) == t.any());
  CHECK(t.set({0}) == none);
  CHECK(t.concat(t.concat(a, b), a) == t.concat(a, t.concat(b, a)));
  CHECK(t.concat(empty, a) == a);
  CHECK(t.concat(a, none) == none);
  CHECK(t.concat(t.all(), t.concat(t.all(), a)) == t.concat(t.all(), a));
  CHECK(t.any_of({a, b}) == ab);
  CHECK(t.any_of({t.concat(a, b), none, t.concat(b, a)}) ==
        t.any_of({t.concat(b, a), t.any_of({t.concat(a, b), t.concat(b, a)})}));
  CHECK(t.any_of({a, t.all()}) == t.all());
  CHECK(t.any_of({empty, t.repeat(a, star)}) == t.repeat(a, star));
  CHECK(t.any_of({t.repeat(a, {2, 5}), t.repeat(a, {4, 9})}) == t.repeat(a, {2, 9}));
  CHECK(t.any_of({t.repeat(a, {2, 3}), t.repeat(a, {4, 9})}) == t.repeat(a, {2, 9}));
  CHECK(t.any_of({t.repeat(a, {2, 3}), t.repeat(a, {5, 9})}) != t.repeat(a, {2, 9}));
  CHECK(t.all_of({a, t.all()}) == a);
  CHECK(t.all_of({t.concat(a, b), t.negation(t.concat(a, b))}) == none);
  CHECK(t.negation(t.negation(a)) == a);
  CHECK(t.negation(none) == t.all());
  CHECK(t.repeat(t.repeat(a, plus), star) == t.repeat(a, star));
  CHECK(t.repeat(t.repeat(a, star), {3, 7}) == t.repeat(a, star));
  CHECK(t.repeat(a, {0, 0}) == empty);
  CHECK(t.repeat(none, star) == empty);
  CHECK(t.repeat(none, plus) == none);
}

TEST_CASE("RegexTerms knows whether a term matches the empty text in the middle and at the end") {
  RegexTerms t(2);
  const auto a = t.set({1});
  CHECK(t[t.repeat(a, {})].mid);
  CHECK_FALSE(t[t.repeat(a, {1})].end);
  CHECK(t[t.end()].end);
  CHECK_FALSE(t[t.end()].mid);
  CHECK(t[t.negation(a)].mid);
  CHECK(t[t.concat(t.repeat(a, {}), t.begin())].on_before);
  CHECK_FALSE(t[t.concat(a, t.begin())].on_before);
  CHECK_FALSE(t[t.all_of({t.repeat(a, {}), t.negation(t.empty())})].end);
}

TEST_CASE("RegexTerms::spend throws when its limit of steps is exceeded") {
  RegexTerms t(2);
  CHECK_THROWS_AS(t.spend(2'000'000), tooldecode::Error);
}
