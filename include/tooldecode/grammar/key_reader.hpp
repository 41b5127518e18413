/// \file
/// KeyReader: what a byte does to a key of a keyed set, whichever way the key is spelt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/grammar/members_seen.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// Reads the keys of keyed sets. A place in a key is a number: a node of the trie of the members'
/// keys; or a pooled one, for a place inside an escape and for a key of others whose text matters.
///
/// Escapes are read, not listed: a complete one leads where its character leads, so that a key is
/// known in any spelling while the trie has it once. No place is a dead end. What no writer
/// escapes, the letters of a name, may be escaped in a member's key only where the set says so:
/// else a model is asked at each letter whether it escapes the next one, and no key is ever forced.
///
/// \par Complexity  O(others) per byte; inside escapes and tracked keys times the characters of the
///                  members' and the remembered keys that may come next
/// \par Threads     members that are not const one at a time; the others need no lock
class KeyReader {
 public:
  using Node        = NodeStore::Node;
  using Set         = MembersSeen::Set;
  using KeyPosition = std::uint32_t;
  /// Places are less.
  static constexpr KeyPosition end_of_key_positions = 0x8000'0000;

  /// One thing that a byte may lead to.
  struct Step {
    enum class Kind : std::uint8_t {
      inside,      ///< the key goes on at `at`
      member,      ///< the key of member `index` ends
      other,       ///< a key of others `index` goes on, or ends, in the state `at` of its lexeme
      other_ends,  ///< a key of others `index` ends; `at` is its number where it matters, or 0
    };
    Kind kind;
    std::uint32_t index = 0;
    std::uint32_t at    = 0;
  };
  using Steps = std::vector<Step>;

  explicit KeyReader(const NodeStore& nodes) : nodes_(nodes) {}

  [[nodiscard]] MembersSeen& seen() noexcept { return seen_; }
  [[nodiscard]] const MembersSeen& seen() const noexcept { return seen_; }

  /// Adds what a byte leads to; nothing where it may not follow.
  void read(const Node& node, Set seen, KeyPosition at, std::uint8_t byte, Steps& out);

  /// Whether a longer key than that of a trie's node can still be one that is available.
  [[nodiscard]] bool has_more(const Node& node, core::ByteTrie::NodeIndex at, Set seen) const;

  /// Whether a key of others can still be completed from a place.
  [[nodiscard]] bool may_become_other(const Node& node, Set seen, KeyPosition at,
                                      std::size_t k) const;

  /// A set that has every byte that may follow.
  [[nodiscard]] text::ByteSet candidates(const Node& node, KeyPosition at) const;
  /// The same for a place in its trie, where what needs no escape is not escaped.
  [[nodiscard]] text::ByteSet plain_candidates(const Node& node, KeyPosition at) const;
  /// The bytes that may lead on along keys that others cannot have: the members' and those that may
  /// not be repeated.
  [[nodiscard]] text::ByteSet reserved_bytes(const Node& node, Set seen, KeyPosition at) const;
  /// The state of others' lexeme at a place of the trie or of a tracked key.
  [[nodiscard]] text::Dfa::State state_at(const Node& node, KeyPosition at, std::size_t k) const;
  /// Whether a member's key ends at a place.
  [[nodiscard]] bool ends_member(const Node& node, KeyPosition at) const;
  /// Another object's set of members seen, and its place, here: both have the same nodes.
  [[nodiscard]] Set adopt(const KeyReader& from, const Node& node, Set seen);
  [[nodiscard]] KeyPosition adopt(const KeyReader& from, KeyPosition at);
  /// About how much memory all of this takes.
  [[nodiscard]] std::size_t bytes() const noexcept { return seen_.bytes() + pool_.bytes(); }

  /// Whether a place is a node of the members' trie.
  [[nodiscard]] static bool is_in_trie(KeyPosition at) noexcept { return at < pooled; }
  /// Whether a place is inside an escape.
  [[nodiscard]] bool is_in_escape(KeyPosition at) const;

 private:
  using Words = WordsPool<std::uint32_t>::Words;
  using Texts = std::vector<std::string>;

  // Nodes of tries are less. In the pool, a place in an escape is the trie's node before it and
  // what the escape has read; one in a tracked key is 0 and the key's bytes.
  static constexpr KeyPosition pooled = 0x4000'0000;

  [[nodiscard]] const text::Dfa& lexeme(const Node& node, std::size_t k) const;
  [[nodiscard]] static text::StringEscape escape_of(const Node& node, const Words& words);
  [[nodiscard]] static std::string text_of(const Words& words);
  [[nodiscard]] std::uint32_t number(const std::string& text);

  static void add_other(const text::Dfa& dfa, std::uint32_t k, text::Dfa::State state, Steps& out);

  // At a node of the trie, behind a character or within one.
  void arrive(const Node& node, Set seen, core::ByteTrie::NodeIndex at, bool adds, Steps& out);

  // Whether a character of a member's key may be escaped.
  static bool may_escape(const Node& node, char32_t c) noexcept;

  // In or behind an escape that stands at a node of the trie.
  void escaped(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
               const text::StringEscape& escape, bool adds, Steps& out);

  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at) const;
  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at, const text::StringEscape& escape,
                                 const std::vector<KeyCharacter>& known) const;

  // Keys of others whose text matters: those that leave the trie, as the plainest spelling of what
  // has been read, and an escape that is not complete.
  void read_tracked(const Node& node, Set seen, std::string text, std::uint8_t byte, Steps& out);
  void track(const Node& node, Set seen, const std::string& text, Steps& out);
  void end_other(const Node& node, Set seen, std::uint32_t k, const std::string& text, Steps& out);

  // A key between other quotes; they are no part of its text.
  static std::string requoted(const Node& node, const std::string& key, char quote);
  // The keys that may not be repeated, between the quotes that a text begins with.
  [[nodiscard]] Texts remembered(const Node& node, Set seen, std::string_view text) const;

  // Where the escape begins that a text ends in.
  static std::size_t open_escape(std::string_view text, text::ValueSyntax syntax);

  // The keys that begin with a text, are longer, and may not be those of others.
  [[nodiscard]] Texts reserved(const Node& node, Set seen, std::string_view text) const;

  // Whether a text, which may end inside an escape, begins a longer key of others that none of the
  // reserved keys is.
  [[nodiscard]] bool leads_elsewhere(const Node& node, Set seen, std::size_t k,
                                     std::string_view text) const;
  [[nodiscard]] static bool leads_elsewhere(const Node& node, const text::Dfa& dfa,
                                            text::Dfa::State state, std::string_view text,
                                            const std::optional<text::StringEscape>& escape,
                                            const Texts& reserved);
  // The characters by which reserved keys go on behind a text.
  static std::vector<KeyCharacter> characters_behind(const Node& node, std::string_view text,
                                                     const Texts& reserved);

  // The bytes by which members' keys go on, the beginning of escapes included.
  [[nodiscard]] static text::ByteSet literal_bytes(const Node& node, core::ByteTrie::NodeIndex at);
  [[nodiscard]] text::ByteSet remembered_bytes(const Node& node, Set seen, KeyPosition at) const;

  const NodeStore& nodes_;
  MembersSeen seen_;
  WordsPool<std::uint32_t> pool_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/key_reader.ipp>
#endif
