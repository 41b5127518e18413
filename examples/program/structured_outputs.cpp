#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/schema/json_schema.hpp>

#include <program/structured_outputs.hpp>

namespace program {

namespace {

using Kind = TextGrammar::Kind;

// A document, or its text.
Json read_document(const Fields& object, std::string_view key) {
  const Json& value = object.at(key);
  if (value.is_object()) return value;
  if (!value.is_string()) {
    object.fail(key, "must be an object, or its JSON as a string", "invalid_type");
  }
  Json read;
  try {
    read = tooldecode::text::parse_exact_json(value.string());
  } catch (const tooldecode::Error& error) {
    object.fail(key, "must be JSON: " + std::string(error.what()));
  }
  if (!read.is_object()) object.fail(key, "must be an object, as text", "invalid_type");
  return read;
}

TextRules schema_rule(const Fields& object, std::string_view key) {
  return {.schema = TextSchema{read_document(object, key), object.place(key)}, .grammar = {}};
}

TextRules grammar_rule(const Fields& object, std::string_view key, Kind kind) {
  Json value;
  if (kind == Kind::structural_tag) {
    value = read_document(object, key);
  } else if (kind == Kind::choice) {
    value = object.at(key);
    if (!value.is_array() || value.empty()) {
      object.fail(key, "must be a list of one string or more", "invalid_type");
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_string()) continue;
      object.fail(std::string(key) + '[' + std::to_string(i) + ']', "must be a string",
                  "invalid_type");
    }
  } else {
    value = object.text(key);
    // A rule of GBNF and EBNF is `name ::= ...`, one of Lark `name: ...`.
    const bool is_ebnf = value.string().find("::=") != std::string::npos;
    if (kind == Kind::ebnf && !is_ebnf) kind = Kind::lark;
  }
  return {.schema = {}, .grammar = TextGrammar{kind, std::move(value), object.place(key)}};
}

TextRules read_structured_outputs(const Fields& request) {
  const Fields given = request.object("structured_outputs");
  given.allow({"json", "json_object", "regex", "choice", "grammar", "structural_tag",
               "disable_fallback", "disable_any_whitespace", "disable_additional_properties"});
  given.allow_only("disable_additional_properties", false);
  static_cast<void>(given.flag("disable_fallback"));  // there is no other engine to fall back to
  const bool no_spaces = given.flag("disable_any_whitespace");
  TextRules rules;
  const auto take = [&](std::string_view key, const auto& make) {
    if (given.find(key) == nullptr) return;
    if (!rules.any()) given.fail(key, "excludes " + rules.place());
    rules = make(key);
  };
  const auto grammar = [&](Kind kind) {
    return [&given, kind](std::string_view key) { return grammar_rule(given, key, kind); };
  };
  take("json", [&](std::string_view key) { return schema_rule(given, key); });
  take("json_object", [&](std::string_view key) {
    given.allow_only(key, true);
    return TextRules{.schema  = TextSchema{Json{{"type", "object"}}, given.place(key)},
                     .grammar = {}};
  });
  take("regex", grammar(Kind::regex));
  take("choice", grammar(Kind::choice));
  take("grammar", grammar(Kind::ebnf));
  take("structural_tag", grammar(Kind::structural_tag));
  if (rules.any()) {
    request.fail("structured_outputs",
                 "must have json, json_object, regex, choice, grammar or structural_tag",
                 "missing_required_parameter");
  }
  // The server's --whitespace says what is optional between the parts of a value.
  if (no_spaces) rules.ignored.push_back(given.place("disable_any_whitespace"));
  return rules;
}

TextRules read_response_format(const Fields& request) {
  const Fields format = request.object("response_format");
  if (format.text("type") != "structural_tag") {
    return {.schema = read_text_format(format, true), .grammar = {}};
  }
  format.allow({"type", "format", "structures", "triggers"});
  return {.schema = {},
          .grammar =
              TextGrammar{Kind::structural_tag, request.at("response_format"), "response_format"}};
}

}  // namespace

std::string TextGrammar::key() const {
  return std::to_string(static_cast<int>(kind)) + ' ' + json_text(value);
}

TextRules read_text_rules(const Fields& request) {
  struct Member {
    const char* key;
    std::optional<Kind> kind;  // empty: a schema
  };
  static constexpr Member members[] = {{"guided_json", {}},
                                       {"json_schema", {}},
                                       {"guided_regex", Kind::regex},
                                       {"regex", Kind::regex},
                                       {"guided_choice", Kind::choice},
                                       {"guided_grammar", Kind::ebnf},
                                       {"grammar", Kind::ebnf},
                                       {"ebnf", Kind::ebnf},
                                       {"structural_tag", Kind::structural_tag}};
  TextRules rules;
  const char* known = nullptr;
  const auto take   = [&](const char* key, TextRules read) {
    if (read.any()) return;
    if (known != nullptr) request.fail(key, "excludes " + std::string(known));
    known = key;
    rules = std::move(read);
  };
  if (request.find("response_format") != nullptr) {
    take("response_format", read_response_format(request));
  }
  if (request.find("structured_outputs") != nullptr) {
    take("structured_outputs", read_structured_outputs(request));
  }
  for (const Member& member : members) {
    if (request.find(member.key) == nullptr) continue;
    take(member.key, member.kind ? grammar_rule(request, member.key, *member.kind)
                                 : schema_rule(request, member.key));
  }
  return rules;
}

GrammarText::GrammarText(TextGrammar grammar, tooldecode::Vocabulary vocabulary,
                         std::uint32_t whitespace)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)), whitespace_(whitespace) {}

tooldecode::AnswerTexts GrammarText::texts(tooldecode::Grammar& grammar) const {
  const tooldecode::NodeId text =
      grammar.tagged(tooldecode::formats::mark::text_value, grammar.append(build()));
  return {.silent = text, .before = text};
}

std::string GrammarText::write(std::span<const tooldecode::ToolCall> calls) const {
  if (calls.empty()) return "";
  throw tooldecode::Error(tooldecode::Errc::malformed_call, calls.front().name,
                          "an answer under a grammar has no calls");
}

tooldecode::Grammar GrammarText::build() const {
  using tooldecode::Grammar;
  switch (grammar_.kind) {
    case Kind::regex:
      return Grammar::regex(grammar_.value.string());
    case Kind::choice: {
      std::vector<std::string> texts;
      for (const Json& text : grammar_.value) texts.push_back(text.string());
      return Grammar::choice(texts);
    }
    case Kind::ebnf:
      return Grammar::ebnf(grammar_.value.string(), {.vocabulary = &vocabulary_});
    case Kind::lark:
      return Grammar::lark(grammar_.value.string(),
                           {.vocabulary = &vocabulary_, .whitespace = whitespace_});
    case Kind::schema:
      // As a chat's schema is read.
      return Grammar::json_schema(
          grammar_.value, tooldecode::detail::text_schema_options({.whitespace = whitespace_}));
    case Kind::any: {
      Grammar grammar;
      return grammar.rooted(grammar.lexeme(tooldecode::formats::any_text()));
    }
    case Kind::structural_tag:
      break;
  }
  return Grammar::structural_tag(grammar_.value,
                                 {.vocabulary = &vocabulary_, .whitespace = whitespace_});
}

}  // namespace program
