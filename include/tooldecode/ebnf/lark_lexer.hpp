/// \file
/// LarkLexer: the effect of a lexer on a Lark grammar, as restrictions on each place.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/ebnf/lark_lexemes.hpp>
#include <tooldecode/ebnf/lark_places.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::ebnf {

/// The lexer looks for all terminals that may come next at once and takes the longest match; among
/// several of that length it does not matter which. A lazy terminal ends as soon as it can, and
/// ends all others with it. The lexer also looks for ignored text, except at the beginning.
///
/// Which terminals it looks for depends on the open rules. If that makes no difference, bytes that
/// must not follow express the restriction on a place's texts; if it does and terminals overlap,
/// the grammar is refused.
///
/// \par Complexity  O(pairs of competing places x products of their automata)
/// \par Threads     immutable after construction
/// \par Errors      Error{unsupported_keyword} with the byte of a terminal that overlaps with
///                  another, which the message names; Error{limit_exceeded}
/// \par Source      llguidance 1.9, by its observed results
class LarkLexer {
 public:
  explicit LarkLexer(const LarkGraph& graph);

  [[nodiscard]] const LarkPlaces& places() const noexcept { return places_; }
  /// The ignored texts, grouped by what must not follow them; empty if nothing is ignored.
  [[nodiscard]] const std::vector<LarkVariant>& ignored() const noexcept { return ignored_; }
  /// The texts of a place, grouped by what must not follow them; empty if they are just the
  /// lexeme's.
  [[nodiscard]] const std::vector<LarkVariant>& variants(std::size_t place) const;

 private:
  using Id                               = LarkGraph::Id;
  static constexpr std::size_t max_pairs = 300'000;

  [[nodiscard]] Id lexeme_at(std::size_t place) const { return graph_[places_.node(place)].lexeme; }
  [[nodiscard]] const LarkLexeme& lexeme(Id number) const;
  [[nodiscard]] bool has_ignored() const { return graph_.ignored().has_value(); }
  [[nodiscard]] Id ignored_lexeme() const { return static_cast<Id>(graph_.lexemes().size()); }

  // Both lexemes by number; the ignored lexeme's number is one past the others.
  LarkMeeting meeting(Id a, Id b);
  text::ByteSet continuing(Id ended, Id other);

  // For each place, finds the places that the lexer may look for together with it.
  void find_together();

  [[noreturn]] void refuse(std::size_t place, Id other, const std::string& what) const;

  [[nodiscard]] text::ByteSet follow(std::size_t place) const;

  // Checks that no terminal is mistaken for ignored text, and that ignored text continues only as
  // itself.
  void check_ignored();

  void find_ignored();

  void find_variants(std::size_t place);

  const LarkGraph& graph_;
  LarkPlaces places_;
  std::vector<PlaceSet> together_;  // [places]
  std::set<std::pair<std::size_t, std::size_t>> seen_;
  std::map<std::pair<Id, Id>, LarkMeeting> meetings_;
  std::map<std::pair<Id, Id>, text::ByteSet> continuing_;
  std::map<std::pair<std::vector<Id>, std::string>, std::vector<LarkVariant>> split_;
  std::vector<std::vector<LarkVariant>> variants_;  // [places]
  std::vector<LarkVariant> ignored_;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_lexer.ipp>
#endif
