/// \file
/// SchemaCompiler: JSON Schema to grammar: the values that conform, as JSON or Python writes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/number.hpp>
#include <tooldecode/grammar/regex.hpp>
#include <tooldecode/grammar/schema_keywords.hpp>
#include <tooldecode/grammar/schema_text.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// How values are written.
struct SchemaOptions {
  ValueSyntax syntax       = ValueSyntax::json;
  bool documented_order    = false;  ///< properties in the order of the schema only
  std::uint32_t whitespace = 40;     ///< most bytes of optional whitespace; 0: ", " and ": " only
  std::vector<std::string> leading_keys{};  ///< of the root object: required, first, in this order
};

/// The mark, `argument_tag + i`, on the value of the root object's i-th property.
inline constexpr std::uint32_t argument_tag = 0x8000'0000;

/// Adds the values of schemas to a Grammar.
///
/// Supported: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`,
/// `prefixItems`, `additionalItems`, `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern`,
/// the four numeric bounds, `anyOf`, `oneOf` (of branches that exclude each other), `$ref` within
/// the document, and boolean schemas. Annotations are passed over (`format` is one, as in draft
/// 2020-12); any other keyword is an error, never ignored. What is accepted conforms; what conforms
/// is accepted but for these readings: an integer has no point (1.0 is written 1), a bounded
/// decimal has no exponent, equal values of an enum have one spelling, keys and enum texts are
/// written plainly or with every non-ASCII character escaped.
///
/// \par Complexity  O(size of the schema), each subschema once; patterns see compile_pattern
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{malformed_schema, unsupported_keyword, unsatisfiable_schema,
///                  malformed_pattern, unsupported_pattern, limit_exceeded} with the JSON pointer
/// \par Source      JSON Schema draft 2020-12, Validation; RFC 8259
class SchemaCompiler {
 public:
  using Json = nlohmann::ordered_json;

  /// \param root  the document that `$ref` points into; it outlives the compiler
  SchemaCompiler(Grammar& grammar, const Json& root, SchemaOptions options = {})
      : grammar_(grammar),
        root_(root),
        options_(options),
        first_(static_cast<NodeId>(grammar.size())),
        text_(grammar, options.syntax, options.whitespace) {}

  /// Any value that conforms; `pointer` is where the schema stands in the root document.
  [[nodiscard]] NodeId value(const Json& schema, const std::string& pointer) {
    const NodeId node = compile(schema, pointer);
    if (!grammar_.satisfiable(first_)[node]) {
      throw Error(Errc::unsatisfiable_schema, pointer, "no value conforms to this schema");
    }
    return node;
  }

  /// The properties of an object schema as a call's keyword arguments: `a=1, b='x'`.
  [[nodiscard]] NodeId keyword_arguments(const Json& schema, const std::string& pointer) {
    check_keywords(schema, pointer);
    const NodeId equals = grammar_.sequence({text_.space(), grammar_.literal("="), text_.space()});
    const NodeId node   = members(schema, pointer, equals, Keys::plain);
    if (!grammar_.satisfiable(first_)[node]) {
      throw Error(Errc::unsatisfiable_schema, pointer, "no arguments conform to this schema");
    }
    return node;
  }

  /// Optional whitespace, as this compiler writes it between values.
  [[nodiscard]] NodeId whitespace() const noexcept { return text_.space(); }
  /// A comma between values, and a colon after a key.
  [[nodiscard]] NodeId comma() const noexcept { return text_.comma(); }
  [[nodiscard]] NodeId colon() const noexcept { return text_.colon(); }

 private:
  enum class Keys : std::uint8_t { quoted, plain };
  static constexpr std::array types{"null",   "boolean", "integer", "number",
                                    "string", "array",   "object"};
  static constexpr std::uint32_t most_nested = 250;

  [[noreturn]] static void malformed(const std::string& pointer, const std::string& what) {
    throw Error(Errc::malformed_schema, pointer, what);
  }

  // One node per place, made before its content, so that recursion finds it.
  NodeId compile(const Json& schema, const std::string& pointer) {
    if (const auto known = nodes_.find(&schema); known != nodes_.end()) return known->second;
    if (++depth_ > most_nested)
      throw Error(Errc::limit_exceeded, pointer, "schemas nest too deeply");
    const NodeId node = grammar_.reserve();
    nodes_[&schema]   = node;
    grammar_.define(node, content(schema, pointer));
    --depth_;
    return node;
  }

  NodeId content(const Json& schema, const std::string& pointer) {
    if (schema.is_boolean()) return schema.get<bool>() ? any(pointer) : grammar_.nothing();
    check_keywords(schema, pointer);
    for (const char* keyword : {"$ref", "anyOf", "oneOf"}) {
      if (schema.contains(keyword)) return combined(schema, keyword, pointer);
    }
    if (schema.contains("const")) return listed(schema, Json::array({schema["const"]}), pointer);
    if (schema.contains("enum")) {
      if (!schema["enum"].is_array()) malformed(pointer + "/enum", "an enum is an array");
      return listed(schema, schema["enum"], pointer);
    }
    std::vector<NodeId> choices;
    const std::vector<std::string> allowed = types_of(schema, pointer);
    const auto allows                      = [&](const char* type) {
      return std::find(allowed.begin(), allowed.end(), type) != allowed.end();
    };
    if (allows("null")) choices.push_back(text_.constant(Json()));
    if (allows("boolean")) {
      choices.push_back(text_.constant(Json(true)));
      choices.push_back(text_.constant(Json(false)));
    }
    if (allows("number") || allows("integer")) {
      choices.push_back(number(schema, !allows("number"), pointer));
    }
    if (allows("string")) choices.push_back(string(schema, pointer));
    if (allows("array")) choices.push_back(array(schema, pointer));
    if (allows("object")) choices.push_back(object(schema, pointer));
    return grammar_.choice(std::move(choices));
  }

  NodeId any(const std::string& pointer) {
    if (!any_) {
      any_ = grammar_.reserve();
      grammar_.define(*any_, content(anything(), pointer));
    }
    return *any_;
  }
  static const Json& anything() {
    static const Json schema = Json::object();
    return schema;
  }
  static const Json& truth() {
    static const Json schema = true;
    return schema;
  }

  void check_keywords(const Json& schema, const std::string& pointer) const {
    if (!schema.is_object()) malformed(pointer, "a schema is an object or a boolean");
    for (const auto& [keyword, content] : schema.items()) {
      if (is_constraint_keyword(keyword) || is_annotation_keyword(keyword)) continue;
      throw Error(Errc::unsupported_keyword, pointer + '/' + escape_pointer(keyword),
                  "the keyword \"" + keyword + "\" is not supported");
    }
  }

  [[nodiscard]] std::vector<std::string> types_of(const Json& schema,
                                                  const std::string& pointer) const {
    if (!schema.contains("type")) return {types.begin(), types.end()};
    const Json& type = schema["type"];
    std::vector<std::string> result;
    for (const Json& name : type.is_array() ? type : Json::array({type})) {
      if (!name.is_string() || std::find(types.begin(), types.end(), name) == types.end()) {
        malformed(pointer + "/type", "no such type: " + name.dump());
      }
      result.push_back(name);
    }
    return result;
  }

  // $ref, anyOf and oneOf, each alone or beside a `type` that every branch must have as well.
  NodeId combined(const Json& schema, const std::string& keyword, const std::string& pointer) {
    for (const auto& [other, content] : schema.items()) {
      if (other == keyword || is_annotation_keyword(other)) continue;
      if (other == "type" && keyword != "$ref") continue;
      throw Error(Errc::unsupported_keyword, pointer + '/' + escape_pointer(other),
                  "the keyword \"" + other + "\" beside \"" + keyword + "\" is not supported");
    }
    if (keyword == "$ref") return reference(schema["$ref"], pointer + "/$ref");
    const Json& branches = schema[keyword];
    if (!branches.is_array() || branches.empty()) {
      malformed(pointer + '/' + keyword, "must be an array of schemas that is not empty");
    }
    std::vector<NodeId> choices;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const std::string place = pointer + '/' + keyword + '/' + std::to_string(i);
      const Json* branch      = &branches[i];
      if (schema.contains("type") && !branch->is_boolean()) {
        branch = &narrowed(branches[i], types_of(schema, pointer), place);
      } else if (schema.contains("type") && *branch == true) {
        branch = &kept(Json{{"type", schema["type"]}});
      }
      choices.push_back(compile(*branch, place));
    }
    if (keyword == "oneOf") {
      for (std::size_t i = 0; i < branches.size(); ++i) {
        for (std::size_t j = i + 1; j < branches.size(); ++j) {
          if (are_disjoint(resolved(branches[i], pointer), resolved(branches[j], pointer)))
            continue;
          throw Error(Errc::unsupported_keyword, pointer + "/oneOf",
                      "branches " + std::to_string(i) + " and " + std::to_string(j) +
                          " are not known to exclude each other");
        }
      }
    }
    return grammar_.choice(std::move(choices));
  }

  // A branch with its types cut down to those of the schema around it.
  const Json& narrowed(const Json& branch, const std::vector<std::string>& outer,
                       const std::string& pointer) {
    if (!branch.is_object()) malformed(pointer, "a schema is an object or a boolean");
    if (branch.contains("$ref") || branch.contains("anyOf") || branch.contains("oneOf")) {
      const Json& target = resolved(branch, pointer);
      for (const std::string& type : types_of(target, pointer)) {
        const bool has =
            std::find(outer.begin(), outer.end(), type) != outer.end() ||
            (type == "integer" && std::find(outer.begin(), outer.end(), "number") != outer.end());
        if (!has || !target.contains("type")) {
          throw Error(Errc::unsupported_keyword, pointer,
                      "a \"type\" around it cannot be combined");
        }
      }
      return branch;
    }
    Json result    = branch;
    result["type"] = Json::array();
    const auto has = [](const std::vector<std::string>& list, const char* type) {
      return std::find(list.begin(), list.end(), type) != list.end();
    };
    const auto inner = types_of(branch, pointer);
    for (const char* type : types) {
      const bool wide = std::string_view(type) == "integer";
      if ((has(inner, type) || (wide && has(inner, "number"))) &&
          (has(outer, type) || (wide && has(outer, "number")))) {
        result["type"].push_back(type);
      }
    }
    if (result["type"].empty()) return kept(false);
    return kept(std::move(result));
  }
  // Rewritten schemas live as long as the compiler: nodes are known by their schema's address.
  const Json& kept(Json schema) {
    made_.push_back(std::make_unique<const Json>(std::move(schema)));
    return *made_.back();
  }

  NodeId reference(const Json& target, const std::string& pointer) {
    const Json& schema = resolve(root_, target, pointer);
    return compile(schema, target.get<std::string>());
  }
  [[nodiscard]] const Json& resolved(const Json& schema, const std::string& pointer) const {
    const Json* at = &schema;
    for (std::uint32_t i = 0; at->is_object() && at->contains("$ref"); ++i) {
      if (i > most_nested) malformed(pointer, "references go round in a circle");
      at = &resolve(root_, (*at)["$ref"], pointer);
    }
    return *at;
  }

  NodeId listed(const Json& schema, const Json& values, const std::string& pointer) {
    std::vector<std::pair<std::string, NodeId>> texts;
    std::vector<NodeId> structures;
    for (const Json& value : values) {
      if (!admits(schema, value, pointer)) continue;
      if (value.is_structured()) {
        structures.push_back(text_.constant(value));
      } else {
        for (std::string& text : text_.spellings(value))
          texts.emplace_back(std::move(text), text_.end());
      }
    }
    if (!texts.empty()) structures.push_back(grammar_.trie(texts));
    return grammar_.choice(std::move(structures));
  }

  // Whether the siblings of an enum admit one of its values.
  [[nodiscard]] bool admits(const Json& schema, const Json& value,
                            const std::string& pointer) const {
    for (const auto& [keyword, content] : schema.items()) {
      if (keyword == "enum" || keyword == "const" || keyword == "type") continue;
      if (is_annotation_keyword(keyword) || !is_about(keyword, value)) continue;
      throw Error(Errc::unsupported_keyword, pointer + '/' + escape_pointer(keyword),
                  "the keyword \"" + keyword + "\" beside an enum or const is not supported");
    }
    if (schema.contains("const") && schema.contains("enum")) {
      const Json& list = schema["enum"];
      if (std::none_of(list.begin(), list.end(), [&](const Json& v) { return v == value; }))
        return false;
    }
    const auto allowed = types_of(schema, pointer);
    const auto has     = [&](const char* type) {
      return std::find(allowed.begin(), allowed.end(), type) != allowed.end();
    };
    switch (value.type()) {
      case Json::value_t::null:
        return has("null");
      case Json::value_t::boolean:
        return has("boolean");
      case Json::value_t::string:
        return has("string");
      case Json::value_t::array:
        return has("array");
      case Json::value_t::object:
        return has("object");
      default:
        return has("number") || (has("integer") && is_integral(value));
    }
  }

  NodeId number(const Json& schema, bool integer, const std::string& pointer) {
    NumberBounds bounds;
    const auto read = [&](const char* keyword,
                          bool exclusive) -> std::optional<NumberBounds::Bound> {
      if (!schema.contains(keyword)) return std::nullopt;
      if (!schema[keyword].is_number()) malformed(pointer + '/' + keyword, "a bound is a number");
      try {
        return NumberBounds::Bound{Decimal::parse(schema[keyword].dump()), exclusive};
      } catch (const Error& error) {
        throw Error(error.code(), pointer + '/' + keyword, error.what());
      }
    };
    const auto number_of = [&](const char* keyword) { return schema[keyword].get<double>(); };
    bounds.minimum       = read("minimum", false);
    bounds.maximum       = read("maximum", false);
    const auto low       = read("exclusiveMinimum", true);
    const auto high      = read("exclusiveMaximum", true);
    if (low && (!bounds.minimum || number_of("exclusiveMinimum") >= number_of("minimum"))) {
      bounds.minimum = low;
    }
    if (high && (!bounds.maximum || number_of("exclusiveMaximum") <= number_of("maximum"))) {
      bounds.maximum = high;
    }
    constexpr Occurrences units{0, max_open_digits};
    if (!bounds.minimum && !bounds.maximum) return grammar_.lexeme(any_number(integer), units);
    return grammar_.lexeme(std::make_shared<const Dfa>(number_lexeme(bounds, integer)), units);
  }

  [[nodiscard]] static Occurrences bounds_of(const Json& schema, const char* least,
                                             const char* most, const std::string& pointer) {
    const auto read = [&](const char* keyword, std::uint32_t otherwise) {
      if (!schema.contains(keyword)) return otherwise;
      const Json& bound = schema[keyword];
      if (!bound.is_number() || !is_integral(bound) || bound.get<double>() < 0) {
        malformed(pointer + '/' + keyword, "a length is a non-negative integer");
      }
      return static_cast<std::uint32_t>(
          std::min(bound.get<double>(), static_cast<double>(Occurrences::unbounded)));
    };
    return {read(least, 0), read(most, Occurrences::unbounded)};
  }

  NodeId string(const Json& schema, const std::string& pointer) {
    Occurrences length = bounds_of(schema, "minLength", "maxLength", pointer);
    std::optional<TextDfa> text;
    if (schema.contains("pattern")) {
      const std::string place = pointer + "/pattern";
      if (!schema["pattern"].is_string()) malformed(place, "a pattern is a string");
      try {
        text = compile_pattern(schema["pattern"].get<std::string>());
        if (!text->is_free_of_dead_ends(length)) {
          text   = text->bounded(length);
          length = {};
        }
      } catch (const Error& error) {
        throw Error(error.code(), place, error.what());
      }
    }
    return text_.string(text, length);
  }

  NodeId array(const Json& schema, const std::string& pointer) {
    const Occurrences length = bounds_of(schema, "minItems", "maxItems", pointer);
    const auto is_tuple      = [&](const char* keyword) {
      return schema.contains(keyword) && schema[keyword].is_array() && !schema[keyword].empty();
    };
    const char* tuple = is_tuple("prefixItems") ? "prefixItems"
                        : is_tuple("items")     ? "items"
                                                : nullptr;
    const char* rest_keyword =
        tuple && std::string_view(tuple) == "items" ? "additionalItems" : "items";
    const bool has_rest = schema.contains(rest_keyword) && !schema[rest_keyword].is_array();
    const Json& rest    = has_rest ? schema[rest_keyword] : truth();
    const NodeId open   = grammar_.sequence({grammar_.literal("["), text_.space()});
    const NodeId close  = grammar_.sequence({text_.space(), grammar_.literal("]")});
    const NodeId item   = compile(rest, pointer + '/' + rest_keyword);
    if (!tuple)
      return grammar_.sequence({open, grammar_.repeat(item, length, text_.comma()), close});
    // From the last place of the tuple to the first: what may follow once that item is written.
    const Json& places = schema[tuple];
    const auto count   = static_cast<std::uint32_t>(places.size());
    const auto left    = [&](std::uint32_t bound) {
      return bound == Occurrences::unbounded ? bound : bound > count ? bound - count : 0;
    };
    const Occurrences more{left(length.min), left(length.max)};
    NodeId tail = grammar_.repeat(grammar_.sequence({text_.comma(), item}), more, grammar_.empty());
    for (std::uint32_t i = count; i-- > 0;) {
      const NodeId place = compile(places[i], pointer + '/' + tuple + '/' + std::to_string(i));
      NodeId here =
          length.max <= i
              ? grammar_.nothing()
              : grammar_.sequence({i == 0 ? grammar_.empty() : text_.comma(), place, tail});
      if (length.min <= i) here = grammar_.optional(here);
      tail = here;
    }
    return grammar_.sequence({open, tail, close});
  }

  NodeId object(const Json& schema, const std::string& pointer) {
    return grammar_.sequence({grammar_.literal("{"), text_.space(),
                              members(schema, pointer, text_.colon(), Keys::quoted), text_.space(),
                              grammar_.literal("}")});
  }

  NodeId members(const Json& schema, const std::string& pointer, NodeId assign, Keys keys) {
    const Json none        = Json::object();
    const Json& properties = schema.contains("properties") ? schema["properties"] : none;
    const Json& extra =
        schema.contains("additionalProperties") ? schema["additionalProperties"] : truth();
    if (!properties.is_object()) malformed(pointer + "/properties", "must be an object of schemas");
    const std::vector<std::string> required = required_of(schema, pointer);
    const auto is_required                  = [&](const std::string& name) {
      return std::find(required.begin(), required.end(), name) != required.end();
    };
    KeyedSet set{.members          = {},
                 .separator        = text_.comma(),
                 .additional       = {},
                 .documented_order = options_.documented_order};
    const bool is_root = &schema == &root_;
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, NodeId content, bool needed) {
      const auto spellings = keys == Keys::plain ? std::vector{name} : text_.spellings(Json(name));
      const auto index     = static_cast<std::uint32_t>(names.size());
      if (is_root) content = grammar_.tagged(argument_tag + index, content);
      set.members.push_back({spellings, grammar_.sequence({assign, content}), needed});
      names.push_back(name);
    };
    for (const auto& [name, property] : properties.items()) {
      add(name, compile(property, pointer + "/properties/" + escape_pointer(name)),
          is_required(name));
    }
    const std::string extra_pointer = pointer + "/additionalProperties";
    for (const std::string& name : required) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        add(name, compile(extra, extra_pointer), true);
      }
    }
    if (extra != false) {
      const NodeId key = text_.other_key(names, keys == Keys::plain);
      set.additional   = grammar_.sequence({key, assign, compile(extra, extra_pointer)});
    }
    if (is_root) put_leading_first(set, names);
    return grammar_.keyed_set(set);
  }
  void put_leading_first(KeyedSet& set, std::vector<std::string>& names) const {
    for (const std::string& name : options_.leading_keys) {
      const auto from = static_cast<std::ptrdiff_t>(set.leading);
      const auto at   = std::find(names.begin() + from, names.end(), name);
      if (at == names.end()) throw Error(Errc::invalid_option, name, "no other property leads");
      const auto member = set.members.begin() + (at - names.begin());
      std::rotate(set.members.begin() + from, member, member + 1);
      std::rotate(names.begin() + from, at, at + 1);
      ++set.leading;
    }
  }

  Grammar& grammar_;
  const Json& root_;
  SchemaOptions options_;
  NodeId first_;  // the grammar's first node of this compiler
  SchemaText text_;
  std::uint32_t depth_ = 0;
  std::optional<NodeId> any_;
  std::map<const Json*, NodeId> nodes_;
  std::vector<std::unique_ptr<const Json>> made_;
};

}  // namespace tooldecode
