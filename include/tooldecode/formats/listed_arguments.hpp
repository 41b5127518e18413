/// \file
/// A tool's arguments one by one, for formats that do not write them as one JSON object.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/plain_text.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::formats {

/// An argument's schema and its place. For an undocumented argument it is that of
/// `additionalProperties`.
struct ArgumentSchema {
  const JsonValue* schema;
  std::string pointer;
};

/// Finds the schema of an argument.
///
/// \par Complexity  O(arguments)
/// \par Threads     pure; refers to the tool
[[nodiscard]] ArgumentSchema argument_schema(const Tool& tool, const std::string& key);

/// Finds the schema of an argument where strings have no quotes.
///
/// For a tool that is not strict: any string (or null) where the document admits nothing else,
/// because the text alone does not show its type. Otherwise as argument_schema.
///
/// \par Complexity  O(arguments), and where the tool is not strict, as Reader
[[nodiscard]] ArgumentSchema plain_argument_schema(const Tool& tool, const std::string& key);

/// True where a keyword of an object is about single properties, or not about objects.
[[nodiscard]] bool says_nothing_of_all(std::string_view keyword);

/// True where a tool's parameters are only a list of properties.
[[nodiscard]] bool are_listed(const Tool& tool);

/// How the values of an argument are written where strings have no quotes.
///
/// A key is always written in the same way, whichever other arguments a call has. Empty where
/// Reader refuses the parameters.
///
/// \par Complexity  as Reader: for listed arguments of the argument's schema, else of all
[[nodiscard]] std::optional<PlainForm> find_argument_form(const Tool& tool, const std::string& key);

/// The alternatives for a call's arguments, as objects: combinations and conditions of the tool's
/// parameters become alternatives.
///
/// \par Complexity  as Reader, and O(objects x keys), see BuildBudget
/// \par Threads     one at a time; refers to the reader
/// \par Errors      as Reader
class ListedArguments {
 public:
  /// \param reader  reads the tool's parameters
  ListedArguments(const Tool& tool, schema::Reader& reader);

  /// The alternatives. Each lists documented keys first, in document order, then every key that any
  /// of them has; keys that the alternative excludes are left out.
  [[nodiscard]] const std::vector<schema::ObjectForm>& objects() const noexcept { return objects_; }
  /// How an argument is written where strings have no quotes, see find_argument_form.
  [[nodiscard]] PlainForm plain_form(const std::string& key) const;
  /// The same for the keys of one class of undocumented keys.
  ///
  /// \par Errors      Error{unsupported_keyword} where some of them are written differently
  [[nodiscard]] PlainForm plain_form(const schema::ObjectForm::OtherKeys& others) const;
  /// The form of a member's values where strings have no quotes, see plain_argument_schema.
  [[nodiscard]] schema::FormId plain_value(const std::string& key, schema::FormId value) const;
  /// The forms of an argument's values in all alternatives, see plain_value.
  [[nodiscard]] std::vector<schema::FormId> plain_values(const std::string& key) const;
  /// The place of an argument's schema, or of the parameters where there is no single place.
  [[nodiscard]] std::string pointer(const std::string& key, schema::FormId value) const;
  /// The place of the keyword that keys without names come from.
  [[nodiscard]] std::string pointer_to_others() const;
  /// Throws Error{unsatisfiable_schema} at the tool's parameters.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  // Which kinds of values a key has.
  struct Kinds {
    bool text = false, null = false, other = false;
    void add(const schema::Form& form) noexcept;
    [[nodiscard]] PlainForm plain_form() const noexcept;
  };

  void list_members(schema::ObjectForm& object, const std::vector<std::string>& names);

  const Tool& tool_;
  schema::Reader& reader_;
  std::vector<schema::ObjectForm> objects_;
  std::unordered_map<std::string, Kinds> kinds_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/listed_arguments.ipp>
#endif
