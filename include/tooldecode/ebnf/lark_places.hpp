/// \file
/// LarkPlaces: which lexemes of a Lark grammar may follow each other, and which compete in the
/// lexer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/ebnf/lark_graph.hpp>

namespace tooldecode::ebnf {

/// A bit set of places.
class PlaceSet {
 public:
  explicit PlaceSet(std::size_t size = 0) : words_((size + 63) / 64, 0) {}

  [[nodiscard]] bool contains(std::size_t place) const;
  void insert(std::size_t place) { words_[place / 64] |= std::uint64_t{1} << (place % 64); }
  /// Adds the members of another set; returns whether any is new.
  bool add(const PlaceSet& other);
  [[nodiscard]] bool empty() const;
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        visit(64 * w + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// The places of a graph are its lexeme nodes.
///
/// What may follow is computed without the stack of open rules, so it is an upper bound; `surely`
/// finds the places that are always together.
///
/// \par Complexity  O(nodes x places / 64) per pass, with as many passes as rules nest
/// \par Threads     immutable after construction
/// \par Errors      Error{limit_exceeded} past 3,000 places
class LarkPlaces {
 public:
  using Id = LarkGraph::Id;

  explicit LarkPlaces(const LarkGraph& graph);

  LarkPlaces(const LarkPlaces&)            = delete;
  LarkPlaces& operator=(const LarkPlaces&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] Id node(std::size_t place) const { return nodes_[place]; }
  [[nodiscard]] std::size_t place(Id node) const { return place_[node]; }

  [[nodiscard]] bool has_text(Id node) const { return !first_[node].empty(); }
  [[nodiscard]] const PlaceSet& begins() const { return first_[graph_.start()]; }
  [[nodiscard]] const PlaceSet& next(std::size_t place) const { return next_[place]; }

  /// Whether the lexer looks for `other` wherever it looks for `place`.
  [[nodiscard]] bool surely(std::size_t place, std::size_t other) const;

 private:
  using Kind                              = LarkGraph::Kind;
  static constexpr Id none                = ~Id{0};
  static constexpr std::size_t max_places = 3'000;

  // Finds what each node may begin with, and whether it may be empty.
  void find_first();

  // What follows a node inside its rule: what may follow, and what always does.
  struct After {
    PlaceSet may, sure;
    bool ends_rule = false;
  };
  void find_next();
  // Calls of a rule share its node, so their followers are stored after those of the nodes.
  void descend(Id id, const After& after);

  const LarkGraph& graph_;
  std::vector<Id> place_;    // [nodes]
  std::vector<Id> rule_of_;  // [nodes and calls]: index into rules_
  std::vector<Id> nodes_;    // [places]
  std::vector<char> nullable_;
  std::vector<PlaceSet> first_;  // [nodes]
  std::vector<After> after_;     // [nodes and calls]
  std::vector<Id> rules_;
  std::vector<std::pair<Id, Id>> calls_;  // the rule, and the index of its followers in after_
  std::vector<PlaceSet> next_;            // [places]
  std::vector<const PlaceSet*> events_;
  std::vector<std::pair<const PlaceSet*, const PlaceSet*>> returns_;
  Id rule_ = none;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_places.ipp>
#endif
