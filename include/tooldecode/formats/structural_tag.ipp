#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_values.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/strings_without.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/formats/tag_fields.hpp>
#include <tooldecode/formats/turning_text.hpp>
#include <tooldecode/grammar/nonempty.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

namespace detail {

// Reads nested formats.
class TagReader {
 public:
  using Json = JsonValue;

  TagReader(Grammar& grammar, const StructuralTagOptions& options)
      : grammar_(grammar), tokens_(options.vocabulary), options_(options) {}

  NodeId document(const Json& whole) {
    TagFields fields(whole, "#");
    if (fields.find("type") != nullptr && fields.text("type") != "structural_tag") {
      fields.fail("type", "must be \"structural_tag\"");
    }
    if (fields.find("structures") != nullptr) return structures(fields);
    const Json& inner = fields.get("format");
    fields.finish();
    return format(inner, fields.pointer("format"), {});
  }

 private:
  // Ends of the surrounding tag, which its free text does not hold.
  struct Ends {
    std::vector<std::string> texts{};
    std::vector<std::string> controls{};  // names of control tokens
  };
  // A partly read tag: its beginning and all that follows.
  struct ReadTag {
    std::string begin;  // text, or a token as a grammar reads it
    bool is_token = false;
    NodeId after{};
  };
  using ReadFormat                        = NodeId (TagReader::*)(TagFields&, const Ends&);
  static constexpr std::size_t max_nested = 100;

  NodeId format(const Json& json, const std::string& pointer, const Ends& ends) {
    static const std::map<std::string_view, ReadFormat> readers{
        {"const_string", &TagReader::const_string},
        {"json_schema", &TagReader::json_schema},
        {"qwen_xml_parameter", &TagReader::qwen_xml_parameter},
        {"regex", &TagReader::regex},
        {"grammar", &TagReader::grammar},
        {"any_text", &TagReader::any_text},
        {"sequence", &TagReader::sequence},
        {"or", &TagReader::one_of},
        {"optional", &TagReader::optional},
        {"plus", &TagReader::plus},
        {"star", &TagReader::star},
        {"repeat", &TagReader::repeat},
        {"tag", &TagReader::tag},
        {"triggered_tags", &TagReader::triggered_tags},
        {"tags_with_separator", &TagReader::tags_with_separator},
        {"dispatch", &TagReader::dispatch},
        {"token", &TagReader::token},
        {"exclude_token", &TagReader::exclude_token},
        {"any_tokens", &TagReader::any_tokens},
        {"token_triggered_tags", &TagReader::token_triggered_tags},
        {"token_dispatch", &TagReader::token_dispatch},
    };
    TagFields fields(json, pointer);
    const std::string type = fields.text("type");
    const auto known       = readers.find(type);
    if (known == readers.end()) {
      throw Error(Errc::unknown_format, fields.pointer("type"), "no such format: \"" + type + '"');
    }
    if (++depth_ > max_nested) {
      throw Error(Errc::limit_exceeded, pointer, "formats nest too deeply");
    }
    try {
      const NodeId node = (this->*known->second)(fields, ends);
      fields.finish();
      --depth_;
      return node;
    } catch (const Error& error) {
      throw error.under(pointer);
    }
  }
  NodeId content(TagFields& fields, const Ends& ends) {
    return format(fields.get("content"), fields.pointer("content"), ends);
  }
  std::vector<NodeId> elements(TagFields& fields, const Ends& ends) {
    std::vector<NodeId> all;
    const Json& list = fields.list("elements");
    for (const Json& one : list) {
      all.push_back(
          format(one, fields.pointer("elements") + '/' + std::to_string(all.size()), ends));
    }
    return all;
  }

  // Texts -------------------------------------------------------------------------------------

  NodeId const_string(TagFields& fields, const Ends& /*ends*/) {
    return delimiter(grammar_, fields.text("value"));
  }
  NodeId any_text(TagFields& fields, const Ends& ends) {
    fields.refuse("max_tokens", "how many tokens write a text no grammar can tell");
    std::vector<std::string> without = fields.texts("excludes");
    without.insert(without.end(), ends.texts.begin(), ends.texts.end());
    const auto max = fields.find_count("max_chars");
    if (!max) return grammar_.lexeme(free_text({.without = std::move(without)}));
    if (*max == 0) return grammar_.empty();
    text::TextDfa text = text::TextDfa::repeated(text::CodePointSet::all());
    for (const std::string& one : without) {
      text = difference(text, text::compile_pattern(pattern_of(one)));
    }
    return grammar_.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)), {0, *max});
  }
  NodeId regex(TagFields& fields, const Ends& /*ends*/) {
    const std::string pattern = fields.text("pattern");
    try {
      const text::TextDfa text = text::compile_whole_pattern(pattern);
      return grammar_.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)));
    } catch (const Error& error) {
      throw error.within(fields.pointer("pattern"));
    }
  }
  NodeId grammar(TagFields& fields, const Ends& /*ends*/) {
    const std::string text = fields.text("grammar");
    try {
      return grammar_.append(ebnf::parse_grammar(text, "root", options_.vocabulary));
    } catch (const Error& error) {
      throw error.within(fields.pointer("grammar"));
    }
  }

  // Values ------------------------------------------------------------------------------------

  NodeId json_schema(TagFields& fields, const Ends& /*ends*/) {
    const std::string style  = fields.find("style") == nullptr ? "json" : fields.text("style");
    SchemaOptions options    = schema_options();
    options.documented_order = !fields.flag("any_order", false);
    if (const auto count = fields.find_count("max_whitespace_cnt")) {
      if (*count == 0) {
        throw Error(Errc::unsupported_keyword, fields.pointer("max_whitespace_cnt"),
                    "values without any white space are not supported");
      }
      options.whitespace = *count;
    }
    return values(fields, style, options, fields.texts("excludes"));
  }
  NodeId qwen_xml_parameter(TagFields& fields, const Ends& /*ends*/) {
    return values(fields, "qwen_xml", schema_options());
  }
  [[nodiscard]] SchemaOptions schema_options() const {
    return {.documented_order = true,
            .whitespace       = options_.whitespace,
            .every_spelling   = options_.every_spelling,
            .limits           = options_.limits};
  }
  NodeId values(TagFields& fields, const std::string& style, const SchemaOptions& options,
                const std::vector<std::string>& excluded = {}) {
    const Json& schema = fields.get("json_schema");
    if (!schema.is_object() && !schema.is_boolean()) {
      fields.fail("json_schema", "must be a schema: an object, true or false");
    }
    const ElementStyle* const elements = find_element_style(style);
    if (style != "json" && elements == nullptr) {
      throw Error(Errc::unknown_format, fields.pointer("style"), "no such style: \"" + style + '"');
    }
    const std::string pointer = fields.pointer("json_schema");
    if (excluded.empty()) return values(grammar_, schema, pointer, elements, options);
    Grammar inner;
    std::optional<ElementStyle> own;
    if (elements != nullptr) {
      own           = *elements;
      own->excluded = excluded;
    }
    const NodeId root = values(inner, schema, pointer, own ? &*own : nullptr, options);
    return grammar_.append(inner, root, StringsWithout(excluded));
  }
  static NodeId values(Grammar& grammar, const Json& schema, const std::string& pointer,
                       const ElementStyle* style, const SchemaOptions& options) {
    try {
      if (style == nullptr) return SchemaCompiler(grammar, schema, options).value(schema, "#");
      return ElementValues(grammar, schema, *style, options).objects();
    } catch (const Error& error) {
      throw error.within(pointer);
    }
  }

  // Combinations ------------------------------------------------------------------------------

  NodeId sequence(TagFields& fields, const Ends& ends) {
    return grammar_.sequence(elements(fields, ends));
  }
  NodeId one_of(TagFields& fields, const Ends& ends) {
    return grammar_.choice(elements(fields, ends));
  }
  NodeId optional(TagFields& fields, const Ends& ends) {
    return grammar_.optional(content(fields, ends));
  }
  NodeId star(TagFields& fields, const Ends& ends) { return repeated(content(fields, ends), {}); }
  NodeId plus(TagFields& fields, const Ends& ends) { return repeated(content(fields, ends), {1}); }
  NodeId repeat(TagFields& fields, const Ends& ends) {
    (void)fields.get("min"), (void)fields.get("max");
    text::Occurrences count{.min = *fields.find_count("min")};
    if (fields.get("max") != Json(-1)) {
      count.max = *fields.find_count("max");
      if (count.max < count.min) fields.fail("max", "must not be below \"min\"");
    }
    return repeated(content(fields, ends), count);
  }
  NodeId repeated(NodeId item, text::Occurrences count) {
    grammar::NonemptyTexts nonempty(grammar_);
    if (nonempty.has_empty(item)) count.min = 0;
    return grammar_.repeat(nonempty(item), count, grammar_.empty());
  }

  // Tags --------------------------------------------------------------------------------------

  NodeId tag(TagFields& fields, const Ends& /*ends*/) { return whole(read_tag(fields)); }
  NodeId whole(const ReadTag& tag) {
    return grammar_.sequence(
        {tag.is_token ? grammar_.literal(tag.begin) : delimiter(grammar_, tag.begin), tag.after});
  }
  ReadTag read_tag(TagFields& fields) {
    ReadTag read;
    const Json& begin = fields.get("begin");
    read.is_token     = begin.is_object();
    read.begin = read.is_token ? token_bytes(begin, fields.pointer("begin")) : fields.text("begin");
    Ends ends;
    const NodeId end  = read_end(fields, ends);
    const Json& inner = fields.get("content");
    if (ends.texts.empty() && ends.controls.empty() && ends_nowhere(inner)) {
      fields.fail("end", "must not be empty behind content that ends nowhere");
    }
    read.after = grammar_.sequence({content(fields, ends), end});
    return read;
  }
  NodeId read_end(TagFields& fields, Ends& ends) {
    const Json& end = fields.get("end");
    if (end.is_object()) {
      const std::string bytes = token_bytes(end, fields.pointer("end"));
      if (bytes.front() == control_open) {
        ends.controls.push_back(bytes.substr(1, bytes.size() - 2));
      } else {
        ends.texts.push_back(bytes);
      }
      return grammar_.literal(bytes);
    }
    std::vector<NodeId> choices;
    const auto add = [&](const Json& one) {
      if (!one.is_string()) fields.fail("end", "must be a string, a list of strings or a token");
      const auto text = one.get<std::string>();
      if (!text.empty()) ends.texts.push_back(text);
      choices.push_back(delimiter(grammar_, text));
    };
    if (end.is_array()) {
      for (const Json& one : fields.list("end")) add(one);
    } else {
      add(end);
    }
    return grammar_.choice(std::move(choices));
  }
  std::vector<ReadTag> read_tags(TagFields& fields) {
    std::vector<ReadTag> tags;
    for (const Json& one : fields.list("tags")) {
      TagFields inner(one, fields.pointer("tags") + '/' + std::to_string(tags.size()));
      if (inner.find("type") != nullptr && inner.text("type") != "tag") {
        inner.fail("type", "must be \"tag\"");
      }
      tags.push_back(read_tag(inner));
      inner.finish();
    }
    return tags;
  }
  NodeId any_of(const std::vector<ReadTag>& tags) {
    std::vector<NodeId> choices;
    for (const ReadTag& one : tags) choices.push_back(whole(one));
    return grammar_.choice(std::move(choices));
  }

  NodeId tags_with_separator(TagFields& fields, const Ends& /*ends*/) {
    const NodeId item      = any_of(read_tags(fields));
    const NodeId separator = delimiter(grammar_, fields.text("separator"));
    text::Occurrences count{.min = fields.flag("at_least_one", false) ? 1U : 0U};
    if (fields.flag("stop_after_first", false)) count.max = 1;
    if (grammar::NonemptyTexts(grammar_).has_empty(item)) {
      throw Error(Errc::unsupported_keyword, fields.pointer("tags"),
                  "tags between separators must not be empty texts");
    }
    return grammar_.repeat(item, count, separator);
  }
  NodeId triggered_tags(TagFields& fields, const Ends& ends) {
    return triggered(fields, read_tags(fields), ends, "tags");
  }
  NodeId triggered(TagFields& fields, const std::vector<ReadTag>& tags, const Ends& ends,
                   std::string_view list) {
    (void)fields.list("triggers");
    const std::vector<std::string> triggers = fields.texts("triggers");
    const bool at_least_one                 = fields.flag("at_least_one", false);
    const bool once                         = fields.flag("stop_after_first", false);
    std::vector<std::string> without        = fields.texts("excludes");
    without.insert(without.end(), ends.texts.begin(), ends.texts.end());
    std::vector<TextTurn> turns;
    std::vector<char> is_used(triggers.size(), 0);
    for (std::size_t i = 0; i < tags.size(); ++i) {
      const std::string place = fields.pointer(list) + '/' + std::to_string(i) + "/begin";
      if (tags[i].is_token) throw Error(Errc::malformed_document, place, "must be a string");
      std::optional<std::size_t> found;
      for (std::size_t k = 0; k < triggers.size(); ++k) {
        if (!tags[i].begin.starts_with(triggers[k])) continue;
        if (found && triggers[*found] != triggers[k]) {
          throw Error(Errc::malformed_document, place, "begins with more than one trigger");
        }
        found      = k;
        is_used[k] = 1;
      }
      if (!found) throw Error(Errc::malformed_document, place, "begins with no trigger");
      const auto ways = turns_into(grammar_, triggers[*found], tags[i].begin, tags[i].after);
      turns.insert(turns.end(), ways.begin(), ways.end());
    }
    require_used(fields, "triggers", is_used);
    if (at_least_one && once) return any_of(tags);
    const NodeId text =
        turning_text(grammar_, turns, without, once ? TurnCount::once : TurnCount::again);
    return at_least_one ? grammar_.sequence({any_of(tags), text}) : text;
  }
  static void require_used(const TagFields& fields, std::string_view field,
                           const std::vector<char>& is_used) {
    const auto unused = std::find(is_used.begin(), is_used.end(), 0);
    if (unused == is_used.end()) return;
    throw Error(Errc::malformed_document,
                fields.pointer(field) + '/' + std::to_string(unused - is_used.begin()),
                "begins no tag");
  }
  // The older form of a document.
  NodeId structures(TagFields& fields) {
    std::vector<ReadTag> tags;
    for (const Json& one : fields.list("structures")) {
      TagFields inner(one, fields.pointer("structures") + '/' + std::to_string(tags.size()));
      const std::string end = inner.text("end");
      const Json& given     = inner.get("schema");
      const std::string at  = inner.pointer("schema");
      const Json schema =
          given.is_string() ? text::parse_exact_json(given.get<std::string>()) : given;
      if (!schema.is_object() && !schema.is_boolean()) inner.fail("schema", "must be a schema");
      tags.push_back({inner.text("begin"), false,
                      grammar_.sequence({values(grammar_, schema, at, nullptr, schema_options()),
                                         delimiter(grammar_, end)})});
      inner.finish();
    }
    const NodeId node = triggered(fields, tags, {}, "structures");
    fields.finish();
    return node;
  }
  NodeId dispatch(TagFields& fields, const Ends& ends) {
    std::vector<TextTurn> turns;
    each_rule(fields, ends, [&](const Json& pattern, const std::string& place, NodeId after) {
      if (!pattern.is_string() || pattern.string().empty()) {
        throw Error(Errc::malformed_document, place, "must be a string that is not empty");
      }
      const auto text = pattern.get<std::string>();
      const auto ways = turns_into(grammar_, text, text, after);
      turns.insert(turns.end(), ways.begin(), ways.end());
    });
    const std::vector<std::string> without = fields.texts("excludes");
    return turning_text(grammar_, turns, without,
                        fields.flag("loop", true) ? TurnCount::again : TurnCount::once);
  }
  template <class Take>
  void each_rule(TagFields& fields, const Ends& ends, const Take& take) {
    std::size_t number = 0;
    for (const Json& rule : fields.list("rules")) {
      const std::string place = fields.pointer("rules") + '/' + std::to_string(number++);
      if (!rule.is_array() || rule.size() != 2) {
        throw Error(Errc::malformed_document, place, "must be a pattern and a format");
      }
      take(rule[0], place + "/0", format(rule[1], place + "/1", ends));
    }
  }

  // Tokens ------------------------------------------------------------------------------------

  [[nodiscard]] TokenId find_token(const Json& token, const std::string& pointer) const {
    if (token.is_string()) return tokens_.find(token.string(), pointer);
    if (token.is_number_integer()) return tokens_.find(token.get<std::int64_t>(), pointer);
    throw Error(Errc::malformed_document, pointer, "must be a token's number or its text");
  }
  [[nodiscard]] std::string bytes_of(const Json& token, const std::string& pointer) const {
    return tokens_.bytes(find_token(token, pointer), pointer);
  }
  [[nodiscard]] std::string control_name(const Json& token, const std::string& pointer) const {
    return tokens_.control_name(find_token(token, pointer), pointer);
  }
  std::string token_bytes(const Json& json, const std::string& pointer) {
    TagFields fields(json, pointer);
    if (fields.text("type") != "token") fields.fail("type", "must be \"token\"");
    const std::string bytes = bytes_of(fields.get("token"), fields.pointer("token"));
    fields.finish();
    return bytes;
  }
  NodeId token(TagFields& fields, const Ends& /*ends*/) {
    return grammar_.literal(bytes_of(fields.get("token"), fields.pointer("token")));
  }
  NodeId exclude_token(TagFields& /*fields*/, const Ends& /*ends*/) {
    throw Error(Errc::unsupported_keyword, "", "one token of any text no grammar can tell");
  }
  NodeId any_tokens(TagFields& fields, const Ends& ends) {
    fields.refuse("max_tokens", "how many tokens write a text no grammar can tell");
    std::vector<std::string> without = control_names(fields, "exclude_tokens");
    without.insert(without.end(), ends.controls.begin(), ends.controls.end());
    return grammar_.lexeme(ebnf::any_tokens(without));
  }
  std::vector<std::string> control_names(TagFields& fields, std::string_view field) {
    std::vector<std::string> names;
    const Json* const list = fields.find(field);
    if (list == nullptr) return names;
    if (!list->is_array()) fields.fail(field, "must be a list");
    for (const Json& one : *list) {
      names.push_back(
          control_name(one, fields.pointer(field) + '/' + std::to_string(names.size())));
    }
    return names;
  }
  NodeId token_triggered_tags(TagFields& fields, const Ends& ends) {
    (void)fields.list("trigger_tokens");
    const std::vector<std::string> triggers = control_names(fields, "trigger_tokens");
    std::vector<std::string> without        = control_names(fields, "exclude_tokens");
    without.insert(without.end(), ends.controls.begin(), ends.controls.end());
    const std::vector<ReadTag> tags = read_tags(fields);
    std::vector<char> is_used(triggers.size(), 0);
    for (std::size_t i = 0; i < tags.size(); ++i) {
      bool is_triggered = false;
      for (std::size_t k = 0; tags[i].is_token && k < triggers.size(); ++k) {
        if (tags[i].begin != control_open + triggers[k] + control_close) continue;
        is_triggered = true;
        is_used[k]   = 1;
      }
      if (!is_triggered) {
        throw Error(Errc::malformed_document,
                    fields.pointer("tags") + '/' + std::to_string(i) + "/begin",
                    "must be one of the trigger tokens");
      }
    }
    require_used(fields, "trigger_tokens", is_used);
    const TurnCount count =
        fields.flag("stop_after_first", false) ? TurnCount::once : TurnCount::again;
    const NodeId first   = any_of(tags);
    const bool is_needed = fields.flag("at_least_one", false);
    if (is_needed && count == TurnCount::once) return first;
    const NodeId text = turning_tokens(grammar_, triggers, without, first, count);
    return is_needed ? grammar_.sequence({first, text}) : text;
  }
  NodeId token_dispatch(TagFields& fields, const Ends& ends) {
    std::vector<std::string> triggers;
    std::vector<NodeId> ways;
    each_rule(fields, ends, [&](const Json& pattern, const std::string& place, NodeId after) {
      triggers.push_back(control_name(pattern, place));
      ways.push_back(grammar_.sequence({grammar_.literal(bytes_of(pattern, place)), after}));
    });
    return turning_tokens(grammar_, triggers, control_names(fields, "exclude_tokens"),
                          grammar_.choice(std::move(ways)),
                          fields.flag("loop", true) ? TurnCount::again : TurnCount::once);
  }
  Grammar& grammar_;
  ebnf::GrammarTokens tokens_;
  const StructuralTagOptions& options_;
  std::size_t depth_ = 0;
};

}  // namespace detail

TOOLDECODE_INLINE NodeId build_structural_tag(Grammar& grammar, const JsonValue& document,
                                              const StructuralTagOptions& options) {
  const BuildBudget budget(options.limits);
  const NodeId first(static_cast<std::uint32_t>(grammar.size()));
  const NodeId node = detail::TagReader(grammar, options).document(document);
  if (grammar.is_satisfiable(node, first)) return node;
  throw Error(Errc::unsatisfiable_schema, "#", "no text is one of this structural tag");
}

}  // namespace tooldecode::formats

namespace tooldecode {

TOOLDECODE_INLINE Grammar Grammar::structural_tag(const JsonValue& tag,
                                                  const StructuralTagOptions& options) {
  if (tag.is_string()) return structural_tag(text::parse_exact_json(tag.string()), options);
  return build({options.limits, "#"}, [&] {
    Grammar grammar;
    grammar.root_ = formats::build_structural_tag(grammar, tag, options);
    return grammar;
  });
}

}  // namespace tooldecode
