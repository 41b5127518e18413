#pragma once

#include <tooldecode/ebnf/lark_places.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE bool PlaceSet::contains(std::size_t place) const {
  return (words_[place / 64] >> (place % 64) & 1) != 0;
}

TOOLDECODE_INLINE bool PlaceSet::add(const PlaceSet& other) {
  std::uint64_t fresh = 0;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    fresh |= other.words_[w] & ~words_[w];
    words_[w] |= other.words_[w];
  }
  return fresh != 0;
}

TOOLDECODE_INLINE bool PlaceSet::empty() const {
  for (const std::uint64_t word : words_) {
    if (word != 0) return false;
  }
  return true;
}

TOOLDECODE_INLINE LarkPlaces::LarkPlaces(const LarkGraph& graph)
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

TOOLDECODE_INLINE bool LarkPlaces::surely(std::size_t place, std::size_t other) const {
  for (const PlaceSet* const together : events_) {
    if (together->contains(place) && !together->contains(other)) return false;
  }
  for (const auto& [may, sure] : returns_) {
    if (may->contains(place) && !sure->contains(other)) return false;
  }
  return true;
}

TOOLDECODE_INLINE void LarkPlaces::find_first() {
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

TOOLDECODE_INLINE void LarkPlaces::find_next() {
  after_.assign(graph_.size(), {PlaceSet(size()), PlaceSet(size())});
  for (Id id = 0; id < graph_.size(); ++id) {
    if (graph_[id].kind != Kind::rule || graph_[id].parts.empty()) continue;
    rules_.push_back(id);
    rule_ = static_cast<Id>(rules_.size() - 1);
    descend(graph_[id].parts[0], {PlaceSet(size()), PlaceSet(size()), true});
  }
  // What may follow a rule in any of its calls.
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

TOOLDECODE_INLINE void LarkPlaces::descend(Id id, const After& after) {
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

}  // namespace tooldecode::ebnf
