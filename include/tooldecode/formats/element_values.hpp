/// \file
/// ElementValues: the objects of a schema as elements, in a model family's style.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_types.hpp>
#include <tooldecode/formats/plain_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::formats {

/// Adds members to a KeyedSet whose keys stand between two delimiters, in every spelling of the
/// delimiters.
///
/// \par Complexity  O(spellings of the delimiters x bytes of the key) per member
/// \par Threads     one at a time
class KeyedElements {
 public:
  /// \param set  receives the members
  KeyedElements(KeyedSet& set, std::string_view before_key, std::string_view after_key);

  /// \param value  what follows the end of the key
  void add(const std::string& key, NodeId value, bool required);
  /// Adds members with any other key that is an identifier.
  void add_others(NodeId value);
  /// Adds members with any other key that an automaton accepts.
  void add_others(NodeId value, const text::TextDfa& keys);

 private:
  KeyedSet& set_;
  std::vector<std::string> before_, after_;
};

/// Throws Error{unsupported_keyword} for keys without names in a style that repeats them.
[[noreturn]] void refuse_unlisted_keys(const std::string& place);

/// Adds the objects of a schema to a Grammar, one element per property.
///
/// Strings are written as they are, up to the closing delimiter; other values are JSON. Where a
/// value may be either, both spellings are allowed; in a style whose values only the document tells
/// apart, a string is none that reads as another value there, and no list or object is empty where
/// a string or, for objects, a list may stand. In styles that nest, lists and objects are elements
/// again. A key that the schema does not name is an identifier; in a style with entities it may be
/// any text if no pattern decides it; in a style that repeats the key after the value there are no
/// such keys.
///
/// \par Complexity  as SchemaCompiler
/// \par Threads     one at a time per Grammar
/// \par Errors      those of Reader and GrammarBuilder; Error{unsupported_keyword} for a schema
///                  that has no object and for values that the style cannot tell apart;
///                  Error{unsupported_name}; Error{unsatisfiable_schema}
/// \par Source      see element_styles
class ElementValues {
 public:
  using Json = JsonValue;

  /// \param schema  the document that references point into; it outlives this
  ElementValues(Grammar& grammar, const Json& schema, const ElementStyle& style,
                const SchemaOptions& options);

  /// The elements of a conforming object.
  [[nodiscard]] NodeId objects();

  /// What follows a key up to the end of its element, for a schema in the document.
  [[nodiscard]] NodeId value(const Json& schema, const std::string& pointer);
  /// The same for a form of `reader()`.
  ///
  /// \param types  all values that may stand in its place, for styles by document
  [[nodiscard]] NodeId value(schema::FormId id, const ElementTypes& types = {}) {
    return content(id, types);
  }
  /// The reader of the document.
  [[nodiscard]] schema::Reader& reader() noexcept { return reader_; }

 private:
  [[nodiscard]] NodeId elements(const std::vector<schema::ObjectForm>& objects,
                                const std::string& place, const ElementTypes& types);
  [[nodiscard]] NodeId element_set(const schema::ObjectForm& object, const std::string& place,
                                   const ElementTypes& types);
  void add_others(KeyedSet& set, KeyedElements& elements, const schema::ObjectForm& object,
                  const std::string& place);
  [[nodiscard]] std::string key(const std::string& name, const std::string& place) const;
  [[nodiscard]] NodeId content(schema::FormId id, const ElementTypes& types);
  [[nodiscard]] NodeId make_content(schema::FormId id, const ElementTypes& types);
  [[nodiscard]] NodeId text(const schema::Form& form, const std::string& place);
  // The place of a part of a value; without a document in styles that do not need it.
  template <class Part>
  [[nodiscard]] ElementTypes types_of(const Part& part) const {
    return style_.by_document ? part() : ElementTypes();
  }
  // The strings of a place that do not read as another value.
  [[nodiscard]] std::vector<schema::StringForm> told(std::vector<schema::StringForm> texts,
                                                     const ElementTypes& types);
  // The same lists or objects, but not empty ones.
  template <class Form>
  [[nodiscard]] static std::vector<Form> filled(std::vector<Form> forms);
  [[nodiscard]] NodeId json(schema::Form form, const std::string& place);
  [[nodiscard]] NodeId lists(const std::vector<schema::ArrayForm>& arrays, const std::string& place,
                             const ElementTypes& types);
  [[nodiscard]] NodeId items(const schema::ArrayForm& array, const std::string& place,
                             const ElementTypes& types);
  [[nodiscard]] NodeId item(schema::FormId id, const ElementTypes& types);
  [[nodiscard]] NodeId separator();
  [[nodiscard]] NodeId padded(NodeId node);

  Grammar& grammar_;
  const Json& schema_;
  const ElementStyle& style_;
  bool documented_order_;
  NodeId first_;  // of the grammar's nodes that this object makes
  schema::Reader reader_;
  schema::Spellings spellings_;
  schema::GrammarBuilder json_;
  PlainText plain_;
  std::size_t depth_ = 0;
  // By form and the forms of its place; empty while one is being made.
  std::map<std::pair<schema::FormId, std::vector<schema::FormId>>, std::optional<NodeId>> contents_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/element_values.ipp>
#endif
