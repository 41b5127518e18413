#pragma once

#include <algorithm>
#include <string>

#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::ebnf::detail {

TOOLDECODE_INLINE LeftCornerTransform::LeftCornerTransform(const Rules& rules)
    : rules_(rules),
      regular_(rules),
      nullable_(rules.nullable()),
      component_(find_strong_components(
          rules.size(), [&](Id id) { return targets(id, [](const Edge&) { return true; }); })),
      class_(find_strong_components(rules.size(),
                                    [&](Id id) {
                                      return targets(id, [&](const Edge& edge) {
                                        return component_[edge.to] == component_[id] &&
                                               may_skip(id, edge);
                                      });
                                    })),
      into_(rules.size()),
      recursive_(rules.size(), 0) {
  for (Id id = 0; id < rules.size(); ++id) {
    for (const Edge& edge : edges(id)) {
      if (component_[edge.to] == component_[id]) recursive_[component_[id]] = 1;
    }
  }
  begins_.resize(rules.size());
  for (Id id = 0; id < rules.size(); ++id) {
    if (!recursive_[component_[id]]) continue;
    for (const Edge& edge : edges(id)) {
      auto& from =
          component_[edge.to] == component_[id] ? into_[class_[edge.to]] : begins_[component_[id]];
      from.emplace_back(id, edge);
    }
  }
}

TOOLDECODE_INLINE Grammar LeftCornerTransform::build(Id root) && {
  nothing_          = grammar_.nothing();
  empty_            = grammar_.empty();
  const NodeId node = make({Part::whole, root, 0});
  while (!pending_.empty()) {
    const Key key = pending_.back();
    pending_.pop_back();
    (void)make(key);
  }
  return std::move(grammar_).rooted(node);
}

TOOLDECODE_INLINE std::vector<LeftCornerTransform::Edge> LeftCornerTransform::edges(Id id) const {
  const Rules::Node& node = rules_[id];
  std::vector<Edge> result;
  switch (node.kind) {
    case Kind::pair:
      result.push_back({node.parts[0], Edge::Rest::part});
      if (nullable_[node.parts[0]]) result.push_back({node.parts[1]});
      break;
    case Kind::choice:
    case Kind::rule:
      for (const Id part : node.parts) result.push_back({part});
      break;
    case Kind::repeat:
      if (node.occurrences.max == 0) break;
      result.push_back(
          {node.parts[0], node.occurrences.max == 1 ? Edge::Rest::none : Edge::Rest::more_items});
      break;
    default:
      break;
  }
  return result;
}

TOOLDECODE_INLINE text::Occurrences LeftCornerTransform::items(Id repeat) const {
  const auto& [min, max] = rules_[repeat].occurrences;
  return {nullable_[rules_[repeat].parts[0]] ? 0 : min, max};
}

TOOLDECODE_INLINE bool LeftCornerTransform::may_skip(Id from, const Edge& edge) const {
  switch (edge.rest) {
    case Edge::Rest::none:
      return true;
    case Edge::Rest::part:
      return nullable_[rules_[from].parts[1]] != 0;
    case Edge::Rest::more_items:
      return items(from).min <= 1;
  }
  return true;
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make(Key key) {
  if (key[0] == Part::nonempty && recursive_[component_[key[1]]]) {
    key[1] = first_of_class_.emplace(class_[key[1]], key[1]).first->second;
  }
  NodeEntry& made = made_[key];
  if (made.is_done) return made.node;
  if (made.is_open || depth_ >= max_deep) {
    if (!made.is_known) {
      made.node     = grammar_.reserve();
      made.is_known = true;
      if (!made.is_open) pending_.push_back(key);
    }
    return made.node;
  }
  if (std::max(grammar_.size(), made_.size()) > max_made) {
    throw Error(Errc::limit_exceeded, "", "a grammar with too many parts that recur at their left");
  }
  made.is_open = true;
  ++depth_;
  const NodeId body = make_body(key);
  --depth_;
  if (made.is_known) {
    grammar_.define(made.node, body);
  } else {
    made.node = body;
  }
  made.is_done = true;
  return made.node;
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_body(const Key& key) {
  const auto [part, id, at] = key;
  switch (part) {
    case Part::whole:
      return make_whole(id);
    case Part::nonempty:
      return recursive_[component_[id]] ? make_recursive(id) : make_nonempty(id);
    case Part::rests:
      return make_rests(id, at);
    default: {
      const text::Occurrences count = items(id);
      return grammar_.repeat(
          make({Part::nonempty, rules_[id].parts[0], 0}),
          {std::max<std::uint32_t>(count.min, 2) - 1,
           count.max == text::Occurrences::unbounded ? count.max : count.max - 1},
          empty_);
    }
  }
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_whole(Id id) {
  if (!nullable_[id]) return make({Part::nonempty, id, 0});
  if (text::DfaPointer dfa = regular_.find_lexeme(id)) return grammar_.lexeme(std::move(dfa));
  if (regular_.is_counted(id)) return counted(id, rules_[id].occurrences);
  return choice({make({Part::nonempty, id, 0}), empty_});
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_nonempty(Id id) {
  const Rules::Node& node = rules_[id];
  if (text::DfaPointer dfa = regular_.find_lexeme(id)) return lexeme(std::move(dfa));
  switch (node.kind) {
    case Kind::text:
      return node.text.empty() ? nothing_ : grammar_.literal(node.text);
    case Kind::characters:
      return grammar_.lexeme(regular_.one_of(node.set));
    case Kind::lexeme:
      return lexeme(node.dfa);
    case Kind::part:
      return node.make(grammar_);
    case Kind::repeat: {
      const auto& [min, max] = items(id);
      if (max == 0) return nothing_;
      if (regular_.is_counted(id)) return counted(id, {std::max<std::uint32_t>(min, 1), max});
      return grammar_.repeat(make({Part::nonempty, node.parts[0], 0}),
                             {std::max<std::uint32_t>(min, 1), max}, empty_);
    }
    case Kind::choice:
      return make_choice(node.parts);
    default: {
      std::vector<NodeId> alternatives;
      for (const Edge& edge : edges(id)) {
        const NodeId first = make({Part::nonempty, edge.to, 0});
        alternatives.push_back(edge.rest == Edge::Rest::part ? sequence(first, node.parts[1])
                                                             : first);
      }
      return choice(std::move(alternatives));
    }
  }
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::lexeme(text::DfaPointer dfa) {
  const bool may_be_empty = !dfa->empty() && dfa->accepting(0);
  return grammar_.lexeme(std::move(dfa), {may_be_empty ? 1U : 0U});
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::counted(Id repeat, text::Occurrences count) {
  return grammar_.lexeme(regular_.run_of(rules_[rules_[repeat].parts[0]].set), count);
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_choice(const std::vector<Id>& parts) {
  std::vector<std::pair<std::string, NodeId>> texts;
  std::vector<NodeId> others;
  for (const Id part : parts) {
    if (rules_[part].kind != Kind::text) {
      others.push_back(make({Part::nonempty, part, 0}));
    } else if (!rules_[part].text.empty()) {
      texts.emplace_back(rules_[part].text, empty_);
    }
  }
  if (texts.size() == 1) others.push_back(grammar_.literal(texts[0].first));
  if (texts.size() > 1) others.push_back(grammar_.trie(texts));
  return choice(std::move(others));
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::sequence(NodeId first, Id rest) {
  std::vector<NodeId> parts{first};
  while (rules_[rest].kind == Kind::pair && !nullable_[rules_[rest].parts[0]] &&
         !recursive_[component_[rest]] && regular_.find_lexeme(rest) == nullptr) {
    parts.push_back(make({Part::nonempty, rules_[rest].parts[0], 0}));
    rest = rules_[rest].parts[1];
  }
  parts.push_back(make({Part::whole, rest, 0}));
  return grammar_.sequence(std::move(parts));
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_recursive(Id top) {
  std::vector<NodeId> alternatives;
  for (const auto& [from, edge] : begins_[component_[top]]) {
    std::vector<NodeId> parts{make({Part::nonempty, edge.to, 0})};
    if (edge.rest != Edge::Rest::none) {
      const NodeId rest = rest_of(from, edge);
      parts.push_back(may_skip(from, edge) ? choice({rest, empty_}) : rest);
    }
    parts.push_back(make({Part::rests, top, class_[from]}));
    alternatives.push_back(grammar_.sequence(std::move(parts)));
  }
  return choice(std::move(alternatives));
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::rest_of(Id from, const Edge& edge) {
  if (edge.rest == Edge::Rest::more_items) return make({Part::more_items, from, 0});
  return make({Part::nonempty, rules_[from].parts[1], 0});
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::make_rests(Id top, std::uint32_t from_class) {
  std::vector<NodeId> alternatives;
  if (class_[top] == from_class) alternatives.push_back(empty_);
  for (const auto& [above, edge] : into_[from_class]) {
    const NodeId further = make({Part::rests, top, class_[above]});
    if (edge.rest != Edge::Rest::none) {
      alternatives.push_back(grammar_.sequence({rest_of(above, edge), further}));
    }
    if (may_skip(above, edge) && class_[above] != from_class) alternatives.push_back(further);
  }
  return choice(std::move(alternatives));
}

TOOLDECODE_INLINE NodeId LeftCornerTransform::choice(std::vector<NodeId> alternatives) {
  std::sort(alternatives.begin(), alternatives.end());
  alternatives.erase(std::unique(alternatives.begin(), alternatives.end()), alternatives.end());
  return alternatives.empty() ? nothing_ : grammar_.choice(std::move(alternatives));
}

}  // namespace tooldecode::ebnf::detail

namespace tooldecode::ebnf {

TOOLDECODE_INLINE Grammar build_grammar(Rules rules, Rules::Id root) {
  make_loops(rules);
  return detail::LeftCornerTransform(rules).build(root);
}

}  // namespace tooldecode::ebnf
