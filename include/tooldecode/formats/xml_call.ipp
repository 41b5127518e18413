#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_text.hpp>
#include <tooldecode/formats/element_types.hpp>
#include <tooldecode/formats/element_values.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/formats/plain_text.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/key_conditions.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode {

namespace detail {

// Reads text up to the first of several delimiters. A known name is taken literally; otherwise
// outer white space is removed.
template <class IsKnown>
std::string name_up_to(text::ValueReader& reader, const std::vector<std::string_view>& delimiters,
                       const IsKnown& is_known) {
  const std::string_view rest = reader.rest();
  std::size_t length          = rest.size();
  for (const std::string_view delimiter : delimiters)
    length = std::min(length, rest.find(delimiter));
  std::string exact(rest.substr(0, length));
  if (!is_known(exact)) {
    const std::string_view inner = formats::trimmed(rest.substr(0, length));
    if (!formats::is_name(inner)) reader.fail("expected a name");
    exact = inner;
  }
  reader.skip(length);
  return exact;
}

// The values that a tool's document has for its arguments, in styles that need them. Those of a tool
// that is not strict are what the document says, too, where a text does not tell.
class ArgumentTypes {
 public:
  /// \param tool  null: every value
  ArgumentTypes(const std::optional<formats::ElementStyle>& style, const Tool* tool) {
    if (!style || !style->by_document || tool == nullptr) return;
    budget_.emplace();
    try {
      const JsonValue& document = tool->strict ? tool->parameters : documented_parameters(*tool);
      reader_ = std::make_unique<schema::Reader>(document, formats::parameter_rules(*tool));
      all_    = {*reader_, {reader_->form(document, tool->parameters_pointer)}};
    } catch (const Error&) {
      all_ = {};  // such a tool has no constraint
    }
  }

  [[nodiscard]] formats::ElementTypes operator[](const std::string& key) const {
    return all_.member(key);
  }

 private:
  std::optional<BuildBudget> budget_;  // for forms that are read when they are asked for, too
  std::unique_ptr<schema::Reader> reader_;
  formats::ElementTypes all_;
};

// The values of arguments in formats with unquoted strings; other values are JSON.
class PlainValues {
 public:
  PlainValues(Grammar& grammar, const Tool& tool, const SchemaOptions& options,
              const std::string& after_value, const std::vector<std::string>& ends)
      : reader_(tool.parameters, options.rules),
        spellings_(grammar, options.syntax, options.whitespace, options.every_spelling,
                   options.excluded),
        json_(grammar, reader_, spellings_, options.documented_order, options.numbers.as_written()),
        plain_(grammar, after_value, ends) {}

  [[nodiscard]] schema::Reader& reader() noexcept { return reader_; }

  /// \param form  how all values of the argument are written; `id` is a form of some of them
  [[nodiscard]] NodeId value(formats::PlainForm form, const std::string& pointer,
                             schema::FormId id) {
    if (form != formats::PlainForm::text && form != formats::PlainForm::nullable) {
      return json_.value(id);
    }
    // A text that reads as null is not a string, even where null is not allowed.
    const bool reads_null      = form == formats::PlainForm::nullable;
    const auto [known, is_new] = made_.try_emplace({id, reads_null});
    if (is_new) {
      const schema::FormId written = reads_null ? without_null_text(id) : id;
      known->second                = plain_.value_or_nothing(reader_, written, pointer, json_);
    }
    return known->second;
  }

 private:
  [[nodiscard]] schema::FormId without_null_text(schema::FormId id) {
    schema::Form form = reader_.forms[id];
    if (form.null || form.texts.empty()) return id;
    schema::Form word;
    word.texts = {{.values = std::vector<std::string>{"null"}}};
    return reader_.forms.add(reader_.forms.difference(form, word));
  }

  schema::Reader reader_;
  schema::Spellings spellings_;
  schema::GrammarBuilder json_;
  formats::PlainText plain_;
  std::map<std::pair<schema::FormId, bool>, NodeId> made_;
};

}  // namespace detail

TOOLDECODE_INLINE std::vector<std::string> XmlCall::ends_reasoning() const {
  if (!ends_thought) return {};
  return {std::string(trigger())};
}

TOOLDECODE_INLINE std::string XmlCall::write(std::span<const ToolCall> calls,
                                             const ToolSet& tools) const {
  if (calls.empty()) return {};
  const std::optional<formats::ElementStyle> styled =
      style ? std::optional(whole_style()) : std::nullopt;
  std::string result;
  if (!section_begin.empty()) result = section_begin + call_gap;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const ToolCall& call = calls[i];
    if (i > 0) result += call_gap;
    result += begin;
    if (number_first) result += written_number(i);
    result += with_gap(before_name) + call.name + after_name;
    if (!number_first) result += written_number(i);
    result += gap;
    const Tool* const tool = find(tools, call.name);
    const detail::ArgumentTypes types(style, tool);
    bool first = true;
    for (const auto& [key, value] : call.arguments.items()) {
      if (style && !std::exchange(first, false)) result += style->separator;
      result += before_key + (style ? style->written_key(key) : key) + after_key;
      if (style) {
        const formats::ElementText text(*styled);
        text.append(result, value, types[key]);
        result += text.end_of(key);
      } else {
        result += with_gap(before_value) + padding;
        append_value(result, value, form_of(tool, key));
        result += padding + after_value;
      }
      result += gap;
    }
    if (!after_values.empty()) (result += after_values) += gap;
    result += end;
  }
  if (!section_end.empty()) result += call_gap + section_end;
  return result;
}

TOOLDECODE_INLINE std::string XmlCall::written_number(std::size_t call) const {
  if (number_end.empty()) return {};
  return std::to_string(call + first_number) + number_end;
}

TOOLDECODE_INLINE void XmlCall::skip_number(text::ValueReader& reader) const {
  if (number_end.empty()) return;
  const std::size_t digits = reader.rest().find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) reader.fail("expected the call's number");
  reader.skip(digits);
  reader.expect(number_end);
}

TOOLDECODE_INLINE NodeId XmlCall::number(Grammar& grammar) const {
  if (number_end.empty()) return grammar.empty();
  return grammar.sequence({formats::call_number(grammar), formats::delimiter(grammar, number_end)});
}

TOOLDECODE_INLINE std::string XmlCall::key(text::ValueReader& reader, const Tool* tool) const {
  const auto known = tool ? argument_names(*tool) : std::vector<std::string>();
  std::string name = detail::name_up_to(reader, {after_key}, [&](const std::string& exact) {
    return std::find(known.begin(), known.end(), style ? style->read_key(exact) : exact) !=
           known.end();
  });
  reader.expect(after_key);
  return style ? style->read_key(name) : name;
}

TOOLDECODE_INLINE XmlCall::Json XmlCall::styled_value(text::ValueReader& reader,
                                                      const std::string& key,
                                                      const formats::ElementTypes& types) const {
  const formats::ElementText text(*style);
  Json result = text.read(reader, types);
  reader.expect(text.end_of(key));
  return result;
}

TOOLDECODE_INLINE std::vector<ToolCall> XmlCall::parse(std::string_view text,
                                                       const ToolSet& tools) const {
  std::vector<ToolCall> calls;
  std::size_t first = text.find(trigger());
  if (bare) first = std::min(first, text.find(before_name));
  if (first == std::string_view::npos) return calls;
  text::ValueReader reader    = formats::call_reader(text);
  const std::string_view next = after_arguments();
  const std::vector<std::string_view> name_ends =
      after_name.empty() ? std::vector<std::string_view>{next, before_key}
                         : std::vector<std::string_view>{after_name};
  reader.skip(first);
  reader.expect(section_begin);
  reader.skip_space();
  const auto is_over = [&] {
    return section_end.empty() ? reader.at_end() : reader.accept(section_end);
  };
  do {
    const bool is_bare = bare && reader.rest().starts_with(before_name);
    if (!is_bare) reader.expect(begin);
    if (number_first) skip_number(reader);
    if (!before_name.empty() || !is_exact_name()) reader.skip_space();
    reader.expect(before_name);
    ToolCall call;
    call.name = detail::name_up_to(
        reader, name_ends, [&](const std::string& exact) { return tools.find(exact).has_value(); });
    reader.expect(after_name);
    if (!number_first) skip_number(reader);
    reader.skip_space();
    const Tool* const tool = find(tools, call.name);
    const detail::ArgumentTypes types(style, tool);
    for (bool is_first = true; !reader.accept(next); is_first = false) {
      if (style && !is_first) {
        reader.expect(style->separator);
        reader.skip_space();
      }
      reader.expect(before_key);
      std::string name = key(reader, tool);
      if (!before_value.empty()) reader.skip_space();
      reader.expect(before_value);
      call.arguments[name] =
          style ? styled_value(reader, name, types[name]) : value(reader, form_of(tool, name));
      reader.skip_space();
    }
    if (!after_values.empty()) {
      reader.skip_space();
      if (!reader.accept(end) && !is_bare) reader.expect(end);
    }
    calls.push_back(std::move(call));
    reader.skip_space();
  } while (!is_over());
  formats::expect_end(reader);
  return calls;
}

TOOLDECODE_INLINE std::string XmlCall::read_key(const Tool& tool, std::size_t given,
                                                std::string_view before) const {
  text::ValueReader key_reader = formats::call_reader(before);
  key_reader.skip_space();
  if (style && given > 0) {
    key_reader.expect(style->separator);
    key_reader.skip_space();
  }
  key_reader.expect(before_key);
  return key(key_reader, &tool);
}

TOOLDECODE_INLINE std::pair<std::string, JsonValue> XmlCall::read_argument(
    const Tool& tool, std::size_t given, std::string_view before, std::string_view text) const {
  std::string name         = read_key(tool, given, before);
  text::ValueReader reader = formats::call_reader(text);
  Json read = style ? styled_value(reader, name, detail::ArgumentTypes(style, &tool)[name])
                    : value(reader, form_of(&tool, name));
  return {std::move(name), std::move(read)};
}

TOOLDECODE_INLINE std::vector<CallOpening> XmlCall::openings(Grammar& grammar, const ToolSet& tools,
                                                             std::span<const std::size_t> chosen,
                                                             const ChoiceOptions& options) const {
  const bool exact     = options.whitespace == 0;
  const NodeId between = gap_in(grammar, gap, options);
  const NodeId around  = gap_in(grammar, call_gap, options);
  const NodeId named   = grammar.trie(names(grammar, tools, chosen, options));
  const bool is_close  = before_name.empty() && (exact || is_exact_name());
  const NodeId name    = grammar.sequence({number_first ? number(grammar) : grammar.empty(),
                                        is_close ? grammar.empty() : between,
                                           formats::delimiter(grammar, before_name), named});
  const NodeId first   = section_begin.empty()
                             ? grammar.empty()
                             : grammar.sequence({around, formats::delimiter(grammar, begin)});
  if (options.open_ended) {
    return {{std::string(trigger()),
             grammar.sequence({first, name, grammar.lexeme(formats::any_text())})}};
  }
  const NodeId last  = exact ? grammar.empty() : between;
  const NodeId close = grammar.sequence({between, formats::delimiter(grammar, end)});
  const NodeId call  = after_values.empty() ? name : grammar.sequence({name, close});
  if (exact || !bare) {
    const NodeId next = grammar.sequence({around, formats::delimiter(grammar, begin)});
    const NodeId over =
        section_end.empty()
            ? last
            : grammar.sequence({around, formats::delimiter(grammar, section_end), last});
    std::vector<CallOpening> result{
        {std::string(trigger()),
         grammar.sequence({first, grammar.repeat(call, options.calls(), next), over})}};
    if (bare) result.push_back(CallOpening::barred(grammar, before_name));
    return result;
  }
  const NodeId bare_call = grammar.sequence({named, grammar.optional(close)});
  NodeId more            = grammar.empty();
  if (options.parallel) {
    const NodeId next =
        grammar.choice({grammar.sequence({formats::delimiter(grammar, begin), call}),
                        grammar.sequence({formats::delimiter(grammar, before_name), bare_call})});
    more =
        grammar.repeat(grammar.sequence({between, next}), options.further_calls(), grammar.empty());
  }
  return {{begin, grammar.sequence({call, more, last})},
          {before_name, grammar.sequence({bare_call, more, last})}};
}

TOOLDECODE_INLINE NodeId XmlCall::gap_in(Grammar& grammar, std::string_view written,
                                         const ChoiceOptions& options) {
  if (options.whitespace == 0) return grammar.literal(written);
  return grammar.lexeme(text::any_whitespace(), {0, options.whitespace});
}

TOOLDECODE_INLINE std::vector<std::pair<std::string, NodeId>> XmlCall::names(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  std::vector<std::pair<std::string, NodeId>> result;
  for (const std::size_t i : chosen) {
    const Tool& tool = tools[i];
    formats::refuse_tool(tool, formats::why_not_carried(tool.name, delimiters(), after_name));
    const bool is_trimmed = after_name.empty() || (before_name.empty() && !is_exact_name());
    if (is_trimmed && formats::has_outer_space(tool.name)) {
      formats::refuse_tool(tool, "white space stands around it");
    }
    const auto content = [&](Grammar& part) {
      const NodeId space = gap_in(part, gap, options);
      const NodeId close = formats::delimiter(part, after_arguments());
      return part.sequence({space, arguments(part, tool, space, options), close});
    };
    NodeId after_tool = grammar.part(static_cast<std::uint32_t>(i), content);
    if (!number_first) after_tool = grammar.sequence({number(grammar), after_tool});
    for (const std::string& after : formats::delimiter_spellings(after_name)) {
      result.emplace_back(tool.name + after, after_tool);
    }
  }
  return result;
}

TOOLDECODE_INLINE std::vector<std::string> XmlCall::ends_of_values() const {
  return formats::closing_delimiters({after_value, after_values, end, section_end});
}

TOOLDECODE_INLINE formats::ElementStyle XmlCall::whole_style() const {
  formats::ElementStyle whole = *style;
  const auto ends             = ends_of_values();
  whole.excluded.insert(whole.excluded.end(), ends.begin(), ends.end());
  return whole;
}

TOOLDECODE_INLINE std::vector<std::string_view> XmlCall::delimiters() const {
  return {begin,       before_name,  after_name,    before_key,  after_key, before_value,
          after_value, after_values, section_begin, section_end, end};
}

TOOLDECODE_INLINE std::string XmlCall::with_gap(const std::string& delimiter) const {
  return delimiter.empty() ? delimiter : gap + delimiter;
}

TOOLDECODE_INLINE const Tool* XmlCall::find(const ToolSet& tools, std::string_view name) {
  const auto known = tools.find(name);
  return known ? &tools[*known] : nullptr;
}

TOOLDECODE_INLINE std::optional<formats::PlainForm> XmlCall::form_of(const Tool* tool,
                                                                     const std::string& key) {
  if (tool == nullptr) return std::nullopt;
  return formats::find_argument_form(*tool, key);
}

TOOLDECODE_INLINE void XmlCall::append_value(std::string& text, const Json& value,
                                             std::optional<formats::PlainForm> form) const {
  if (!value.is_string() || form == formats::PlainForm::json || form == formats::PlainForm::mixed) {
    text += schema::escape_excluded(text::write_json(value), ends_of_values());
    return;
  }
  const auto& string = value.string();
  for (const std::string& closing : ends_of_values()) {
    if (string.find(closing) == std::string::npos) continue;
    throw Error(Errc::malformed_call, closing,
                "a string must not hold the delimiter that closes it");
  }
  if (form == formats::PlainForm::nullable && string == "null") {
    throw Error(Errc::malformed_call, "null", "must not be a string where null may stand, too");
  }
  text += string;
}

TOOLDECODE_INLINE XmlCall::Json XmlCall::value(text::ValueReader& reader,
                                               std::optional<formats::PlainForm> form) const {
  if (form == formats::PlainForm::json) {
    // Older templates print these with Python.
    reader.skip_space();
    for (const auto& [word, meaning] :
         {std::pair{"True", Json(true)}, {"False", Json(false)}, {"None", Json()}}) {
      if (reader.accept(word)) return close(reader, meaning);
    }
    return close(reader, reader.value());
  }
  const std::size_t length = reader.rest().find(after_value);
  if (length == std::string_view::npos) reader.fail("expected '" + after_value + "'");
  std::string_view text = reader.rest().substr(0, length);
  if (!text::is_utf8(text)) reader.fail("the string is not UTF-8");
  if (text.starts_with(padding)) text.remove_prefix(padding.size());
  if (text.ends_with(padding)) text.remove_suffix(padding.size());
  Json result = std::string(text);
  if (form == formats::PlainForm::nullable && text == "null") result = nullptr;
  if (!form || form == formats::PlainForm::mixed) {
    try {
      text::ValueReader whole = reader;
      result                  = close(whole, whole.value());
      reader                  = whole;
      return result;
    } catch (const Error&) {
      // not JSON: a string
    }
  }
  reader.skip(length + after_value.size());
  return result;
}

TOOLDECODE_INLINE XmlCall::Json XmlCall::close(text::ValueReader& reader, Json result) const {
  reader.skip_space();
  reader.expect(after_value);
  return result;
}

TOOLDECODE_INLINE std::optional<std::string> XmlCall::why_not_key(const std::string& key) const {
  if (style && !whole_style().carries_bare(key)) return "it runs into what stands around it";
  if (style && key.find('\0') != std::string::npos) return "it holds a zero";
  return formats::why_not_carried(style ? style->written_key(key) : key, delimiters(), after_key);
}

TOOLDECODE_INLINE NodeId XmlCall::arguments(Grammar& grammar, const Tool& tool, NodeId between,
                                            const ChoiceOptions& options) const {
  if (style && style->by_document && !tool.strict && !tool.documented.is_null()) {
    // Without its document such a tool has no objects, whose keys the closing texts repeat.
    Tool documented       = tool;
    documented.parameters = std::exchange(documented.documented, {});
    try {
      return arguments(grammar, documented, between, options);
    } catch (const Error&) {
      // what cannot be enforced is left out, as in other formats
    }
  }
  const BuildBudget budget(options.limits);
  try {
    SchemaOptions written =
        formats::parameter_options(tool, options, text::ValueSyntax::json, ends_of_values());
    written.leading_keys.clear();
    const NodeId first(static_cast<std::uint32_t>(grammar.size()));
    const std::optional<formats::ElementStyle> whole =
        style ? std::optional(whole_style()) : std::nullopt;
    std::optional<formats::ElementValues> styled;
    std::optional<detail::PlainValues> plain;
    if (whole) {
      styled.emplace(grammar, tool.parameters, *whole, written);
    } else {
      plain.emplace(grammar, tool, written, after_value, ends_of_values());
    }
    const formats::ListedArguments listed(tool, styled ? styled->reader() : plain->reader());
    const detail::MakeValue value = [&](formats::PlainForm form, const std::string& key,
                                        schema::FormId id) {
      if (!styled) return plain->value(form, listed.pointer(key, id), id);
      if (!whole->by_document || key.empty()) return styled->value(id);
      return styled->value(id, {styled->reader(), listed.plain_values(key)});
    };
    schema::FormAlgebra& forms = (styled ? styled->reader() : plain->reader()).forms;
    const auto order           = options.documented_order || !options.leading_keys.empty()
                                     ? schema::MemberOrder::fixed
                                     : schema::MemberOrder::any;
    std::vector<NodeId> choices;
    std::optional<std::string> missing;
    for (const schema::ObjectForm& object : listed.objects()) {
      schema::visit_by_conditions(object, forms, order, [&](schema::ObjectForm one) {
        auto lacks = one.lead(options.leading_keys);
        if (!lacks) {
          choices.push_back(
              argument_set(grammar, tool, listed, one, forms.texts, value, between, options));
        } else if (!missing) {
          missing = std::move(lacks);
        }
      });
    }
    if (choices.empty() && missing) {
      throw Error(Errc::invalid_option, *missing, "must be a property, and lead once");
    }
    const NodeId all = choices.size() == 1 ? choices[0] : grammar.choice(std::move(choices));
    if (grammar.is_satisfiable(all, first)) return all;
    listed.refuse("no value conforms to this schema");
  } catch (const Error& error) {
    throw error.under(tool.parameters_pointer);
  }
}

TOOLDECODE_INLINE NodeId XmlCall::argument_set(Grammar& grammar, const Tool& tool,
                                               const formats::ListedArguments& listed,
                                               const schema::ObjectForm& object,
                                               schema::StringSets& texts,
                                               const detail::MakeValue& value, NodeId between,
                                               const ChoiceOptions& options) const {
  const NodeId pad = grammar.literal(padding);
  const NodeId assign =
      before_value.empty() ? grammar.empty()
                           : grammar.sequence({between, formats::delimiter(grammar, before_value)});
  const NodeId closing = formats::delimiter(grammar, after_value);
  const auto element   = [&](NodeId content, NodeId last) {
    return grammar.sequence(
        {assign,
         grammar.tagged(formats::mark::argument, grammar.sequence({pad, content, pad, last})),
         between});
  };
  const std::string separator = style ? style->separator : "";
  KeyedSet set{.members          = {},
               .others           = {},
               .separator        = separator.empty()
                                       ? grammar.empty()
                                       : grammar.sequence({grammar.literal(separator), between}),
               .count            = object.count,
               .documented_order = options.documented_order,
               .leading          = options.leading_keys.size()};
  formats::KeyedElements elements(set, before_key, after_key);
  const std::vector<std::string> documented = argument_names(tool);
  for (const auto& [key, id, is_required] : object.members) {
    const auto place = std::find(documented.begin(), documented.end(), key) - documented.begin();
    const bool is_documented = static_cast<std::size_t>(place) < documented.size();
    formats::refuse_argument(tool, key, why_not_key(key));
    if (!is_documented && (formats::has_outer_space(key) || !formats::is_name(key))) {
      formats::refuse_name(tool.parameters_pointer, key, "it is not documented");
    }
    const auto form = style ? formats::PlainForm::json : listed.plain_form(key);
    NodeId content  = value(form, key, listed.plain_value(key, id));
    if (is_documented) {
      content = grammar.tagged(argument_tag + static_cast<std::uint32_t>(place), content);
    }
    const std::string written = style ? style->written_key(key) : key;
    const NodeId close =
        style && style->repeats_key()
            ? grammar.sequence({closing, grammar.literal(written + style->after_end_key)})
            : closing;
    elements.add(written, element(content, close), is_required);
  }
  schema::add_conditions(set, object);
  for (const schema::ObjectForm::OtherKeys& others : object.others) {
    if (others.value == schema::nothing_form) continue;
    if (style && style->repeats_key()) {
      // A schema for keys in general does not require a key.
      if (others.value == schema::any_form) continue;
      formats::refuse_unlisted_keys(listed.pointer_to_others());
    }
    const auto form      = style ? formats::PlainForm::json : listed.plain_form(others);
    const NodeId content = element(value(form, "", others.value), closing);
    if (others.keys.empty()) {
      elements.add_others(content);
    } else {
      elements.add_others(content, texts.texts(others.keys));
    }
  }
  return grammar.keyed_set(set);
}

TOOLDECODE_INLINE std::string_view XmlCall::trigger() const noexcept {
  return section_begin.empty() ? begin : section_begin;
}

TOOLDECODE_INLINE const std::string& XmlCall::after_arguments() const {
  return after_values.empty() ? end : after_values;
}

}  // namespace tooldecode
