#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/grammar/text_dfa.hpp>

#include <support/catch.hpp>

namespace {

using tooldecode::Occurrences;
using tooldecode::TextDfa;

std::vector<std::u32string> texts(std::size_t length) {
  std::vector<std::u32string> all{U""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == length) continue;
    for (const char32_t c : {U'a', U'b', U'c'}) all.push_back(all[i] + c);
  }
  return all;
}

std::vector<TextDfa::Row> random_rows(std::mt19937& random) {
  std::vector<TextDfa::Row> rows(1 + random() % 6);
  for (auto& row : rows) {
    row.accepting = random() % 4 == 0;
    for (int c = 0; c < 2; ++c) {
      row.next.push_back(random() % 4 == 0 ? TextDfa::dead
                                           : static_cast<TextDfa::State>(random() % rows.size()));
    }
  }
  return rows;
}

bool runs(const std::vector<TextDfa::Row>& rows, std::u32string_view text) {
  TextDfa::State state = 0;
  for (const char32_t c : text) {
    if (c == U'c') return false;
    state = rows[state].next[c == U'a' ? 0 : 1];
    if (state == TextDfa::dead) return false;
  }
  return rows[state].accepting;
}

}  // namespace

TEST_CASE("Trimming, minimising and bounding keep the language exactly", "[text_dfa]") {
  const auto all = texts(6);
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto rows = random_rows(random);
    const TextDfa dfa({{{'a', 'a'}}, {{'b', 'b'}}}, rows);
    const Occurrences length{
        static_cast<std::uint32_t>(random() % 5),
        random() % 3 ? static_cast<std::uint32_t>(random() % 7) : Occurrences::unbounded};
    const TextDfa bounded = dfa.bounded(length);
    const bool free       = dfa.is_free_of_dead_ends(length);
    INFO("seed " << seed << ", " << length.min << " to " << length.max);
    CHECK(dfa.rows().size() <= rows.size());
    std::size_t wrong = 0;
    for (const auto& text : all) {
      const bool ok   = runs(rows, text);
      const bool fits = text.size() >= length.min && text.size() <= length.max;
      wrong += dfa.accepts(text) != ok;
      wrong += bounded.accepts(text) != (ok && fits);
    }
    CHECK(wrong == 0);
    // Every state of a result can reach acceptance, so a walk that a counter admits but the bounded
    // automaton does not is a dead end.
    bool has_dead_end = length.min > length.max;
    for (const auto& text : all) {
      if (dfa.empty() || has_dead_end || text.size() > length.max) continue;
      const auto walks = [&](const TextDfa& automaton) {
        TextDfa::State state = 0;
        if (automaton.empty()) return false;
        for (const char32_t c : text) {
          if (c == U'c') return false;
          state = automaton.rows()[state].next[c == U'a' ? 0 : 1];
          if (state == TextDfa::dead) return false;
        }
        return true;
      };
      has_dead_end = walks(dfa) && !walks(bounded);
    }
    if (!dfa.empty() && length != Occurrences{}) CHECK(free == !has_dead_end);
  }
}

TEST_CASE("Equal languages have equal automata, and a product has its limit", "[text_dfa]") {
  const TextDfa one = TextDfa::repeated({{'a', 'z'}});
  const TextDfa twin({{{'a', 'z'}}}, {{{1}, true}, {{2}, true}, {{0}, true}});
  CHECK(twin.rows().size() == one.rows().size());
  CHECK(one.accepts(U"abc"));
  CHECK_FALSE(one.accepts(U"aBc"));
  CHECK(TextDfa({{{'a', 'a'}}}, {{{0}, false}}).empty());
  CHECK(one.is_free_of_dead_ends({3, 100'000}));
  CHECK_THROWS_AS(one.bounded({0, 100'000}), tooldecode::Error);
}
