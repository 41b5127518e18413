#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include <tooldecode/formats/plain_text.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE PlainForm plain_form(const schema::Form& form) {
  if (form.texts.empty()) return PlainForm::json;
  const bool has_other = form.truth || form.falsehood || !form.numbers.empty() ||
                         !form.arrays.empty() || !form.objects.empty();
  if (has_other) return PlainForm::mixed;
  return form.null ? PlainForm::nullable : PlainForm::text;
}

TOOLDECODE_INLINE std::optional<PlainForm> find_plain_form(const JsonValue& schema,
                                                           const JsonValue& root) {
  try {
    schema::Reader reader(root, {.nullable = true});
    const schema::FormId form = reader.form(schema, "#");
    return plain_form(reader.forms[form]);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TOOLDECODE_INLINE PlainText::PlainText(Grammar& grammar, std::string delimiter,
                                       std::vector<std::string> excluded)
    : grammar_(grammar),
      delimiter_(std::move(delimiter)),
      excluded_(std::move(excluded)),
      with_delimiter_(text::compile_pattern(pattern_of(delimiter_, excluded_))) {}

TOOLDECODE_INLINE NodeId PlainText::value(schema::Reader& reader, schema::FormId id,
                                          const std::string& pointer) {
  const NodeId first(static_cast<std::uint32_t>(grammar_.size()));
  const schema::Form& form = reader.forms[id];
  std::vector<NodeId> choices;
  std::vector<std::pair<std::string, NodeId>> listed;
  const NodeId end = grammar_.empty();
  if (form.null) listed.emplace_back("null", end);
  for (const schema::StringForm& text : form.texts) {
    if (!text.values) {
      choices.push_back(string(reader.forms.texts, text));
      continue;
    }
    for (const std::string& one : *text.values) {
      if (one.find(delimiter_) != std::string::npos) {
        throw Error(Errc::unsupported_keyword, pointer, "a value holds the mark that closes it");
      }
      const bool is_excluded =
          std::any_of(excluded_.begin(), excluded_.end(),
                      [&](const std::string& held) { return one.find(held) != std::string::npos; });
      if (!is_excluded) listed.emplace_back(one, end);
    }
  }
  choices.push_back(grammar_.trie(listed));
  const NodeId node = grammar_.choice(std::move(choices));
  if (grammar_.is_satisfiable(node, first)) return node;
  throw Error(Errc::unsatisfiable_schema, pointer, "no text without its closing mark conforms");
}

TOOLDECODE_INLINE NodeId PlainText::value_or_nothing(schema::Reader& reader, schema::FormId id,
                                                     const std::string& pointer,
                                                     schema::GrammarBuilder& json) {
  if (reader.forms[id].empty()) return grammar_.nothing();
  try {
    return value(reader, id, pointer);
  } catch (const Error& error) {
    if (error.code() != Errc::unsatisfiable_schema) throw;
    const NodeId any = json.value(id);
    if (grammar_.is_satisfiable(any)) throw;
    return grammar_.nothing();
  }
}

TOOLDECODE_INLINE std::string PlainText::pattern_of(const std::string& delimiter,
                                                    const std::vector<std::string>& excluded) {
  std::string pattern = formats::pattern_of(delimiter);
  for (const std::string& text : excluded) {
    if (text != delimiter) pattern += '|' + formats::pattern_of(text);
  }
  return pattern;
}

TOOLDECODE_INLINE NodeId PlainText::string(schema::StringSets& texts,
                                           const schema::StringForm& form) {
  if (form.tests.empty() && form.excluded.empty()) {
    if (!any_)
      any_ = utf8(difference(text::TextDfa::repeated(text::CodePointSet::all()), with_delimiter_));
    return grammar_.lexeme(any_, form.length);
  }
  text::TextDfa text = difference(texts.texts(form.tests), with_delimiter_);
  if (!form.excluded.empty()) text = difference(text, schema::texts_of(form.excluded));
  return grammar_.lexeme(text, form.length, utf8);
}

TOOLDECODE_INLINE text::DfaPointer PlainText::utf8(const text::TextDfa& text) {
  return std::make_shared<const text::Dfa>(text::utf8_lexeme(text));
}

}  // namespace tooldecode::formats
