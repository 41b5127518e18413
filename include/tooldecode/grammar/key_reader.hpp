/// \file
/// KeyReader: steps through the keys of a keyed set, in any spelling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/grammar/key_texts.hpp>
#include <tooldecode/grammar/members_seen.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// Reads the keys of keyed sets. A place in a key is a number: a node of the trie of the members'
/// keys, or a pooled number inside an escape and in a tracked key (MembersSeen::is_tracked).
///
/// Escapes are decoded, not listed: a complete escape leads where its character leads, so a key is
/// recognized in any spelling while the trie has it once. No place is a dead end. Characters that
/// no writer escapes, such as the letters of a name, may be escaped in a member's key only if the
/// set says so: otherwise an escape would be an alternative at each letter, and no key would ever
/// be forced.
///
/// \par Complexity  O(others) per byte, whatever was read of the key before; inside escapes and
///                  tracked keys, times the possible next characters of members' and remembered
///                  keys. Where only remembered keys go on, their lengths
/// \par Threads     members that are not const one at a time; the others need no lock
class KeyReader {
 public:
  using Node        = NodeStore::Node::Members;
  using Set         = MembersSeen::Set;
  using KeyPosition = std::uint32_t;
  /// Upper bound of places.
  static constexpr KeyPosition end_of_key_positions = 0x8000'0000;

  /// One result of a byte.
  struct Step {
    enum class Kind : std::uint8_t {
      inside,      ///< the key continues at `at`
      member,      ///< the key of member `index` ends
      other,       ///< a key of others[index] continues or ends; `at` is its lexeme's state
      other_ends,  ///< a key of others[index] ends; `at` is its number if tracked, else 0
    };
    Kind kind;
    std::uint32_t index = 0;
    std::uint32_t at    = 0;
  };
  using Steps = std::vector<Step>;

  explicit KeyReader(const NodeStore& nodes) : nodes_(nodes) {}

  [[nodiscard]] MembersSeen& seen() noexcept { return seen_; }
  [[nodiscard]] const MembersSeen& seen() const noexcept { return seen_; }

  /// Adds the results of a byte; none if the byte is not allowed.
  void read(const Node& node, Set seen, KeyPosition at, std::uint8_t byte, Steps& out);

  /// The place after a byte that does nothing but continue keys, of members and of others; nullopt
  /// if it may do something else, see `read`. Others must be allowed, see MembersSeen::may_add.
  [[nodiscard]] std::optional<KeyPosition> inside(const Node& node, Set seen, KeyPosition at,
                                                  std::uint8_t byte) const;

  /// Whether a longer key than that of a trie node can still be an available one.
  [[nodiscard]] bool has_more(const Node& node, core::ByteTrie::NodeIndex at, Set seen) const;

  /// Whether a key of others[k] can still be completed from a place.
  [[nodiscard]] bool may_become_other(const Node& node, Set seen, KeyPosition at,
                                      std::size_t k) const;

  /// A superset of the bytes that may follow.
  [[nodiscard]] text::ByteSet candidates(const Node& node, KeyPosition at) const;
  /// The same without escapes that are not needed, at a place in the trie.
  [[nodiscard]] text::ByteSet plain_candidates(const Node& node, KeyPosition at) const;
  /// The bytes that continue keys that others cannot have: members' keys and keys that must not
  /// repeat.
  [[nodiscard]] text::ByteSet reserved_bytes(const Node& node, Set seen, KeyPosition at) const;
  /// The state of others' lexeme at a place in the trie or in a tracked key.
  [[nodiscard]] text::Dfa::State state_at(const Node& node, KeyPosition at, std::size_t k) const;
  [[nodiscard]] bool ends_member(const Node& node, KeyPosition at) const;
  /// Converts a set of members seen, or a place, of another object over the same nodes.
  [[nodiscard]] Set adopt(const KeyReader& from, const Node& node, Set seen);
  [[nodiscard]] KeyPosition adopt(const KeyReader& from, KeyPosition at);
  [[nodiscard]] std::size_t bytes() const noexcept {
    return seen_.bytes() + pool_.bytes() + texts_.bytes();
  }

  [[nodiscard]] static bool is_in_trie(KeyPosition at) noexcept { return at < pooled; }
  [[nodiscard]] bool is_in_escape(KeyPosition at) const;

 private:
  using Words = WordsPool<std::uint32_t>::Words;
  using Texts = std::vector<std::string>;

  // Nodes of tries are less. The pool stores a place in an escape as the trie node before it and
  // what the escape has read, and a place in a tracked key as 0 and the fields of Tracked.
  static constexpr KeyPosition pooled      = 0x4000'0000;
  static constexpr std::size_t first_state = 5;  // among the words of a place in a tracked key
  // More than a character has bytes, however it is spelt.
  static constexpr std::size_t character_bytes = 16;

  // The beginning of a key: a place in the trie or, if that is 0, a text. Texts are numbered in
  // their plainest spelling within the quotes of JSON, whatever the key's own quote is.
  struct Beginning {
    core::ByteTrie::NodeIndex at = 0;
    KeyTexts::Number text        = KeyTexts::empty;
    char quote                   = 0;  // the key's own; 0 before it and where there are none
  };
  // A tracked key so far: `states` of the others' lexemes are those before the escape.
  struct Tracked {
    Beginning key;
    std::optional<text::StringEscape> escape;
    std::vector<text::Dfa::State> states;  // [others]
  };

  [[nodiscard]] const text::Dfa& lexeme(const Node& node, std::size_t k) const;
  [[nodiscard]] static text::StringEscape escape_of(const Node& node, const Words& words);
  [[nodiscard]] static std::optional<text::StringEscape> tracked_escape(const Node& node,
                                                                        const Words& words);
  [[nodiscard]] static std::uint32_t word(const Words& words, std::size_t i) noexcept {
    return i < words.size() ? words[i] : 0;
  }
  [[nodiscard]] static Beginning beginning_of(const Words& words) noexcept;
  [[nodiscard]] Beginning beginning_at(const Node& node, core::ByteTrie::NodeIndex at) const;
  [[nodiscard]] Tracked tracked(const Node& node, const Words& words) const;
  [[nodiscard]] Tracked tracked_at(const Node& node, core::ByteTrie::NodeIndex at);
  void read_byte(const Node& node, Tracked& key, std::uint8_t byte);
  // Adds a character that an escape spells. Others' lexemes step over the escape itself: a text may
  // be excluded in some spellings only.
  void read_character(const Node& node, Tracked& key, char32_t c, std::string_view spelt);

  static void add_other(const text::Dfa& dfa, std::uint32_t k, text::Dfa::State state, Steps& out);

  // Results at a trie node that is after a character or inside one.
  void arrive(const Node& node, Set seen, core::ByteTrie::NodeIndex at, bool adds, Steps& out);

  static bool may_escape(const Node& node, char32_t c) noexcept;

  // Results inside or after an escape in this spelling that follows a trie node.
  void escaped(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
               const text::StringEscape& escape, std::string_view spelt, bool adds, Steps& out);

  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at) const;
  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at, const text::StringEscape& escape,
                                 const std::vector<KeyCharacter>& known) const;

  // Tracked keys that have left the trie.
  void read_tracked(const Node& node, Set seen, const Words& words, std::uint8_t byte, Steps& out);
  void track(const Node& node, Set seen, const Tracked& key, Steps& out);
  void end_other(const Node& node, Set seen, std::uint32_t k, KeyTexts::Number text, Steps& out);

  // A part of a key after its opening quote as it is spelt between other quotes.
  static std::string requoted(const Node& node, std::string_view part, char from, char to);
  // Calls `visit` with the number of each key that must not repeat and that is longer than a
  // beginning, which it begins with.
  template <class Visit>
  void for_each_remembered(const Node& node, Set seen, const Beginning& key, Visit visit) const;
  // The next bytes of these keys, a character of each or more.
  [[nodiscard]] Texts remembered_behind(const Node& node, Set seen, const Beginning& key) const;
  // A beginning in the trie as its text is numbered, and the length of any beginning so.
  [[nodiscard]] static std::string numbered_text(const Node& node, const Beginning& key);
  [[nodiscard]] std::size_t length_of(const Node& node, const Beginning& key) const;

  // A beginning as it is spelt between the key's own quotes.
  [[nodiscard]] std::string text_of(const Node& node, const Beginning& key) const;
  // The longer keys with a beginning that others cannot have.
  [[nodiscard]] Texts reserved(const Node& node, Set seen, const Beginning& key,
                               std::string_view text) const;

  // Whether a beginning, whose lexeme is in a state, and an escape begin a longer key of others
  // that is not reserved.
  [[nodiscard]] bool leads_elsewhere(const Node& node, Set seen, std::size_t k,
                                     const Beginning& key, text::Dfa::State state,
                                     const std::optional<text::StringEscape>& escape) const;
  // Answers it by the next bytes of the reserved keys alone; if false, it is not known.
  [[nodiscard]] static bool leads_elsewhere_now(const Node& node, const text::Dfa& dfa,
                                                text::Dfa::State state, const Beginning& key,
                                                const std::optional<text::StringEscape>& escape,
                                                const Texts& rests);
  // Answers it by the whole reserved keys, which begin with `length` bytes in which the lexeme gets
  // into a state; the escape begins after them. Costs a visit for each byte of these keys at most.
  [[nodiscard]] static bool leads_elsewhere(const Node& node, const text::Dfa& dfa,
                                            text::Dfa::State before, std::size_t length,
                                            const std::optional<text::StringEscape>& escape,
                                            Texts reserved);
  // The first characters of texts.
  static std::vector<KeyCharacter> first_characters(const Node& node, const Texts& rests);

  // Where the members' keys end that are longer than the text of a trie node and begin with it.
  [[nodiscard]] static std::span<const core::ByteTrie::NodeIndex> longer_keys(
      const Node& node, core::ByteTrie::NodeIndex at);
  // The bytes that continue members' keys, including the first byte of an escape.
  [[nodiscard]] static text::ByteSet literal_bytes(const Node& node, core::ByteTrie::NodeIndex at);
  [[nodiscard]] text::ByteSet remembered_bytes(const Node& node, Set seen, KeyPosition at) const;

  // The latest answer of MembersSeen::may_add: the bytes of a key ask the same.
  struct Added {
    const Node* node = nullptr;
    Set seen{};
    bool may_add = false;
  };

  const NodeStore& nodes_;
  MembersSeen seen_;
  Added added_;
  WordsPool<std::uint32_t> pool_;
  KeyTexts texts_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/key_reader.ipp>
#endif
