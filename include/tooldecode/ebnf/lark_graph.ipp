#pragma once

#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE LarkGraph::LarkGraph(const LarkFile& file, const LarkParts& parts)
    : parts_(parts), tokens_(parts.vocabulary) {
  const Scope scope = open(file);
  if (!file.rules.contains("start")) {
    throw Error(Errc::malformed_grammar, "byte 0", "no rule is named 'start'");
  }
  for (const LarkExpression& one : file.ignored) add_ignored(*scope, one);
  start_ = rule(*scope, "start", 0);
}

TOOLDECODE_INLINE void LarkGraph::fail(const std::string& what, std::size_t at) {
  throw Error(Errc::malformed_grammar, place(at), what);
}

TOOLDECODE_INLINE void LarkGraph::refuse(const std::string& what, std::size_t at) {
  throw Error(Errc::unsupported_keyword, place(at), what);
}

TOOLDECODE_INLINE LarkGraph::Scope LarkGraph::open(const LarkFile& file) {
  return std::make_shared<Names>(Names{file, LarkTerminals(file), {}, {}});
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::add(Node node) {
  if (nodes_.size() >= max_nodes) {
    throw Error(Errc::limit_exceeded, "", "a grammar with too many parts");
  }
  nodes_.push_back(std::move(node));
  return static_cast<Id>(nodes_.size() - 1);
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::optional(Id id) {
  return add({.kind = Kind::repeat, .parts = {id}, .count = {0, 1}, .at = nodes_[id].at});
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::rule(Names& names, const std::string& name,
                                                std::size_t used) {
  if (const auto known = names.rules.find(name); known != names.rules.end()) return known->second;
  const auto found = names.file.rules.find(name);
  if (found == names.file.rules.end()) fail("'" + name + "' is not defined", used);
  const LarkRule& rule = found->second;
  const Id made        = add({.kind = Kind::rule, .at = rule.at});
  names.rules[name]    = made;
  Id body              = 0;
  if (rule.is_lazy || !rule.suffix.empty()) {
    Expression whole = rule.body;
    if (!rule.suffix.empty()) {
      whole = {.kind = Of::sequence, .parts = {rule.body, rule.suffix[0]}, .at = rule.at};
    }
    body = terminal(names, whole, name, true);
  } else {
    body = expression(names, rule.body);
  }
  nodes_[made].parts = {body};
  return made;
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::expression(Names& names, const Expression& one) {
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, place(one.at), "rules nested too deeply");
  }
  const Id made = node(names, one);
  --depth_;
  return made;
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::node(Names& names, const Expression& one) {
  switch (one.kind) {
    case Of::sequence:
    case Of::choice: {
      Node node{.kind = one.kind == Of::sequence ? Kind::sequence : Kind::choice, .at = one.at};
      for (const Expression& part : one.parts) node.parts.push_back(expression(names, part));
      return add(std::move(node));
    }
    case Of::intersection:
      fail("'&' outside a terminal", one.at);
    case Of::repeat: {
      const Id item = expression(names, one.parts[0]);
      return add({.kind = Kind::repeat, .parts = {item}, .count = one.count, .at = one.at});
    }
    case Of::name: {
      if (!is_lark_terminal(one.text)) return rule(names, one.text, one.at);
      if (const auto known = names.lexemes.find(one.text); known != names.lexemes.end()) {
        return copy(known->second, one.at);
      }
      const auto named = names.file.rules.find(one.text);
      if (named != names.file.rules.end() && named->second.body.kind == Of::string &&
          named->second.body.flags.empty()) {
        return literal(named->second.body.text, one.at);
      }
      return names.lexemes[one.text] = terminal(names, one, one.text, false);
    }
    case Of::token:
      return token(one);
    case Of::json:
      return json(one);
    case Of::file: {
      const LarkFile& inner = names.file.nested[one.file];
      if (!inner.ignored.empty() || !names.file.ignored.empty()) {
        refuse("%lark beside %ignore is not supported", one.at);
      }
      if (!inner.rules.contains("start")) fail("no rule is named 'start'", one.at);
      const Scope scope = open(inner);
      return rule(*scope, "start", one.at);
    }
    default:
      return terminal(names, one, told(one), false);
  }
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::copy(Id id, std::size_t at) {
  Node node = nodes_[id];
  node.at   = at;
  if (node.kind == Kind::repeat) node.parts = {copy(node.parts[0], at)};
  return add(std::move(node));
}

TOOLDECODE_INLINE std::string LarkGraph::told(const Expression& one) {
  if (one.kind == Of::string) return '"' + one.text + '"';
  if (one.kind == Of::regex) return '/' + one.text + '/' + one.flags;
  return "a terminal";
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::terminal(Names& names, const Expression& one,
                                                    const std::string& name, bool is_lazy) {
  if (one.kind == Of::string && one.flags.empty() && !is_lazy) return literal(one.text, one.at);
  const text::TextDfa all         = names.terminals.compile(one);
  const auto [made, may_be_empty] = lexeme(all, name, is_lazy, one.at);
  if (!made) {
    return add({.kind = may_be_empty ? Kind::sequence : Kind::choice, .at = one.at});
  }
  lexemes_.push_back(*made);
  const Id node =
      add({.kind = Kind::lexeme, .lexeme = static_cast<Id>(lexemes_.size() - 1), .at = one.at});
  return may_be_empty ? optional(node) : node;
}

TOOLDECODE_INLINE std::pair<std::optional<LarkLexeme>, bool> LarkGraph::lexeme(
    const text::TextDfa& all, const std::string& name, bool is_lazy, std::size_t at) {
  const bool may_be_empty  = !all.empty() && all.rows()[0].accepting;
  const text::TextDfa some = lexeme_texts(all, is_lazy);
  if (some.empty()) return {std::nullopt, may_be_empty};
  states_ += some.rows().size();
  if (states_ > max_states) {
    throw Error(Errc::limit_exceeded, place(at), "terminals that need too many states");
  }
  LarkLexeme made{.name         = name,
                  .dfa          = std::make_shared<const text::Dfa>(text::utf8_lexeme(some)),
                  .is_lazy      = is_lazy,
                  .may_be_empty = may_be_empty};
  const auto counted = some.counted();
  if (counted && counted->second == text::Occurrences{1, 1}) made.characters = counted->first;
  made.first = made.dfa->live(0);
  return {std::move(made), may_be_empty};
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::literal(const std::string& text, std::size_t at) {
  if (text.empty()) return add({.at = at});
  const auto [known, fresh] = literals_.emplace(text, static_cast<Id>(lexemes_.size()));
  if (fresh) {
    std::vector<text::Dfa::Row> rows(text.size() + 1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      rows[i].next[static_cast<std::uint8_t>(text[i])] = static_cast<text::Dfa::State>(i + 1);
    }
    rows.back().accepting = true;
    lexemes_.push_back({.name    = '"' + text + '"',
                        .dfa     = std::make_shared<const text::Dfa>(rows),
                        .literal = text,
                        .first   = text::ByteSet::of(text.substr(0, 1))});
  }
  return add({.kind = Kind::lexeme, .lexeme = known->second, .at = at});
}

TOOLDECODE_INLINE void LarkGraph::add_ignored(Names& names, const Expression& one) {
  const text::TextDfa all = names.terminals.compile(one);
  ignored_texts_          = ignored_texts_ ? united(*ignored_texts_, all) : all;
  ignored_                = lexeme(*ignored_texts_, "%ignore", false, one.at).first;
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::part(LarkLexeme lexeme, std::size_t at) {
  lexemes_.push_back(std::move(lexeme));
  return add({.kind = Kind::lexeme, .lexeme = static_cast<Id>(lexemes_.size() - 1), .at = at});
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::token(TokenId id, const Expression& one) {
  const std::string bytes = tokens_.bytes(id, place(one.at));
  if (bytes.front() != control_open) return literal(bytes, one.at);
  return part({.name  = one.text,
               .make  = [bytes](Grammar& grammar) { return grammar.literal(bytes); },
               .first = text::ByteSet::of(bytes.substr(0, 1))},
              one.at);
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::token(const Expression& one) {
  if (!one.text.starts_with("<[") || !one.text.ends_with("]>")) {
    return token(tokens_.find(one.text, place(one.at)), one);
  }
  const std::string list = one.text.substr(2, one.text.size() - 4);
  if (list.starts_with('^') || list == "*") {
    refuse("one token of any text no grammar can tell", one.at);
  }
  Node node{.kind = Kind::choice, .at = one.at};
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const std::string range = list.substr(from, comma - from);
    from                    = comma + 1;
    if (range.empty()) continue;
    const std::size_t dash   = range.find('-');
    const std::int64_t first = number(range.substr(0, dash), one.at);
    const std::int64_t last =
        dash == std::string::npos ? first : number(range.substr(dash + 1), one.at);
    if (first > last) fail("a range of tokens whose ends are out of order", one.at);
    if (static_cast<std::size_t>(last - first) + node.parts.size() >= max_token_list) {
      throw Error(Errc::limit_exceeded, place(one.at), "a range of too many tokens");
    }
    for (std::int64_t id = first; id <= last; ++id) {
      node.parts.push_back(token(tokens_.find(id, place(one.at)), one));
    }
  }
  if (node.parts.empty()) fail("an empty range of tokens", one.at);
  return add(std::move(node));
}

TOOLDECODE_INLINE std::int64_t LarkGraph::number(const std::string& digits, std::size_t at) {
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    fail("a malformed range of tokens", at);
  }
  return std::stoll(digits);
}

TOOLDECODE_INLINE LarkGraph::Id LarkGraph::json(const Expression& one) {
  if (!parts_.json_values) refuse("%json needs a reader of schemas", one.at);
  const auto found = text::find_json(one.text);
  if (!found) {
    throw Error(Errc::malformed_json, place(one.at), "a schema that is no JSON");
  }
  const JsonValue& schema = *found;
  if (schema.is_object() && schema.contains("x-guidance")) {
    refuse("the options of \"x-guidance\" are not supported", one.at);
  }
  try {
    const Grammar values = parts_.json_values(one.text);
    return part(
        {.name    = "%json",
         .make    = [values](Grammar& grammar) { return grammar.append(values); },
         .is_json = true,
         .first   = begins(schema),
         .more = may_end_in_number(schema) ? text::ByteSet::of("0123456789.eE") : text::ByteSet{}},
        one.at);
  } catch (const Error& error) {
    throw error.within(place(one.at));
  }
}

TOOLDECODE_INLINE text::ByteSet LarkGraph::begins(const JsonValue& schema) {
  const auto of = [](const JsonValue& type) -> std::string_view {
    if (type == "object") return "{";
    if (type == "array") return "[";
    if (type == "string") return "\"";
    if (type == "boolean") return "tf";
    if (type == "null") return "n";
    if (type == "integer" || type == "number") return "-0123456789";
    return "{[\"tfn-0123456789";
  };
  if (!schema.is_object() || !schema.contains("type")) return text::ByteSet::of(of({}));
  const JsonValue& type = schema["type"];
  if (!type.is_array()) return text::ByteSet::of(of(type));
  text::ByteSet all;
  for (const auto& each : type) all |= text::ByteSet::of(of(each));
  return all;
}

TOOLDECODE_INLINE bool LarkGraph::may_end_in_number(const JsonValue& schema) {
  return begins(schema).contains('0');
}

}  // namespace tooldecode::ebnf
