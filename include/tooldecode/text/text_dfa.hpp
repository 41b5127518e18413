/// \file
/// TextDfa: a deterministic automaton over code points, for patterns on a string's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::text {

/// A minimal deterministic automaton over code points; every state can reach acceptance.
///
/// The alphabet is a partition of the code points into classes that are always treated alike. State
/// 0 is the start; an automaton without states accepts nothing.
///
/// \par Complexity  O(n) memory and O(n log n) construction for n = states x classes; `bounded` and
///                  the set operations are products
/// \par Threads     immutable after construction
/// \par Errors      Error{limit_exceeded} from `bounded` and the set operations; see BuildBudget
/// \par Source      Hopcroft 1971 (minimisation)
class TextDfa {
 public:
  using State                 = std::uint32_t;
  static constexpr State dead = ~State{0};
  /// Maximum number of states of a combination of automata.
  static constexpr std::size_t max_states = 10'000;
  /// Maximum states x classes of one automaton.
  static constexpr std::size_t max_cells = std::size_t{1} << 23;

  struct Row {
    std::vector<State> next;  // [classes], `dead` if there is no transition
    bool accepting = false;
  };

  /// \param classes  disjoint sets; code points in none of them have no transition
  TextDfa(std::vector<CodePointSet> classes, std::vector<Row> rows);

  [[nodiscard]] static TextDfa of(std::u32string_view text);
  /// Accepts every text of code points of one set.
  [[nodiscard]] static TextDfa repeated(CodePointSet set);

  [[nodiscard]] const std::vector<CodePointSet>& classes() const noexcept { return classes_; }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

  [[nodiscard]] bool accepts(std::u32string_view text) const;

  /// If the automaton only counts characters of one set: that set and the bounds. `repeated(set)`
  /// with a counter then replaces it, without a state for each count.
  [[nodiscard]] std::optional<std::pair<CodePointSet, Occurrences>> counted() const;

  /// Whether combining this automaton with a length counter has no dead ends: from every state, at
  /// every count within the bounds at which it can be reached, an end within the bounds can be
  /// reached.
  [[nodiscard]] bool is_free_of_dead_ends(const Occurrences& length) const;

  /// Whether it accepts `count` texts or more. O(states x classes).
  [[nodiscard]] bool has_at_least(std::uint32_t count) const;

  /// All texts, which must be finitely many.
  [[nodiscard]] std::vector<std::u32string> texts() const;

  /// The accepted texts whose length is within the bounds.
  [[nodiscard]] TextDfa bounded(const Occurrences& length) const;

  /// The texts of both, of either, or of the first only.
  [[nodiscard]] friend TextDfa intersection(const TextDfa& a, const TextDfa& b) {
    const auto both = [](bool in_a, bool in_b) { return in_a && in_b; };
    return product(a, b, both, both);
  }
  [[nodiscard]] friend TextDfa united(const TextDfa& a, const TextDfa& b) {
    const auto either = [](bool in_a, bool in_b) { return in_a || in_b; };
    return product(a, b, either, either);
  }
  [[nodiscard]] friend TextDfa difference(const TextDfa& a, const TextDfa& b) {
    return product(
        a, b, [](bool in_a, bool) { return in_a; },
        [](bool in_a, bool in_b) { return in_a && !in_b; });
  }

 private:
  // A pair of classes: code points that neither automaton distinguishes.
  struct SymbolClass {
    static constexpr std::size_t none = ~std::size_t{0};
    std::size_t a, b;
    friend auto operator<=>(const SymbolClass&, const SymbolClass&) = default;
  };
  struct Piece {
    char32_t first, last;
    std::size_t in;
  };
  [[nodiscard]] std::vector<Piece> pieces() const;
  static std::map<SymbolClass, std::vector<CodePointSet::Range>> letters(const TextDfa& a,
                                                                         const TextDfa& b);

  // The product of two automata. `is_alive(in_a, in_b)` selects the pairs to follow; one side may
  // have left its automaton. `accepts` selects the accepting ones.
  template <class Alive, class Accepts>
  static TextDfa product(const TextDfa& a, const TextDfa& b, Alive is_alive, Accepts accepts) {
    using Pair = std::pair<State, State>;
    std::vector<CodePointSet> classes;
    std::vector<SymbolClass> alphabet;
    for (auto& [letter, ranges] : letters(a, b)) {
      if (!is_alive(letter.a != SymbolClass::none, letter.b != SymbolClass::none)) continue;
      alphabet.push_back(letter);
      classes.emplace_back(std::move(ranges));
    }
    const auto step = [](const TextDfa& dfa, State state, std::size_t letter) {
      return state == dead || letter == SymbolClass::none ? dead : dfa.rows_[state].next[letter];
    };
    const auto is_end = [](const TextDfa& dfa, State state) {
      return state != dead && dfa.rows_[state].accepting;
    };
    std::vector<Pair> order{{a.empty() ? dead : 0, b.empty() ? dead : 0}};
    if (!is_alive(!a.empty(), !b.empty())) return TextDfa({}, {});
    std::map<Pair, State> number{{order[0], 0}};
    std::vector<Row> rows;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [in_a, in_b] = order[i];
      Row row{std::vector<State>(classes.size(), dead), accepts(is_end(a, in_a), is_end(b, in_b))};
      for (std::size_t c = 0; c < classes.size(); ++c) {
        const Pair to{step(a, in_a, alphabet[c].a), step(b, in_b, alphabet[c].b)};
        if (!is_alive(to.first != dead, to.second != dead)) continue;
        const auto [entry, fresh] = number.emplace(to, static_cast<State>(order.size()));
        if (fresh) order.push_back(to);
        row.next[c] = entry->second;
      }
      rows.push_back(std::move(row));
      check(order.size(), classes.size());
    }
    return TextDfa(std::move(classes), std::move(rows));
  }

  // Called for each state of a product, before the next.
  static void check(std::size_t states, std::size_t classes);

  static std::vector<Row> trimmed(std::vector<Row> rows);

  // The block of each state in the coarsest partition whose blocks agree on acceptance and on the
  // blocks they lead to.
  static std::vector<State> blocks(const std::vector<Row>& rows);

  // One state per block, numbered in the order in which the classes reach them from the start.
  static std::vector<Row> minimal(const std::vector<Row>& rows);

  std::vector<CodePointSet> classes_;
  std::vector<Row> rows_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/text_dfa.ipp>
#endif
