/// \file
/// make_loops: grammar rules that recur at one end of their alternatives, as repetitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::ebnf {

namespace detail {

// Rewrites one rule. Where its alternatives are R a R, R b, c R and d, its texts are those of
// e (a e)* with e = c* d b*; that is so whatever a to d are, R inside them included.
class RuleLoop {
 public:
  using Id = Rules::Id;

  RuleLoop(Rules& rules, Id rule) : rules_(rules), rule_(rule), empty_(rules.text("")) {
    const Split left   = find(rules_[rule].parts[0], End::left);
    const Split both   = find(rules_.choice(left.again), End::right);
    const Split single = find(rules_.choice(left.last), End::right);
    if (left.again.empty() && single.again.empty()) return;
    const Id item = rules_.sequence(
        without_empty({loop(single.again), rules_.choice(single.last), loop(both.last)}));
    rules_.define(rule, item);
    if (both.again.empty()) return;
    const Id more = rules_.sequence({rules_.choice(both.again), item});
    rules_.define(rule, rules_.sequence({item, rules_.repeat(more, {})}));
  }

 private:
  using Kind = Rules::Kind;
  enum class End : std::uint8_t { left, right };

  // What stands beside the rule in alternatives that end (or begin) with it, and the others.
  struct Split {
    std::vector<Id> again, last;
  };

  Split find(Id id, End end) {
    if (id == rule_) return {{empty_}, {}};
    const Rules::Node node = rules_[id];
    Split split;
    if (node.kind == Kind::choice) {
      for (const Id part : node.parts) {
        const Split one = find(part, end);
        split.again.insert(split.again.end(), one.again.begin(), one.again.end());
        split.last.insert(split.last.end(), one.last.begin(), one.last.end());
      }
      return split;
    }
    if (node.kind == Kind::repeat && node.occurrences == text::Occurrences{0, 1}) {
      split = find(node.parts[0], end);
      split.last.push_back(empty_);
    } else if (node.kind == Kind::pair) {
      split = beside(id, end);
    }
    return split.again.empty() ? Split{{}, {id}} : split;
  }
  Split beside(Id pair, End end) {
    std::vector<Id> parts;
    for (; rules_[pair].kind == Kind::pair; pair = rules_[pair].parts[1]) {
      parts.push_back(rules_[pair].parts[0]);
    }
    parts.push_back(pair);
    Id& edge    = end == End::left ? parts.front() : parts.back();
    Split split = find(edge, end);
    if (split.again.empty()) return split;
    for (std::vector<Id>* side : {&split.again, &split.last}) {
      if (side->empty()) continue;
      edge  = rules_.choice(std::move(*side));
      *side = {rules_.sequence(without_empty(parts))};
    }
    return split;
  }

  Id loop(const std::vector<Id>& items) {
    const auto some = without_empty(items);
    return some.empty() ? empty_ : rules_.repeat(rules_.choice(some), {});
  }
  [[nodiscard]] std::vector<Id> without_empty(std::vector<Id> parts) const {
    std::erase(parts, empty_);
    return parts;
  }

  Rules& rules_;
  Id rule_, empty_;
};

}  // namespace detail

/// Rewrites the rules that call themselves at an end of their alternatives, or at both, where that
/// is so without looking into other rules. Texts stay the same.
///
/// People write lists, white space and operators in this way; a repetition may be a lexeme and
/// reads a text in one way, where recursion at both ends reads it in very many.
///
/// \par Complexity  O(nodes)
/// \par Threads     pure
/// \par Errors      Error{limit_exceeded} as Rules
/// \par Source      Arden 1961
inline void make_loops(Rules& rules) {
  const auto count = static_cast<Rules::Id>(rules.size());
  for (Rules::Id id = 0; id < count; ++id) {
    if (rules[id].kind == Rules::Kind::rule && !rules[id].parts.empty()) {
      (void)detail::RuleLoop(rules, id);
    }
  }
}

}  // namespace tooldecode::ebnf
