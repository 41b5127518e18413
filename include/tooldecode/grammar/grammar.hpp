/// \file
/// Grammar: a set of texts as a graph of nodes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/text/dfa_pointer.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/value_syntax.hpp>

namespace tooldecode {

class Vocabulary;

/// Options of Grammar::ebnf.
struct EbnfOptions {
  std::string_view root        = "root";   ///< the rule of whole texts
  const Vocabulary* vocabulary = nullptr;  ///< for `<token>`; null: no tokens
  BuildLimits limits{};
};

/// Options of Grammar::lark.
struct LarkOptions {
  const Vocabulary* vocabulary = nullptr;  ///< for `<token>`; null: no tokens
  std::uint32_t whitespace     = 40;       ///< of `%json`, see SchemaOptions
  bool every_spelling          = false;    ///< of `%json`, see SchemaOptions
  BuildLimits limits{};
};

/// Options of Grammar::structural_tag.
struct StructuralTagOptions {
  const Vocabulary* vocabulary = nullptr;  ///< for token formats; null: no tokens
  std::uint32_t whitespace     = 40;  ///< most bytes of optional white space in schema values and
                                      ///< between elements, if a tag sets no limit
  bool every_spelling = false;        ///< see SchemaOptions
  BuildLimits limits{};
};

class Constraint;
class JsonValue;
class ToolSet;
struct ChoiceOptions;
struct SchemaOptions;
namespace formats {
class AnyFormat;
}  // namespace formats
namespace text {
class TextDfa;
}  // namespace text

/// Index of a node in its Grammar.
using NodeId = core::Id<class Grammar>;

namespace grammar {
/// Number of a node in a NodeStore, where equal nodes of all grammars are one.
using StoredId = core::Id<class NodeStore>;
}  // namespace grammar

/// Members in any order: an object's properties, a call's keyword arguments.
///
/// A named member is written at most once, other members (`others`) any number of times; but while
/// a minimum count still demands members, no key of the others repeats, so that the minimum counts
/// distinct keys. The others' lexemes must then have that many texts, or none. A key that is
/// spelled like a named member is that member and never one of the others, even if no text matches
/// the member's value. The set has no text if the separator has none, or if every spelling of a
/// required member also belongs to an earlier member.
struct KeyedSet {
  struct Member {
    std::vector<std::string> spellings;  ///< the key as written, with quotes; at least one
    NodeId value{};                      ///< what follows the key: the colon and the value
    bool required = false;
  };
  /// Other members: those whose key a lexeme accepts.
  struct OtherKeys {
    text::DfaPointer key;  ///< with quotes
    NodeId value{};
    friend bool operator==(const OtherKeys&, const OtherKeys&) = default;
  };
  /// If the first member is present, the second must be too; by index.
  using Dependence = std::pair<std::uint32_t, std::uint32_t>;

  std::vector<Member> members;
  std::vector<OtherKeys> others;  ///< their lexemes must not overlap
  NodeId separator{};
  text::Occurrences count{};  ///< total number of members
  std::vector<Dependence> dependent{};
  /// Which members may be present together; by index. The conditions share no key. Not combined
  /// with `count`, `dependent` or the documented order.
  using Together = grammar::KeysTogether<std::uint32_t>;
  std::vector<Together> together{};
  bool documented_order = false;  ///< members in the listed order, others last; ignored if there
                                  ///< are both dependences and a minimum count
  bool distinct =
      false;  ///< no key of the others repeats; their lexemes must have as many texts as
              ///< `count` allows members. Not combined with the documented order
  std::size_t leading = 0;  ///< this many first members are required and come first, in order
  /// If set, keys are string literals of this syntax: every spelling of a member's key is that key,
  /// even with other escapes than `spellings` has. `spellings` are as StringEscape::quoted writes
  /// them, one per quote. The others' lexemes also accept every spelling.
  std::optional<text::ValueSyntax> strings{};
  bool every_spelling = false;  ///< allow all escapes in members' keys, even those that no writer
                                ///< uses; see KeyReader
};

namespace grammar {

/// See <tooldecode/grammar/node.hpp>.
template <class Id, class OtherKeys>
class BasicNode;

}  // namespace grammar

/// A set of texts, made from a schema, a pattern, a grammar's text, tools, or node by node. A
/// Constraint runs it over a vocabulary.
///
/// To build one by hand, call a function per node, which returns the node's index, and `set_root`
/// for the node of whole texts. Nodes refer to earlier ones, except through `reserve` and `define`,
/// which make recursion. The cost is proportional to what you write: a repetition is a counter, not
/// copies.
///
/// \par Complexity  O(size of the arguments) per node; for documents see their readers
/// \par Threads     build on one thread; const members may run concurrently
/// \par Errors      Error{limit_exceeded, cancelled}, see BuildLimits; see also `satisfiable`
class Grammar {
 public:
  /// Adds one part, such as a tool's arguments, to the grammar that it receives.
  using MakePart = std::function<NodeId(Grammar&)>;
  /// Returns the number, for `linked`, of a part that may have been compiled before.
  using PartSource = std::function<grammar::StoredId(std::uint32_t part, const MakePart& make)>;

  Grammar();
  Grammar(const Grammar&);
  Grammar(Grammar&&) noexcept;
  Grammar& operator=(const Grammar&);
  Grammar& operator=(Grammar&&) noexcept;
  ~Grammar();
  /// A grammar with about `count` parts that come from elsewhere, see ToolLibrary.
  explicit Grammar(PartSource parts, std::size_t count = 0);

  /// The values that conform to a JSON Schema. Pass the schema's text as a string to keep numbers
  /// exact at any size. Members come in any order, and white space may stand between values;
  /// `{.whitespace = 0}` allows only the spacing of Python's `json.dumps`.
  ///
  /// Errors: see SchemaCompiler; Error{malformed_json} with the byte. Defined in
  /// <tooldecode/schema/json_schema.hpp>.
  [[nodiscard]] static Grammar json_schema(const JsonValue& schema);
  [[nodiscard]] static Grammar json_schema(const JsonValue& schema, const SchemaOptions& options);
  /// The texts that an ECMA-262 pattern matches as a whole, as UTF-8. It is JSON Schema's `pattern`
  /// (see compile_pattern) without the search.
  ///
  /// Errors: Error{malformed_pattern, unsupported_pattern} with the byte;
  /// Error{unsatisfiable_schema} if no text matches.
  [[nodiscard]] static Grammar regex(std::string_view pattern, const BuildLimits& limits = {});
  /// The texts of a grammar in llama.cpp's GBNF or XGrammar's EBNF, see ebnf::parse_grammar.
  /// Defined in <tooldecode/grammars.hpp>.
  [[nodiscard]] static Grammar ebnf(std::string_view text, const EbnfOptions& options = {});
  /// The texts of a grammar in llguidance's Lark syntax, see ebnf::parse_lark. Defined in
  /// <tooldecode/grammars.hpp>.
  [[nodiscard]] static Grammar lark(std::string_view text, const LarkOptions& options = {});
  /// The texts of a structural tag, the JSON of vLLM and SGLang, see formats::build_structural_tag.
  /// Pass the tag's text as a string to keep numbers exact in its schemas. Defined in
  /// <tooldecode/grammars.hpp>.
  [[nodiscard]] static Grammar structural_tag(const JsonValue& tag,
                                              const StructuralTagOptions& options = {});
  /// Exactly one of the texts, such as labels, commands or names; any bytes but FE and
  /// FF, which are those of control tokens.
  ///
  /// Errors: Error{invalid_option} if there are none, or with the place of one that has these bytes.
  [[nodiscard]] static Grammar choice(const std::vector<std::string>& texts);
  [[nodiscard]] static Grammar choice(std::initializer_list<const char*> texts);
  /// Whole answers with tool calls, see build_call_grammar; a ToolCallFSM also reports where a text
  /// is and parses the calls. Defined in <tooldecode/formats/enforceable_tools.hpp>.
  [[nodiscard]] static Grammar tool_calls(const ToolSet& tools, const formats::AnyFormat& format,
                                          const ChoiceOptions& options);

  /// Removes all nodes and keeps their memory, for the next of many grammars.
  void clear() noexcept;

  /// The node of whole texts.
  ///
  /// Errors: Error{invalid_option} if `set_root` was not called.
  [[nodiscard]] NodeId root() const;
  void set_root(NodeId root) noexcept { root_ = root; }
  [[nodiscard]] Grammar rooted(NodeId root) const& { return Grammar(*this).rooted(root); }
  [[nodiscard]] Grammar rooted(NodeId root) && {
    set_root(root);
    return std::move(*this);
  }

  using Node = grammar::BasicNode<NodeId, KeyedSet::OtherKeys>;

  /// No text: a choice drops it; a sequence that contains it matches nothing.
  [[nodiscard]] NodeId nothing();
  [[nodiscard]] NodeId empty();
  [[nodiscard]] NodeId literal(std::string_view bytes);
  [[nodiscard]] NodeId sequence(std::vector<NodeId> parts);
  [[nodiscard]] NodeId choice(std::vector<NodeId> alternatives);
  [[nodiscard]] NodeId optional(NodeId node) { return choice({node, empty()}); }
  /// Items, each not empty, with `separator` between them.
  [[nodiscard]] NodeId repeat(NodeId item, text::Occurrences count, NodeId separator);
  /// A lexeme with bounds on its counted units (characters of a string), see Dfa.
  [[nodiscard]] NodeId lexeme(text::DfaPointer dfa, text::Occurrences units = {});
  /// The texts of some length that an automaton accepts, as `spell` writes them. The length is
  /// counted beside the automaton's states; if DfaUnits does not know them all, in a product.
  [[nodiscard]] NodeId lexeme(const text::TextDfa& text, const text::Occurrences& length,
                              const std::function<text::DfaPointer(const text::TextDfa&)>& spell);
  /// One of many literals (names, enum values), each with its own next node. A repeated literal
  /// keeps its first one.
  [[nodiscard]] NodeId trie(const std::vector<std::pair<std::string, NodeId>>& alternatives);
  [[nodiscard]] NodeId keyed_set(const KeyedSet& set);
  /// A child with a mark: `Automaton::tags` lists it while a text is inside the child.
  [[nodiscard]] NodeId tagged(std::uint32_t tag, NodeId node);
  /// The node that this grammar's automaton has under a number, see Automaton::compile.
  [[nodiscard]] NodeId linked(grammar::StoredId number);
  /// The node that `make` made when it was first called for this name: separators and the like,
  /// which many parts contain. It must match some text. Schemas use "" and names with a number.
  template <std::invocable Make>
  [[nodiscard]] NodeId once(std::string_view name, const Make& make) {
    for (const auto& [known, node] : once_) {
      if (known == name) return node;
    }
    const NodeId made = make();
    once_.emplace_back(name, made);
    return made;
  }
  /// A part, tagged with its number; comes from the grammar's source of parts if there is one.
  template <std::invocable<Grammar&> Make>
  [[nodiscard]] NodeId part(std::uint32_t number, const Make& make) {
    return parts_ ? linked(parts_(number + first_part_, std::cref(make)))
                  : tagged(number, make(*this));
  }
  /// What the source of parts adds to their numbers from here on: several formats share a source.
  void number_parts_from(std::uint32_t first) noexcept { first_part_ = first; }
  /// A node that `define` defines later; matches nothing until then.
  [[nodiscard]] NodeId reserve();
  void define(NodeId reserved, NodeId body);

  /// Copies all nodes of another grammar, which must have no part source; returns the
  /// copy of its root, or of `node`.
  [[nodiscard]] NodeId append(const Grammar& other) { return append(other, other.root()); }
  [[nodiscard]] NodeId append(const Grammar& other, NodeId node);
  /// \param lexeme  maps each lexeme of the other grammar, including those of keys; keeps the units
  ///                to their ends
  [[nodiscard]] NodeId append(
      const Grammar& other, NodeId node,
      const std::function<text::DfaPointer(const text::DfaPointer&)>& lexeme);

  [[nodiscard]] const Node& operator[](NodeId id) const;
  [[nodiscard]] std::size_t size() const noexcept;

  /// For each node from `first` on, whether any text matches it; earlier ones are assumed to match.
  /// O(nodes x depth of mutual recursion).
  [[nodiscard]] std::vector<char> satisfiable(NodeId first = {}) const;
  /// The same of one node, which may also be an earlier one.
  [[nodiscard]] bool is_satisfiable(NodeId node, NodeId first) const;
  /// Whether any text matches a node. O(nodes below it x depth of mutual recursion).
  [[nodiscard]] bool is_satisfiable(NodeId node) const;

 private:
  friend class Constraint;

  static constexpr NodeId none{~std::uint32_t{0}};
  // Limits that also apply to compiling this grammar, and the place in its error messages.
  struct Origin {
    BuildLimits limits;
    const char* place = "";

    // What `make` builds within the limits. Its errors get the place, or their line in `text`.
    template <class Make>
    auto build(const Make& make, std::optional<std::string_view> text = {}) const {
      const BuildBudget budget(limits);
      try {
        return make();
      } catch (const Error& error) {
        throw text ? error.at_line(*text) : error.under(place);
      }
    }
  };

  // The grammar that `make` builds; it keeps its origin.
  template <class Make>
  static Grammar build(const Origin& origin, const Make& make,
                       std::optional<std::string_view> text = {}) {
    Grammar grammar = origin.build(make, text);
    grammar.origin_ = origin;
    return grammar;
  }

  NodeId add(Node node);

  std::vector<Node> nodes_;
  std::vector<std::pair<std::string, NodeId>> once_;
  NodeId root_ = none;
  PartSource parts_;
  std::uint32_t first_part_ = 0;
  std::optional<Origin> origin_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/grammar.ipp>
#endif
