/// \file
/// KeyedElements: members written as elements, each between its own delimiters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/dfa.hpp>
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

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/keyed_elements.ipp>
#endif
