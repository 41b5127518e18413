#pragma once

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE Rules::Id Rules::characters(text::CodePointSet set) {
  return add({.kind = Kind::characters, .set = std::move(set)});
}

TOOLDECODE_INLINE Rules::Id Rules::lexeme(text::DfaPointer dfa) {
  return add({.kind = Kind::lexeme, .dfa = std::move(dfa)});
}

TOOLDECODE_INLINE Rules::Id Rules::part(MakePart make) {
  return add({.kind = Kind::part, .make = std::move(make)});
}

TOOLDECODE_INLINE Rules::Id Rules::sequence(const std::vector<Id>& parts) {
  if (parts.empty()) return text("");
  Id all = parts.back();
  for (std::size_t i = parts.size() - 1; i-- > 0;) {
    all = add({.kind = Kind::pair, .parts = {parts[i], all}});
  }
  return all;
}

TOOLDECODE_INLINE Rules::Id Rules::choice(std::vector<Id> alternatives) {
  if (alternatives.size() == 1) return alternatives[0];
  return add({.kind = Kind::choice, .parts = std::move(alternatives)});
}

TOOLDECODE_INLINE Rules::Id Rules::repeat(Id item, text::Occurrences occurrences) {
  const Node& inner    = nodes_[item];
  const auto unbounded = text::Occurrences::unbounded;
  if (inner.kind == Kind::repeat && inner.occurrences.min <= 1 && occurrences.max != 0 &&
      (inner.occurrences.max == unbounded || inner.occurrences == text::Occurrences{0, 1})) {
    // (x*){n,m} is x*, (x+){n,m} is x{n,} and (x?){n,m} is x{0,m}: one reading where there were many.
    if (inner.occurrences.min == 0) occurrences.min = 0;
    if (inner.occurrences.max == unbounded) occurrences.max = unbounded;
    item = inner.parts[0];
  }
  return add({.kind = Kind::repeat, .parts = {item}, .occurrences = occurrences});
}

TOOLDECODE_INLINE void Rules::define(Id rule, Id body) {
  TOOLDECODE_ASSERT(nodes_[rule].kind == Kind::rule);
  nodes_[rule].parts = {body};
}

TOOLDECODE_INLINE std::vector<char> Rules::nullable() const {
  std::vector<std::vector<Id>> users(size());
  std::vector<char> result(size(), 0);
  std::vector<Id> work;
  const auto mark = [&](Id id) {
    if (!result[id]) result[id] = 1, work.push_back(id);
  };
  for (Id id = 0; id < size(); ++id) {
    const Node& node = nodes_[id];
    for (const Id part : node.parts) users[part].push_back(id);
    const bool is_empty = node.kind == Kind::text     ? node.text.empty()
                          : node.kind == Kind::lexeme ? !node.dfa->empty() && node.dfa->accepting(0)
                                                      : false;
    if (is_empty || (node.kind == Kind::repeat && node.occurrences.min == 0)) mark(id);
  }
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    for (const Id user : users[id]) {
      const std::vector<Id>& parts = nodes_[user].parts;
      if (nodes_[user].kind != Kind::pair || (result[parts[0]] && result[parts[1]])) mark(user);
    }
  }
  return result;
}

TOOLDECODE_INLINE Rules::Id Rules::add(Node node) {
  if (size() >= max_nodes) throw Error(Errc::limit_exceeded, "", "a grammar with too many parts");
  nodes_.push_back(std::move(node));
  return static_cast<Id>(size() - 1);
}

}  // namespace tooldecode::ebnf
