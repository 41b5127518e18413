/// \file
/// LarkPlaces: which lexemes of a Lark grammar follow one another, and which a lexer looks for at
/// the same time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::ebnf {

/// A set of places.
class PlaceSet {
 public:
  explicit PlaceSet(std::size_t size = 0) : words_((size + 63) / 64, 0) {}

  [[nodiscard]] bool contains(std::size_t place) const {
    return (words_[place / 64] >> (place % 64) & 1) != 0;
  }
  void insert(std::size_t place) { words_[place / 64] |= std::uint64_t{1} << (place % 64); }
  /// Adds the members of another set; whether any of them is new.
  bool add(const PlaceSet& other) {
    std::uint64_t fresh = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      fresh |= other.words_[w] & ~words_[w];
      words_[w] |= other.words_[w];
    }
    return fresh != 0;
  }
  [[nodiscard]] bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
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

/// The places of a graph are its nodes that are lexemes.
///
/// What may follow where is told without the stack of rules that are open, so it may be too much;
/// `surely` is what always goes together.
///
/// \par Complexity  O(nodes x places / 64) per pass, as many passes as rules nest
/// \par Threads     immutable after construction
/// \par Errors      Error{limit_exceeded} past 3,000 places
class LarkPlaces {
 public:
  using Id = LarkGraph::Id;

  explicit LarkPlaces(const LarkGraph& graph)
      : graph_(graph), place_(graph.size(), none), rule_of_(graph.size(), none) {
    for (Id id = 0; id < graph.size(); ++id) {
      if (graph[id].kind != Kind::lexeme) continue;
      place_[id] = static_cast<Id>(nodes_.size());
      nodes_.push_back(id);
    }
    if (nodes_.size() > max_places) {
      throw Error(Errc::limit_exceeded, "", "a grammar with too many terminals");
    }
    find_first();
    find_next();
  }

  LarkPlaces(const LarkPlaces&)            = delete;
  LarkPlaces& operator=(const LarkPlaces&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  /// The node of a place, and the place of a node that is a lexeme.
  [[nodiscard]] Id node(std::size_t place) const { return nodes_[place]; }
  [[nodiscard]] std::size_t place(Id node) const { return place_[node]; }

  [[nodiscard]] bool is_nullable(Id node) const { return nullable_[node] != 0; }
  /// Whether some text of a node is not empty.
  [[nodiscard]] bool has_text(Id node) const { return !first_[node].empty(); }
  /// Where a text may begin.
  [[nodiscard]] const PlaceSet& begins() const { return first_[graph_.start()]; }
  /// What may follow a place.
  [[nodiscard]] const PlaceSet& next(std::size_t place) const { return next_[place]; }

  /// Whether wherever one place is looked for, another one is too.
  [[nodiscard]] bool surely(std::size_t place, std::size_t other) const {
    for (const PlaceSet* const together : events_) {
      if (together->contains(place) && !together->contains(other)) return false;
    }
    for (const auto& [may, sure] : returns_) {
      if (may->contains(place) && !sure->contains(other)) return false;
    }
    return true;
  }

 private:
  using Kind                              = LarkGraph::Kind;
  static constexpr Id none                = ~Id{0};
  static constexpr std::size_t max_places = 3'000;

  // What each node may begin with, and whether it may be empty.
  void find_first() {
    nullable_.assign(graph_.size(), 0);
    first_.assign(graph_.size(), PlaceSet(size()));
    for (std::size_t place = 0; place < size(); ++place) {
      first_[nodes_[place]].insert(place);
    }
    for (bool changed = true; changed;) {
      changed = false;
      BuildBudget::spend(graph_.size() * (2 + size() / 64));
      for (Id id = 0; id < graph_.size(); ++id) {
        const LarkGraph::Node& node = graph_[id];
        bool is_nullable            = false;
        if (node.kind == Kind::lexeme) continue;
        if (node.kind == Kind::sequence) {
          is_nullable = true;
          for (const Id part : node.parts) {
            changed     = first_[id].add(first_[part]) || changed;
            is_nullable = nullable_[part] != 0;
            if (!is_nullable) break;
          }
        } else if (node.kind == Kind::repeat && node.count.max == 0) {
          is_nullable = true;
        } else {
          is_nullable = node.kind == Kind::repeat && node.count.min == 0;
          for (const Id part : node.parts) {
            changed     = first_[id].add(first_[part]) || changed;
            is_nullable = is_nullable || nullable_[part] != 0;
          }
        }
        if (is_nullable && !nullable_[id]) nullable_[id] = 1, changed = true;
      }
    }
  }

  // What follows a node inside its own rule: at most, and always where it ends.
  struct After {
    PlaceSet may, sure;
    bool ends_rule = false;
  };
  void find_next() {
    after_.assign(graph_.size(), {PlaceSet(size()), PlaceSet(size())});
    for (Id id = 0; id < graph_.size(); ++id) {
      if (graph_[id].kind != Kind::rule || graph_[id].parts.empty()) continue;
      rules_.push_back(id);
      rule_ = static_cast<Id>(rules_.size() - 1);
      descend(graph_[id].parts[0], {PlaceSet(size()), PlaceSet(size()), true});
    }
    // What follows a rule, wherever it is called.
    std::vector<PlaceSet> follow(graph_.size(), PlaceSet(size()));
    for (bool changed = true; changed;) {
      changed = false;
      BuildBudget::spend(calls_.size() * (2 + size() / 64));
      for (const auto& [called, at] : calls_) {
        changed = follow[called].add(after_[at].may) || changed;
        if (after_[at].ends_rule) {
          changed = follow[called].add(follow[rules_[rule_of_[at]]]) || changed;
        }
      }
    }
    events_.push_back(&first_[graph_.start()]);
    next_.assign(size(), PlaceSet(size()));
    for (std::size_t place = 0; place < size(); ++place) {
      const Id id  = nodes_[place];
      next_[place] = after_[id].may;
      if (after_[id].ends_rule && rule_of_[id] != none) {
        next_[place].add(follow[rules_[rule_of_[id]]]);
      }
      returns_.emplace_back(&after_[id].may, &after_[id].sure);
    }
    for (const auto& [called, at] : calls_) {
      returns_.emplace_back(&after_[at].may, &after_[at].sure);
    }
  }
  // Calls of rules are nodes of their own only as parts: `at` is where the follower is kept.
  void descend(Id id, const After& after) {
    const LarkGraph::Node& node = graph_[id];
    if (node.kind == Kind::rule) {
      const Id at = static_cast<Id>(after_.size());
      after_.push_back(after);
      rule_of_.push_back(rule_);
      calls_.emplace_back(id, at);
      return;
    }
    after_[id]   = after;
    rule_of_[id] = rule_;
    switch (node.kind) {
      case Kind::sequence: {
        After rest = after;
        for (std::size_t i = node.parts.size(); i-- > 0;) {
          const Id part = node.parts[i];
          descend(part, rest);
          if (!nullable_[part]) rest = {PlaceSet(size()), PlaceSet(size()), false};
          rest.may.add(first_[part]);
          rest.sure.add(first_[part]);
        }
        return;
      }
      case Kind::choice:
        for (const Id part : node.parts) descend(part, after);
        return;
      case Kind::repeat: {
        if (node.count.max == 0) return;
        const bool is_open = node.count.max == text::Occurrences::unbounded;
        After inner{after.may, PlaceSet(size()), after.ends_rule};
        if (node.count.min <= 1) inner.sure = after.sure;
        if (node.count.max > 1) inner.may.add(first_[node.parts[0]]);
        if (is_open) inner.sure.add(first_[node.parts[0]]);
        return descend(node.parts[0], inner);
      }
      default:
        return;
    }
  }

  const LarkGraph& graph_;
  std::vector<Id> place_;    // [nodes]
  std::vector<Id> rule_of_;  // [nodes and calls]: which of rules_
  std::vector<Id> nodes_;    // [places]
  std::vector<char> nullable_;
  std::vector<PlaceSet> first_;  // [nodes]
  std::vector<After> after_;     // [nodes and calls]
  std::vector<Id> rules_;
  std::vector<std::pair<Id, Id>> calls_;  // the rule, and where its follower is kept
  std::vector<PlaceSet> next_;            // [places]
  std::vector<const PlaceSet*> events_;
  std::vector<std::pair<const PlaceSet*, const PlaceSet*>> returns_;
  Id rule_ = none;
};

}  // namespace tooldecode::ebnf
