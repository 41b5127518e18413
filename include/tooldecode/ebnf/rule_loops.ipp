#pragma once

#include <utility>

#include <tooldecode/ebnf/rule_loops.hpp>

namespace tooldecode::ebnf::detail {

TOOLDECODE_INLINE RuleLoop::RuleLoop(Rules& rules, Id rule)
    : rules_(rules), rule_(rule), empty_(rules.text("")) {
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

TOOLDECODE_INLINE RuleLoop::Split RuleLoop::find(Id id, End end) {
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

TOOLDECODE_INLINE RuleLoop::Split RuleLoop::beside(Id pair, End end) {
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

TOOLDECODE_INLINE RuleLoop::Id RuleLoop::loop(const std::vector<Id>& items) {
  const auto some = without_empty(items);
  return some.empty() ? empty_ : rules_.repeat(rules_.choice(some), {});
}

TOOLDECODE_INLINE std::vector<RuleLoop::Id> RuleLoop::without_empty(std::vector<Id> parts) const {
  std::erase(parts, empty_);
  return parts;
}

}  // namespace tooldecode::ebnf::detail

namespace tooldecode::ebnf {

TOOLDECODE_INLINE void make_loops(Rules& rules) {
  const auto count = static_cast<Rules::Id>(rules.size());
  for (Rules::Id id = 0; id < count; ++id) {
    if (rules[id].kind == Rules::Kind::rule && !rules[id].parts.empty()) {
      (void)detail::RuleLoop(rules, id);
    }
  }
}

}  // namespace tooldecode::ebnf
