/// \file
/// Grammar: what texts are allowed, as a graph of nodes that later layers build and never change.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/grammar/grammar_options.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/text/dfa_pointer.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/value_syntax.hpp>

namespace tooldecode {

class Constraint;
class JsonValue;
class ToolSet;
struct ChoiceOptions;
struct SchemaOptions;
namespace tools {
class AnyFormat;
}  // namespace tools

/// Index of a node in its Grammar.
using NodeId = core::Id<class Grammar>;

namespace grammar {
/// Number of a node in a NodeStore, where equal nodes of all grammars are one.
using StoredId = core::Id<class NodeStore>;
}  // namespace grammar

/// Members in any order: an object's properties, a call's keyword arguments.
///
/// A member is written at most once, further members (`others`) again and again; but where a least
/// count asks for further members yet, one of the others is not repeated, so that the count is of
/// different keys. Then the lexemes of others have at least so many texts, or none. A key that is
/// spelled as a member's is that member and never one of the others, also where no text matches the
/// member's value. No text matches where the
/// separator cannot be matched, or where each spelling of a required member is an earlier member's
/// too.
struct KeyedSet {
  struct Member {
    std::vector<std::string> spellings;  ///< the key as written, quotes included; one or more
    NodeId value{};                      ///< what follows the key: the colon and the value
    bool required = false;
  };
  /// Further members: those whose key a lexeme accepts.
  struct Others {
    text::DfaPointer key;  ///< quotes included
    NodeId value{};        ///< what follows the key
    friend bool operator==(const Others&, const Others&) = default;
  };
  /// Where one member is, another must be as well; by index.
  using Dependence = std::pair<std::uint32_t, std::uint32_t>;

  std::vector<Member> members;
  std::vector<Others> others;  ///< lexemes that exclude each other
  NodeId separator{};          ///< between two members
  text::Occurrences count{};   ///< of members, in all
  std::vector<Dependence> dependent{};
  /// Which members may be there together, of those with no key in common; by index. With neither
  /// `count` nor `dependent`, and not in the documented order.
  using Together = grammar::KeysTogether<std::uint32_t>;
  std::vector<Together> together{};
  bool documented_order = false;  ///< members only in the order listed, others last; not kept
                                  ///< beside dependences and a least count
  std::size_t leading = 0;        ///< the first so many are required, and written first, in order
  /// Where keys are string literals of this syntax, every spelling of a member's key is that key,
  /// also where it is escaped otherwise than `spellings` has it, which are as StringEscape::quoted
  /// writes them, one for each quote. The lexemes of others have every spelling too.
  std::optional<text::ValueSyntax> strings{};
  bool every_spelling = false;  ///< of members' keys, also such as no writer has; see KeyReader
};

/// What texts are allowed: made of a schema, an expression, a grammar's text or tools, or node by
/// node. A Constraint runs it over a vocabulary.
///
/// A grammar made by hand adds a node by each function and gets its index; `set_root` says which of
/// them whole texts match. Nodes refer to earlier ones, except through `reserve` and `define`, which
/// make recursion. Cost is proportional to what is written: a repetition is a counter, never a copy.
///
/// \par Complexity  O(size of the arguments) per node; from documents as their readers say
/// \par Threads     build on one thread; const members may run concurrently
/// \par Errors      Error{limit_exceeded, cancelled}, see BuildLimits; and see `satisfiable`
class Grammar {
 public:
  enum class Kind : std::uint8_t {
    nothing,    ///< no text
    empty,      ///< the empty text
    literal,    ///< these bytes
    sequence,   ///< children one after the other
    choice,     ///< one of the children
    repeat,     ///< a child, again and again, with a separator
    lexeme,     ///< what a Dfa accepts
    trie,       ///< one of many literals, each with its own continuation
    keyed_set,  ///< see KeyedSet
    reference,  ///< what another node, perhaps a later one, accepts
    tag,        ///< a child, with a mark that `Automaton::tags` finds
    linked,     ///< what an Automaton has compiled before
  };

  /// Adds one part of a grammar, a tool's arguments say, to the grammar that it is given.
  using MakePart = std::function<NodeId(Grammar&)>;
  /// Gives the number, for `linked`, of a part that may have been compiled before.
  using PartSource = std::function<grammar::StoredId(std::uint32_t part, const MakePart& make)>;

  Grammar() = default;
  /// A grammar whose parts, about so many, come from elsewhere, see ToolLibrary.
  explicit Grammar(PartSource parts, std::size_t count = 0);

  /// The values that conform to a JSON Schema; a string is a schema's text, whose numbers are exact
  /// whatever their size. Members come in any order and there may be white space between values;
  /// `{.whitespace = 0}` admits what Python's `json.dumps` writes and no other spacing.
  ///
  /// Errors: see SchemaCompiler; Error{malformed_json} with the byte. Of
  /// <tooldecode/schema/json_schema.hpp>.
  [[nodiscard]] static Grammar json_schema(const JsonValue& schema);
  [[nodiscard]] static Grammar json_schema(const JsonValue& schema, const SchemaOptions& options);
  /// The texts that an ECMA-262 pattern matches from their first character to their last, as UTF-8:
  /// JSON Schema's `pattern`, see compile_pattern, but that it does not search.
  ///
  /// Errors: Error{malformed_pattern, unsupported_pattern} with the byte;
  /// Error{unsatisfiable_schema} where no text matches.
  [[nodiscard]] static Grammar regex(std::string_view pattern, const BuildLimits& limits = {});
  /// The texts of a grammar in llama.cpp's GBNF or XGrammar's EBNF, see ebnf::parse_grammar. Of
  /// <tooldecode/ebnf/grammar_text.hpp>.
  [[nodiscard]] static Grammar ebnf(std::string_view text, const EbnfOptions& options = {});
  /// The texts of a grammar in Lark's syntax as llguidance reads it, see ebnf::parse_lark. Of
  /// <tooldecode/ebnf/lark_grammar.hpp>.
  [[nodiscard]] static Grammar lark(std::string_view text, const LarkOptions& options = {});
  /// The texts of a structural tag, the JSON that vLLM and SGLang take, see
  /// tools::build_structural_tag; a string is a tag's text, whose schemas have exact numbers. Of
  /// <tooldecode/tools/structural_tag.hpp>.
  [[nodiscard]] static Grammar structural_tag(const JsonValue& tag,
                                              const StructuralTagOptions& options = {});
  /// Exactly one of the texts, which are any bytes: labels, commands, names.
  ///
  /// Errors: Error{invalid_option} where there are none.
  [[nodiscard]] static Grammar choice(const std::vector<std::string>& texts);
  [[nodiscard]] static Grammar choice(std::initializer_list<const char*> texts);
  /// Whole answers with calls of tools, see build_call_grammar; a ToolCallFSM also tells where a
  /// text stands and reads the calls. Of <tooldecode/tools/call_format.hpp>.
  [[nodiscard]] static Grammar tool_calls(const ToolSet& tools, const tools::AnyFormat& format,
                                          const ChoiceOptions& options);

  /// What whole texts match.
  ///
  /// Errors: Error{invalid_option} where `set_root` was not called.
  [[nodiscard]] NodeId root() const;
  void set_root(NodeId root) noexcept { root_ = root; }
  /// The same grammar with another root.
  [[nodiscard]] Grammar rooted(NodeId root) const& { return Grammar(*this).rooted(root); }
  [[nodiscard]] Grammar rooted(NodeId root) && {
    set_root(root);
    return std::move(*this);
  }

  /// Literals as a byte trie; its values are indices of children.
  using Literals = std::shared_ptr<const core::ByteTrie>;

  struct Node {
    Kind kind = Kind::nothing;
    std::vector<NodeId> children{};          ///< trie: one per literal; keyed_set: one per member
    std::string text{};                      ///< literal
    text::DfaPointer dfa{};                  ///< lexeme
    text::Occurrences occurrences{};         ///< repeat: items; lexeme: units; keyed_set: members
    Literals literals{};                     ///< trie and keyed_set
    NodeId separator{};                      ///< repeat and keyed_set
    std::uint32_t tag = 0;                   ///< tag; linked: the number
    std::vector<std::uint64_t> required{};   ///< keyed_set: bit set of the members
    std::vector<KeyedSet::Others> others{};  ///< keyed_set
    std::vector<KeyedSet::Dependence> dependent{};  ///< keyed_set
    std::vector<KeyedSet::Together> together{};     ///< keyed_set
    std::uint32_t leading = 0;                      ///< keyed_set
    bool documented_order = false;                  ///< keyed_set
    std::optional<text::ValueSyntax> strings{};     ///< keyed_set
    bool every_spelling = false;                    ///< keyed_set
  };

  /// No text at all: a choice drops it, a sequence with it accepts nothing.
  [[nodiscard]] NodeId nothing() { return add({}); }
  [[nodiscard]] NodeId empty() { return add({.kind = Kind::empty}); }
  [[nodiscard]] NodeId literal(std::string_view bytes);
  [[nodiscard]] NodeId sequence(std::vector<NodeId> parts);
  [[nodiscard]] NodeId choice(std::vector<NodeId> alternatives);
  [[nodiscard]] NodeId optional(NodeId node) { return choice({node, empty()}); }
  /// Items that are not empty texts, `separator` between each two.
  [[nodiscard]] NodeId repeat(NodeId item, text::Occurrences occurrences, NodeId separator);
  /// A lexeme, with bounds on its counted units (characters of a string), see Dfa.
  [[nodiscard]] NodeId lexeme(text::DfaPointer dfa, text::Occurrences units = {});
  /// One of many literals (names, enum values), each followed by its own node; literals are
  /// distinct, a repeated one keeps its first continuation.
  [[nodiscard]] NodeId trie(const std::vector<std::pair<std::string, NodeId>>& alternatives);
  [[nodiscard]] NodeId keyed_set(const KeyedSet& set);
  /// A child with a mark; while a text is inside the child, `Automaton::tags` lists the mark.
  [[nodiscard]] NodeId tagged(std::uint32_t tag, NodeId node);
  /// What the automaton that this grammar is for has under this number, see Automaton::compile.
  [[nodiscard]] NodeId linked(grammar::StoredId number);
  /// A part under its number as a tag, from the grammar's source of parts if it has one.
  template <std::invocable<Grammar&> Make>
  [[nodiscard]] NodeId part(std::uint32_t number, const Make& make) {
    return parts_ ? linked(parts_(number, std::cref(make))) : tagged(number, make(*this));
  }
  /// A node to be given its meaning later by `define`; accepts nothing until then.
  [[nodiscard]] NodeId reserve() { return add({.kind = Kind::reference}); }
  void define(NodeId reserved, NodeId body);

  /// Takes in all nodes of another grammar, which has no parts of its own, and gives the node here
  /// that its root, or one of them, has become.
  [[nodiscard]] NodeId append(const Grammar& other) { return append(other, other.root()); }
  [[nodiscard]] NodeId append(const Grammar& other, NodeId node);
  /// \param lexeme  what a lexeme of the other grammar, also one of keys, becomes
  template <class Lexeme>
  [[nodiscard]] NodeId append(const Grammar& other, NodeId node, const Lexeme& lexeme) {
    const auto first = static_cast<std::uint32_t>(nodes_.size());
    const auto moved = [&](NodeId id) { return NodeId(first + id.number()); };
    nodes_.reserve(nodes_.size() + other.nodes_.size());
    for (Node copy : other.nodes_) {
      for (NodeId& child : copy.children) child = moved(child);
      for (KeyedSet::Others& one : copy.others) one = {lexeme(one.key), moved(one.value)};
      if (copy.dfa) copy.dfa = lexeme(copy.dfa);
      copy.separator = moved(copy.separator);
      (void)add(std::move(copy));
    }
    return moved(node);
  }

  /// Leaves out the members that depend on members that are left out, themselves or by others.
  static void remove_dependent(const std::vector<KeyedSet::Dependence>& dependent,
                               std::vector<char>& live);

  /// Whether a keyed set has a text, where these of its members can be written, and others or not.
  ///
  /// Where members depend on others and a closed set needs a number of them, only taking all
  /// members is tried: a set of which some, but not all, would do counts as impossible.
  [[nodiscard]] static bool is_completable(const Node& set, std::vector<char> live, bool open);

  [[nodiscard]] const Node& operator[](NodeId id) const { return nodes_[id.index()]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

  /// For each node, whether any text at all matches it; nodes before `first` are taken to be
  /// matched. O(nodes x depth of mutual recursion).
  [[nodiscard]] std::vector<char> satisfiable(NodeId first = {}) const;

 private:
  friend class Constraint;

  static constexpr NodeId none{~std::uint32_t{0}};
  // What compiling it is charged to as well, and what its errors are under.
  struct Origin {
    BuildLimits limits;
    const char* place = "";
  };

  NodeId add(Node node);

  // A child whose every literal is an earlier one's cannot be reached.
  void set_literals(Node& node, std::vector<core::ByteTrie::Entry> entries);

  // Marks whatever follows from what is marked.
  static void spread(std::vector<KeyedSet::Dependence> dependent, std::vector<char>& marked);

  static bool satisfiable(const Node& node, const std::vector<char>& live);

  // Whether the members that a set needs can be written, and as many as it needs.
  template <class IsLive>
  static bool is_completable(const Node& node, const IsLive& is_live);

  std::vector<Node> nodes_;
  NodeId root_ = none;
  PartSource parts_;
  std::optional<Origin> origin_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/grammar.ipp>
#endif
