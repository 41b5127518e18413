/// \file
/// Compiles ECMA-262 regular expressions, as JSON Schema uses them, to automata over code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/pattern.hpp>
#include <tooldecode/text/pattern_reader.hpp>
#include <tooldecode/text/regex_terms.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

namespace detail {

// A pattern as a term, and the derivatives of terms.
class PatternTerms {
 public:
  using Term = RegexTerms::Term;
  // The context before a position; after it follows a character or the end.
  enum Before : std::uint8_t { at_begin, after_word, after_other };

  explicit PatternTerms(const Pattern& pattern);

  [[nodiscard]] const std::vector<CodePointSet>& classes() const noexcept { return classes_; }
  [[nodiscard]] std::size_t size() const noexcept { return terms_.size(); }
  void spend(std::size_t steps) { terms_.spend(steps); }

  // The texts that match as a whole, or that contain a match.
  Term whole() { return build(pattern_.root(), terms_.empty(), true); }
  Term anywhere();

  [[nodiscard]] Before context_after(std::size_t letter) const;
  [[nodiscard]] bool depends_on_before(Term term) const { return terms_[term].on_before; }
  [[nodiscard]] bool is_nothing(Term term) const noexcept { return term == terms_.nothing(); }

  bool ends(Term term, Before before) { return nullable(term, before, classes_.size()); }

  // The derivatives of a term: the terms for the text after each character. Those of sets, and of
  // what begins with a set, are not stored.
  struct Derivatives {
    std::size_t row = no_row;
    Term set = 0, then = 0;
  };
  [[nodiscard]] Derivatives derivatives(Term term, Before before);
  [[nodiscard]] Term after(const Derivatives& from, std::size_t letter) const {
    if (from.row != no_row) return memo_[from.row + letter];
    return terms_.has(from.set, letter) ? from.then : terms_.nothing();
  }

 private:
  static constexpr std::size_t no_row   = ~std::size_t{0};
  using Kind                            = RegexTerms::Kind;
  using Node                            = RegexTerms::Node;
  static constexpr std::uint32_t none   = ~std::uint32_t{0};
  static constexpr std::uint32_t open   = none - 1;  // a row that is being computed
  static constexpr std::size_t max_memo = std::size_t{1} << 24;
  static constexpr std::size_t max_bits = std::size_t{1} << 21;  // words of `in_`
  // Limits the recursion depth, and so the stack.
  struct Descent {
    explicit Descent(std::size_t& depth);
    ~Descent();
    std::size_t& depth_;
  };

  // The coarsest partition in which each set of the pattern is a union of classes.
  std::vector<CodePointSet> partition();
  Term set_of(std::size_t set);

  // A pattern node followed by `rest`; `begins`: the node may be at the beginning of the text.
  Term build(Pattern::Index index, Term rest, bool begins);
  Term loop(Pattern::Index index, Occurrences count, Term rest, bool begins);
  Term unrolled(const Node& node);
  // A node without lookaheads, without what follows it.
  Term plain(Pattern::Index index, bool begins);

  // Whether the empty text matches between the context before and a letter (or the end).
  bool nullable(Term term, Before before, std::size_t letter);

  // Computes a row of `memo_`. Most characters lead to the same few terms, which are made once.
  void derive(Term term, Before before, std::size_t row);
  void derive_list(Term term, Before before, std::size_t row);

  const Pattern& pattern_;
  bool has_edges_ = false;
  std::vector<char> is_word_;                   // [classes]
  std::vector<std::vector<std::uint64_t>> in_;  // [classes]: bits of the pattern's sets
  std::vector<CodePointSet> classes_;
  RegexTerms terms_;
  std::vector<std::uint32_t> memo_at_;  // [terms]: index of its rows, one for each context
  std::vector<Term> memo_;              // rows of derivatives, [classes]
  std::vector<Term> plain_;             // [nodes of the pattern, begins]
  std::size_t depth_ = 0;
};

TextDfa pattern_automaton(PatternTerms& terms, PatternTerms::Term start);

}  // namespace detail

/// The texts that contain a match of a pattern, as in JSON Schema: only explicit anchors anchor it.
///
/// Supports ECMA-262's Unicode mode except what is not regular (back-references), look-behind,
/// flags, and the properties that `unicode_property` lacks. Word boundaries and lookaheads may
/// occur anywhere. A SyntaxError there is an error here, without the meanings of other dialects,
/// see Pattern; lone surrogates match nothing.
///
/// An automaton has at most 10,000 states and 8 million cells (states x classes), and takes at most
/// a million steps to build. A pattern of over 128 million cells of classes x sets is refused.
///
/// \par Complexity  O(states x classes) derivatives; exponential in the worst case, but bounded
/// \par Errors      Error{malformed_pattern, unsupported_pattern} with the byte,
///                  Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2; Brzozowski 1964; JSON Schema 2020-12, section 6.3.3
[[nodiscard]] TextDfa compile_pattern(std::string_view pattern);

/// The texts that a pattern matches as a whole; otherwise like `compile_pattern`.
[[nodiscard]] TextDfa compile_whole_pattern(std::string_view pattern);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/regex.ipp>
#endif
