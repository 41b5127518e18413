#pragma once

#include <algorithm>

#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::ebnf::detail {

TOOLDECODE_INLINE LarkRules::LarkRules(const LarkGraph& graph, const LarkLexer& lexer)
    : graph_(graph), lexer_(lexer), places_(lexer.places()) {
  has_ignored_ = graph.ignored().has_value();
  for (const LarkLexeme& one : graph.lexemes()) has_json_ = has_json_ || one.is_json;
  for (const LarkVariant& one : lexer.ignored()) (void)class_of(one.forbidden, true);
  for (std::size_t place = 0; place < places_.size(); ++place) {
    for (const LarkVariant& one : lexer.variants(place)) (void)class_of(one.forbidden);
  }
  if (classes_.size() > max_classes) {
    throw Error(Errc::limit_exceeded, "", "terminals that overlap in too many ways");
  }
  ignored_to_.assign(classes_.size(), 0);
  for (bool changed = has_ignored_; changed;) {
    changed = false;
    for (Class from = 0; from < classes_.size(); ++from) {
      const std::uint32_t before = ignored_to_[from];
      for (const LarkVariant& one : lexer.ignored()) {
        if ((one.dfa->live(0) & ~classes_[from].forbidden).empty()) continue;
        const Class behind = class_of(one.forbidden, true);
        ignored_to_[from] |= std::uint32_t{1} << behind | ignored_to_[behind];
      }
      changed = changed || ignored_to_[from] != before;
    }
  }
  find_reached();
}

TOOLDECODE_INLINE std::pair<Rules, LarkRules::Id> LarkRules::build(bool may_begin_ignored) && {
  std::vector<Id> all;
  for (Class to = 0; to < classes_.size(); ++to) {
    if (const auto one = make(graph_.start(), false, 0, to)) all.push_back(*one);
    if (!may_begin_ignored || !has_ignored_) continue;
    for (Class via = 0; via < classes_.size(); ++via) {
      const OptionalId some = ignored_run(0, via);
      const OptionalId one  = some ? make(graph_.start(), false, via, to) : std::nullopt;
      if (one) all.push_back(both(*some, *one));
    }
  }
  const Id root = rules_.choice(std::move(all));
  return {std::move(rules_), root};
}

TOOLDECODE_INLINE LarkRules::Class LarkRules::class_of(const text::ByteSet& forbidden,
                                                       bool is_ignored) {
  const Between wanted{forbidden, is_ignored && has_json_};
  const auto known = std::find(classes_.begin(), classes_.end(), wanted);
  if (known == classes_.end()) {
    classes_.push_back(wanted);
    return static_cast<Class>(classes_.size() - 1);
  }
  return static_cast<Class>(known - classes_.begin());
}

TOOLDECODE_INLINE bool LarkRules::is_barred(const LarkLexeme& lexeme, Class from) const {
  return lexeme.is_json && classes_[from].is_ignored;
}

TOOLDECODE_INLINE void LarkRules::find_reached() {
  reached_.assign(graph_.size(), std::vector<std::uint32_t>(classes_.size(), 0));
  for (bool changed = true; changed;) {
    changed = false;
    BuildBudget::spend(graph_.size() * classes_.size());
    for (Node id = 0; id < graph_.size(); ++id) {
      for (Class from = 0; from < classes_.size(); ++from) {
        const std::uint32_t to = reached_from(id, from);
        changed                = changed || to != reached_[id][from];
        reached_[id][from]     = to;
      }
    }
  }
}

TOOLDECODE_INLINE std::uint32_t LarkRules::through(Node id, std::uint32_t from) const {
  std::uint32_t to = 0;
  for (Class c = 0; c < classes_.size(); ++c) {
    if ((from >> c & 1) != 0) to |= reached_[id][c];
  }
  return to;
}

TOOLDECODE_INLINE std::uint32_t LarkRules::reached_from(Node id, Class from) {
  const LarkGraph::Node& node = graph_[id];
  std::uint32_t to            = 0;
  switch (node.kind) {
    case Kind::lexeme: {
      const LarkLexeme& lexeme = graph_.lexemes()[node.lexeme];
      if (is_barred(lexeme, from)) return 0;
      const auto& variants = lexer_.variants(places_.place(id));
      const auto add       = [&](const text::ByteSet& first, Class behind) {
        if ((first & ~classes_[from].forbidden).empty()) return;
        to |= std::uint32_t{1} << behind | ignored_to_[behind];
      };
      if (variants.empty()) add(lexeme.first, 0);
      for (const LarkVariant& one : variants) {
        if (!one.dfa->empty()) add(one.dfa->live(0), class_of(one.forbidden));
      }
      return to;
    }
    case Kind::sequence:
      to = std::uint32_t{1} << from;
      for (const Node part : node.parts) to = through(part, to);
      return to;
    case Kind::repeat:
      if (node.count.min == 0) to = std::uint32_t{1} << from;
      if (node.count.max != 0) {
        for (std::uint32_t all = reached_[node.parts[0]][from]; (all & ~to) != 0;) {
          to |= all;
          if (node.count.max > 1) all |= through(node.parts[0], all);
        }
      }
      return to;
    default:
      for (const Node part : node.parts) to |= reached_[part][from];
      return to;
  }
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::make(Node id, bool goes_on, Class from,
                                                        Class to) {
  if ((reached_[id][from] >> to & 1) == 0) return std::nullopt;
  const LarkGraph::Node& node = graph_[id];
  switch (node.kind) {
    case Kind::lexeme:
      return make_lexeme(id, goes_on, from, to);
    case Kind::sequence:
      return make_sequence(node, goes_on, from, to);
    case Kind::choice: {
      std::vector<Id> all;
      for (const Node part : node.parts) {
        if (const OptionalId one = make(part, goes_on, from, to)) all.push_back(*one);
      }
      return any(std::move(all));
    }
    case Kind::repeat:
      return make_repeat(node, goes_on, from, to);
    default: {
      // If nothing is ignored, it does not matter whether more follows.
      const auto [known, fresh] =
          known_.try_emplace({id, goes_on && has_ignored_, from, to}, OptionalId{});
      if (!fresh) return known->second;
      const Id made = rules_.reserve();
      known->second = made;
      if (++depth_ > max_nested) {
        throw Error(Errc::limit_exceeded, "", "rules nested too deeply");
      }
      if (const OptionalId body = make(node.parts[0], goes_on, from, to))
        rules_.define(made, *body);
      --depth_;
      return made;
    }
  }
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::any(std::vector<Id> all) {
  if (all.empty()) return std::nullopt;
  return rules_.choice(std::move(all));
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::make_sequence(const LarkGraph::Node& node,
                                                                 bool goes_on, Class from,
                                                                 Class to) {
  if (classes_.size() == 1) {
    std::vector<Id> all(node.parts.size());
    for (std::size_t i = node.parts.size(); i-- > 0;) {
      const OptionalId one = make(node.parts[i], goes_on, from, to);
      if (!one) return std::nullopt;
      all[i]  = *one;
      goes_on = goes_on || places_.has_text(node.parts[i]);
    }
    return rules_.sequence(all);
  }
  // From right to left: rest[c] is the rest of the sequence from class c.
  std::vector<OptionalId> rest(classes_.size());
  rest[to] = rules_.text("");
  for (std::size_t i = node.parts.size(); i-- > 0;) {
    std::vector<OptionalId> longer(classes_.size());
    for (Class c = 0; c < classes_.size(); ++c) {
      if (i == 0 && c != from) continue;
      std::vector<Id> all;
      for (Class via = 0; via < classes_.size(); ++via) {
        if (!rest[via]) continue;
        if (const OptionalId one = make(node.parts[i], goes_on, c, via)) {
          all.push_back(both(*one, *rest[via]));
        }
      }
      longer[c] = any(std::move(all));
    }
    rest    = std::move(longer);
    goes_on = goes_on || places_.has_text(node.parts[i]);
  }
  return rest[from];
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::make_repeat(const LarkGraph::Node& node,
                                                               bool goes_on, Class from, Class to) {
  const text::Occurrences count = node.count;
  const Node item               = node.parts[0];
  if (count.max == 0) return from == to ? OptionalId(rules_.text("")) : std::nullopt;
  if (count.max == text::Occurrences::unbounded) return run(item, true, from, to, count);
  if (goes_on || !has_ignored_) return run(item, goes_on, from, to, count);
  // Nothing follows the last item that is allowed.
  std::vector<Id> all;
  const std::uint32_t before = count.max - 1;
  if (count.min <= before) {
    if (const OptionalId some = run(item, true, from, to, {count.min, before}))
      all.push_back(*some);
  }
  for (Class via = 0; via < classes_.size(); ++via) {
    const OptionalId some = run(item, true, from, via, {before, before});
    const OptionalId last = some ? make(item, false, via, to) : std::nullopt;
    if (last) all.push_back(both(*some, *last));
  }
  return any(std::move(all));
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::run(Node item, bool goes_on, Class from,
                                                       Class to, text::Occurrences count) {
  std::vector<Id> all;
  if (count.min == 0 && from == to) all.push_back(rules_.text(""));
  if (count.max == 0) return any(std::move(all));
  std::uint32_t reached = reached_[item][from];
  for (std::uint32_t before = 0; before != reached;) {
    before = reached;
    reached |= through(item, reached);
  }
  if (reached == std::uint32_t{1} << to) {  // all items after the first are alike
    const OptionalId first = make(item, goes_on, from, to), next = make(item, goes_on, to, to);
    const bool is_open = count.max == text::Occurrences::unbounded;
    const text::Occurrences more{count.min == 0 ? 0 : count.min - 1,
                                 is_open ? count.max : count.max - 1};
    if (from == to && first) return rules_.repeat(*first, count);
    if (first && next) all.push_back(both(*first, rules_.repeat(*next, more)));
    if (first && !next && more.min == 0) all.push_back(*first);
    return any(std::move(all));
  }
  if (count.max == text::Occurrences::unbounded) return open_run(item, from, to, count.min);
  // For each number of remaining items, the rest from each class.
  std::vector<OptionalId> rest(classes_.size());
  rest[to] = rules_.text("");
  for (std::uint32_t left = 1; left <= count.max; ++left) {
    BuildBudget::spend(classes_.size() * classes_.size());
    std::vector<OptionalId> longer(classes_.size());
    for (Class c = 0; c < classes_.size(); ++c) {
      std::vector<Id> ways;
      if (c == to && count.max - left >= count.min) ways.push_back(rules_.text(""));
      for (Class via = 0; via < classes_.size(); ++via) {
        if (!rest[via]) continue;
        if (const OptionalId one = make(item, goes_on, c, via))
          ways.push_back(both(*one, *rest[via]));
      }
      longer[c] = any(std::move(ways));
    }
    rest = std::move(longer);
    if (std::none_of(rest.begin(), rest.end(), has_value)) break;
  }
  return rest[from];
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::open_run(Node item, Class from, Class to,
                                                            std::uint32_t min) {
  std::vector<OptionalId> rest(classes_.size());
  for (Class c = 0; c < classes_.size(); ++c) rest[c] = rules_.reserve();
  const auto step = [&](Class c) {
    std::vector<Id> ways;
    for (Class via = 0; via < classes_.size(); ++via) {
      if (!rest[via]) continue;
      if (const OptionalId one = make(item, true, c, via)) ways.push_back(both(*one, *rest[via]));
    }
    return ways;
  };
  for (Class c = 0; c < classes_.size(); ++c) {
    std::vector<Id> ways = step(c);
    if (c == to) ways.push_back(rules_.text(""));
    if (const OptionalId body = any(std::move(ways))) rules_.define(*rest[c], *body);
  }
  for (; min > 0; --min) {
    BuildBudget::spend(classes_.size() * classes_.size());
    std::vector<OptionalId> longer(classes_.size());
    for (Class c = 0; c < classes_.size(); ++c) longer[c] = any(step(c));
    rest = std::move(longer);
    if (std::none_of(rest.begin(), rest.end(), has_value)) break;
  }
  return rest[from];
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::make_lexeme(Node id, bool goes_on, Class from,
                                                               Class to) {
  const LarkLexeme& lexeme = graph_.lexemes()[graph_[id].lexeme];
  const auto& variants     = lexer_.variants(places_.place(id));
  std::vector<Id> all;
  const auto add = [&](Id text, Class behind) {
    const OptionalId ignored = goes_on ? ignored_run(behind, to) : std::nullopt;
    if (behind == to) {
      all.push_back(ignored ? both(text, rules_.repeat(*ignored, {0, 1})) : text);
    } else if (ignored) {
      all.push_back(both(text, *ignored));
    }
  };
  if (variants.empty()) {
    const bool is_restricted = !(lexeme.first & classes_[from].forbidden).empty();
    if (!lexeme.dfa) {
      // A part that begins with a forbidden byte has at most the first byte of another one.
      add(rules_.part(lexeme.make), 0);
    } else if (is_restricted) {
      if (const auto rest = begun(lexeme.dfa, from)) add(rules_.lexeme(*rest), 0);
    } else if (lexeme.literal) {
      add(rules_.text(*lexeme.literal), 0);
    } else if (lexeme.characters) {
      add(rules_.characters(*lexeme.characters), 0);
    } else {
      add(rules_.lexeme(lexeme.dfa), 0);
    }
  }
  for (const LarkVariant& one : variants) {
    if (const auto rest = begun(one.dfa, from)) {
      add(rules_.lexeme(*rest), class_of(one.forbidden));
    }
  }
  return any(std::move(all));
}

TOOLDECODE_INLINE std::optional<text::DfaPointer> LarkRules::begun(const text::DfaPointer& dfa,
                                                                   Class from) const {
  if (dfa->empty()) return std::nullopt;
  if ((dfa->live(0) & classes_[from].forbidden).empty()) return dfa;
  text::DfaPointer rest = without_first(*dfa, classes_[from].forbidden);
  if (rest->empty()) return std::nullopt;
  return rest;
}

TOOLDECODE_INLINE LarkRules::OptionalId LarkRules::ignored_run(Class from, Class to) {
  if ((ignored_to_[from] >> to & 1) == 0) return std::nullopt;
  const auto [known, fresh] = ignored_runs_.try_emplace({from, to}, OptionalId{});
  if (!fresh) return known->second;
  const Id made = rules_.reserve();
  known->second = made;
  std::vector<Id> all;
  for (const LarkVariant& one : lexer_.ignored()) {
    const auto first = begun(one.dfa, from);
    if (!first) continue;
    const Class behind = class_of(one.forbidden, true);
    const Id text      = rules_.lexeme(*first);
    if (behind == to && one.forbidden.empty()) {
      // More of the same text, as a loop.
      all.push_back(both(text, rules_.repeat(rules_.lexeme(one.dfa), {})));
      if (lexer_.ignored().size() == 1) continue;
    } else if (behind == to) {
      all.push_back(text);
    }
    if (const OptionalId more = ignored_run(behind, to)) all.push_back(both(text, *more));
  }
  rules_.define(made, rules_.choice(std::move(all)));
  return made;
}

}  // namespace tooldecode::ebnf::detail

namespace tooldecode::ebnf {

TOOLDECODE_INLINE Grammar parse_lark(std::string_view text, const LarkParts& parts) {
  const LarkFile file = LarkReader(text).read();
  const LarkGraph graph(file, parts);
  const LarkLexer lexer(graph);
  auto [rules, root] = detail::LarkRules(graph, lexer).build(file.may_begin_ignored);
  return build_grammar(std::move(rules), root);
}

}  // namespace tooldecode::ebnf

namespace tooldecode {

TOOLDECODE_INLINE Grammar Grammar::lark(std::string_view text, const LarkOptions& options) {
  // A schema's values in llguidance's default order and spacing.
  const auto values = [&](std::string_view schema_text) {
    const JsonValue schema = text::parse_exact_json(schema_text);
    if (!schema.is_object() && !schema.is_boolean()) {
      throw Error(Errc::malformed_schema, "#", "a schema is an object, true or false");
    }
    return json_schema(schema, {.documented_order = true,
                                .whitespace       = options.whitespace,
                                .every_spelling   = options.every_spelling,
                                .limits           = options.limits});
  };
  const auto parse = [&] {
    return ebnf::parse_lark(text, {.json_values = values, .vocabulary = options.vocabulary});
  };
  return build({options.limits}, parse, text);
}

}  // namespace tooldecode
