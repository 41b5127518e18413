/// \file
/// A tool's arguments one by one, for formats that do not write them as one object.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/plain_text.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

/// An argument's schema and where it stands; of one that is not documented, that of any other.
struct ArgumentSchema {
  const JsonValue* schema;
  std::string pointer;
};

/// \par Complexity  O(arguments)
/// \par Threads     pure; refers to the tool
[[nodiscard]] ArgumentSchema argument_schema(const Tool& tool, const std::string& key);

/// The same where strings go without quotes. Of a tool that is not strict: any string, or null, where
/// the document has no more than that, since a text does not tell by itself what it is; else as
/// above.
///
/// \par Complexity  O(arguments), and where the tool is not strict, as Reader
[[nodiscard]] ArgumentSchema plain_argument_schema(const Tool& tool, const std::string& key);

/// Whether a keyword of an object speaks of single properties, or of no object.
[[nodiscard]] bool says_nothing_of_all(std::string_view keyword);

/// Whether a tool's parameters are listed as properties, and nothing says more of them.
[[nodiscard]] bool are_listed(const Tool& tool);

/// How the values of an argument are written where strings go without quotes: one way for a key,
/// whichever other arguments a call has. Nothing where Reader refuses the parameters.
///
/// \par Complexity  as Reader, of the argument's schema where arguments are listed, else of all
[[nodiscard]] std::optional<PlainForm> find_argument_form(const Tool& tool, const std::string& key);

/// The objects that a tool's parameters describe, of which a call's arguments are one: combinations
/// and conditions become alternatives.
///
/// \par Complexity  as Reader, and O(objects x keys), see BuildBudget
/// \par Threads     one at a time; refers to the reader
/// \par Errors      as Reader
class ListedArguments {
 public:
  /// \param reader  of the tool's parameters
  ListedArguments(const Tool& tool, schema::Reader& reader);

  /// Each has the documented keys first, in their order, and as a member each key that any of them
  /// has, unless it may have no such key.
  [[nodiscard]] const std::vector<schema::ObjectForm>& objects() const noexcept { return objects_; }
  /// How an argument is written where strings go without quotes, see find_argument_form.
  [[nodiscard]] PlainForm plain_form(const std::string& key) const;
  /// The same of the keys of a class of an object's.
  ///
  /// \par Errors      Error{unsupported_keyword} where some of them are written in another way
  [[nodiscard]] PlainForm plain_form(const schema::ObjectForm::OtherKeys& others) const;
  /// The form of a member's values where strings go without quotes, see plain_argument_schema.
  [[nodiscard]] schema::FormId plain_value(const std::string& key, schema::FormId value) const;
  /// Where an argument's schema stands, as far as there is one place.
  [[nodiscard]] std::string pointer(const std::string& key, schema::FormId value) const;
  /// The error of parameters that no list of arguments meets.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  // What the values of a key are.
  struct Kinds {
    bool text = false, null = false, other = false;
    void add(const schema::Form& form) noexcept;
    [[nodiscard]] PlainForm plain_form() const noexcept;
  };

  // Where the keyword stands that speaks of keys by their texts.
  [[nodiscard]] std::string pointer_to_patterns() const;
  void list_members(schema::ObjectForm& object, const std::vector<std::string>& names);

  const Tool& tool_;
  schema::Reader& reader_;
  std::vector<schema::ObjectForm> objects_;
  std::unordered_map<std::string, Kinds> kinds_;  // of the members
};

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/listed_arguments.ipp>
#endif
