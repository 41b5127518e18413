/// \file
/// GrammarBuilder: turns the normal form of a schema into the grammar of its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/item_counts.hpp>
#include <tooldecode/schema/key_conditions.hpp>
#include <tooldecode/schema/numbers.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::schema {

/// Adds the values of forms to a Grammar; equal forms share a node.
///
/// \par Complexity  O(alternatives of the reachable forms), patterns as compile_pattern
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{unsupported_keyword, limit_exceeded} and those of Reader
class GrammarBuilder {
 public:
  struct Members {
    NodeId assign;                                          ///< between key and value
    bool plain            = false;                          ///< keys are unquoted identifiers
    bool documented_order = false;                          ///< only in the order of the schema
    std::unordered_map<std::string, std::uint32_t> tags{};  ///< of values, by the member's name
    std::optional<std::uint32_t> every_mark{};              ///< mark on every value, around the tag
    std::vector<std::string> leading_keys{};                ///< required; first, in this order
  };

  GrammarBuilder(Grammar& grammar, Reader& reader, Spellings& text, bool documented_order,
                 const text::NumberLimits& limits = {});

  /// The values of a form. A recursive form gets its node before its content.
  [[nodiscard]] NodeId value(FormId id);

  /// The values of a form; `written` applies to its outermost objects.
  [[nodiscard]] NodeId value(FormId id, const Members& written);

  /// The members of an object, without braces.
  [[nodiscard]] NodeId members(ObjectForm form, const Members& written);

 private:
  using Json = JsonValue;
  struct MadeNode {
    std::optional<NodeId> node;
  };
  static constexpr std::uint32_t max_nested = 250;

  NodeId end() { return text_.end(); }

  // The members of an object whose conditions a set keeps.
  NodeId member_set(ObjectForm form, const Members& written);

  NodeId content(const Form& form, const Members& written);

  template <class Key, class Make>
  static NodeId shared(std::map<Key, NodeId>& made, const Key& key, const Make& make) {
    const auto known = made.find(key);
    if (known != made.end()) return known->second;
    const NodeId node = make();
    made.emplace(key, node);
    return node;
  }
  NodeId sequence(std::vector<NodeId> parts);
  NodeId shared_set(const KeyedSet& set);

  void add_numbers(const std::vector<NumberForm>& forms,
                   std::vector<std::pair<std::string, NodeId>>& words,
                   std::vector<NodeId>& choices);
  NodeId number(const NumberForm& form);

  void add_texts(const std::vector<StringForm>& forms,
                 std::vector<std::pair<std::string, NodeId>>& words, std::vector<NodeId>& choices);
  NodeId string(const StringForm& form);

  // The keys of a class that no member has, if they are fewer than a minimum count may demand.
  std::optional<std::vector<std::string>> few_keys(const StringTests& tests, const ObjectForm& form,
                                                   bool plain);
  // The key lexemes of a class. Members' keys take precedence over them.
  const std::vector<text::DfaPointer>& keys(const StringTests& tests, bool plain);

  NodeId array_of(const ArrayForm& form);
  // The items of several alternative arrays: the first items form a trie, so that arrays with equal
  // beginnings share nodes.
  NodeId items_of(std::span<const ArrayForm> forms);
  NodeId one_of(std::vector<NodeId> choices);
  NodeId repeat(NodeId item, const text::Occurrences& count, NodeId separator);

  // The values of a form, for items that do not repeat.
  struct UniqueItems {
    bool is_open                = false;  // has values that are neither listed nor strings
    bool has_other_than_strings = false;
    std::map<std::string, std::vector<std::string>> listed{};  // spellings by value
    std::vector<StringForm> texts{};                           // strings that are not listed
  };
  static constexpr const char* not_remembered =
      "items that do not repeat have a grammar if all can be listed or all are strings";
  static constexpr std::size_t max_unique        = 1024;
  static constexpr std::uint32_t max_listed_keys = 1024;

  // Unique items: keys of a set without values, which remembers those that are not listed.
  NodeId unique_items(const ArrayForm& form);
  // The same where the first items have their own forms: a node for each set of written values.
  NodeId unique_prefix(const ArrayForm& form);
  UniqueItems listed(FormId id);
  std::vector<text::DfaPointer> unique_texts(const std::vector<StringForm>& forms,
                                             const text::Occurrences& count);

  Grammar& grammar_;
  Reader& reader_;
  Spellings& text_;
  text::NumberLimits limits_;
  Members inner_;
  std::uint32_t depth_ = 0;
  std::map<FormId, MadeNode> nodes_;
  std::map<std::vector<NodeId>, NodeId> made_sequences_, made_choices_;
  std::map<std::string, NodeId> made_literals_, made_numbers_, made_sets_;
  std::map<Numbers::Beginning, NodeId> made_rests_;
  std::map<std::tuple<NodeId, std::uint32_t, std::uint32_t, NodeId>, NodeId> made_repeats_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, StringTests, std::vector<std::string>>, NodeId>
      made_strings_;
  std::map<StringTests, std::vector<text::DfaPointer>> made_keys_[2];
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/grammar_builder.ipp>
#endif
