/// \file
/// RegexTerms: hash-consed regular expressions with intersection, complement and anchors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::text {

/// A store of terms. Equal terms are stored once, and terms are simplified by distributive laws, so
/// a term has few derivatives.
///
/// A term describes the rest of a text from some position on. So anchors and word boundaries are
/// terms that match the empty text at some positions, and a lookahead is an intersection with what
/// follows it.
///
/// \par Complexity  O(n log n) for a list of n terms, else O(1); memory bounded
/// \par Threads     one object per thread
/// \par Errors      Error{limit_exceeded} past 200,000 terms or 1,000,000 steps; see BuildBudget
/// \par Source      Brzozowski 1964; Owens, Reppy and Turon 2009 (the simplifications)
class RegexTerms {
 public:
  using Term = std::uint32_t;
  enum class Kind : std::uint8_t {
    nothing,
    empty,
    set,     ///< a: the set
    begin,   ///< the empty text at the beginning
    end,     ///< the empty text at the end
    edge,    ///< a word boundary; a = 1: no word boundary
    concat,  ///< a, then b
    repeat,  ///< a, repeated
    any_of,
    all_of,
    negation,  ///< of a
    loop,      ///< user-defined: a, repeated, then b; c is free
  };
  struct Node {
    Kind kind = Kind::nothing;
    Term a = 0, b = 0, c = 0;
    Occurrences count{};
    bool on_before = false;  ///< what it matches depends on the character before
    bool mid       = false;  ///< otherwise: it matches the empty text before a character
    bool end       = false;  ///< otherwise: it matches the empty text at the end
  };
  using Bits = std::vector<std::uint64_t>;

  /// \param letters  size of the sets' alphabet
  explicit RegexTerms(std::size_t letters);

  [[nodiscard]] const Node& operator[](Term term) const { return terms_[term]; }
  [[nodiscard]] std::size_t size() const noexcept { return terms_.size(); }
  /// The members of a union or an intersection.
  [[nodiscard]] const std::vector<Term>& list(Term term) const { return lists_[terms_[term].a]; }
  [[nodiscard]] bool has(Term set, std::size_t letter) const;

  [[nodiscard]] Term nothing() const noexcept { return nothing_; }
  [[nodiscard]] Term empty() const noexcept { return empty_; }
  [[nodiscard]] Term any() const noexcept { return any_; }  ///< any letter
  [[nodiscard]] Term all() const noexcept { return all_; }
  [[nodiscard]] Term set(const Bits& bits);
  [[nodiscard]] Term begin() { return intern({.kind = Kind::begin}); }
  [[nodiscard]] Term end() { return intern({.kind = Kind::end}); }
  [[nodiscard]] Term edge(bool negated);
  [[nodiscard]] Term concat(Term a, Term b);
  [[nodiscard]] Term repeat(Term a, Occurrences count);
  [[nodiscard]] Term any_of(std::vector<Term> list);
  [[nodiscard]] Term all_of(std::vector<Term> list);
  [[nodiscard]] Term negation(Term a);
  [[nodiscard]] Term loop(Term a, Occurrences count, Term b, Term c);

  /// Counts steps of work, which are limited.
  void spend(std::size_t steps);
  [[noreturn]] static void too_large();

 private:
  static constexpr std::size_t max_terms = 200'000, max_work = 1'000'000;

  // The index of a list in a table; adds a new list.
  template <class List>
  static Term number(List list, std::vector<List>& table, core::InternIndex& index) {
    std::uint64_t hash = list.size();
    for (const auto one : list) hash = core::hash_combine(hash, one);
    return index.intern(
        hash, [&](Term known) { return table[known] == list; },
        [&] {
          table.push_back(std::move(list));
          return static_cast<Term>(table.size() - 1);
        });
  }
  Term intern(Node node);
  void describe(Node& node) const;

  // The first factor of a term, and the rest.
  [[nodiscard]] std::pair<Term, Term> head(Term term) const;
  void flatten(Kind kind, std::vector<Term>& list) const;
  static void sort(std::vector<Term>& list);
  // Replaces the sets in a list by their union.
  void merge_sets(std::vector<Term>& list);
  // x{2,5}y and x{4,9}y become x{2,9}y.
  void merge_repeats(std::vector<Term>& list);

  std::vector<Node> terms_;
  std::vector<Bits> sets_;
  std::vector<std::vector<Term>> lists_;
  core::InternIndex index_, set_index_, list_index_;
  Term nothing_ = 0, empty_ = 0, any_ = 0, all_ = 0;
  std::size_t work_ = 0;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/regex_terms.ipp>
#endif
