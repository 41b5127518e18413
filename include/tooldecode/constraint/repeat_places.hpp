/// \file
/// RepeatPlaces: which tokens of a state must be looked at, that no call is made twice in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::constraint {

/// What is known of the states of a machine of calls, whatever was written before them.
///
/// A state is inside a call where every position of it is, and a call ends where a text leaves it.
/// Behind a token no repeated call can be near if none ends in it, and if either the answer can end
/// without another call or the call that comes next can still be two: such a token is loose. The
/// others are tight.
///
/// \par Complexity  a state's tokens: one walk of the vocabulary's trie, then known
/// \par Threads     one thread at a time
class RepeatPlaces {
 public:
  using Number    = grammar::Automaton::State;
  using NodeIndex = core::ByteTrie::NodeIndex;
  /// The tool of some marks.
  using ToolOf = std::function<std::optional<std::size_t>(std::span<const std::uint32_t>)>;
  /// Whether two completions of a text make two different last calls, and the same before them.
  using AreTwoCalls = std::function<bool(const std::string&, const std::string&)>;

  /// Two completions, at least one of which repeats no call.
  struct Pair {
    std::string one, other;
  };
  struct Tight {
    NodeIndex node;  // of the trie
    Number next;
    bool ends_call;
  };
  /// Of a state: the tokens to look at, and where the others lead.
  struct Tokens {
    std::vector<Tight> tight;
    std::vector<Number> loose;
  };

  RepeatPlaces(const Constraint& grammar, ToolOf tool_of, std::size_t max_texts);

  [[nodiscard]] const Constraint& grammar() const noexcept { return grammar_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept;

  [[nodiscard]] bool is_in_call(Number id) { return place(id).inside == Inside::call; }
  /// Whether the answer can end without another call than those that were begun.
  [[nodiscard]] bool can_end(Number id);
  /// Completions of a state, the shortest first; null behind the last.
  [[nodiscard]] const std::string* completion(Number id, std::size_t i);
  /// Two completions of a state that make two calls whatever was written before; `are_two_calls`
  /// says it of a text that leads to the state.
  [[nodiscard]] const std::optional<Pair>& pair(Number id, const AreTwoCalls& are_two_calls);
  /// What the state's tokens lead to; `are_two_calls(bytes)` gives the like for a text that goes on
  /// with them.
  template <class Ask>
  [[nodiscard]] const Tokens& tokens(Number id, const Ask& are_two_calls) {
    const auto known = tokens_.find(id);
    if (known != tokens_.end()) return known->second;
    Tokens found;
    std::unordered_map<Number, bool> loose;
    walk(id, [&](NodeIndex node, Number next, bool ends_call) {
      if (!ends_call) {
        const auto [at, is_new] = loose.try_emplace(next);
        if (is_new) {
          at->second = is_loose(next, are_two_calls(trie().text(node)));
          if (at->second) found.loose.push_back(next);
        }
        if (at->second) return;
      }
      found.tight.push_back({node, next, ends_call});
    });
    return tokens_.emplace(id, std::move(found)).first->second;
  }
  [[nodiscard]] bool is_loose(Number id, const AreTwoCalls& are_two_calls);
  /// Whether a call ends in some bytes that may follow a state.
  [[nodiscard]] bool ends_call(Number id, std::string_view bytes);
  /// Calls `visit(node, next, ends_call)` for each node of the trie that is a token's and may follow.
  template <class Visit>
  void walk(Number id, const Visit& visit) {
    std::vector<Found> found;
    Walk(*this, found)(id);
    for (const auto& [node, next, ends] : found) visit(node, next, ends);
  }

  /// About how much memory it takes.
  [[nodiscard]] std::size_t bytes() const;

 private:
  using Automaton = grammar::Automaton;
  using Span      = Automaton::Cursor::Span;

  enum class Inside : std::uint8_t { nothing, call, unknown };
  struct Place {
    Inside inside;
    std::optional<bool> can_end{};
    std::optional<std::optional<std::string>> text{};  // the shortest
  };
  // How completions of a state are found: at each state behind it, each byte that may follow, and
  // then the shortest way on. States on the shortest way come first, the last one at the beginning.
  struct Texts {
    struct Branch {
      Number state;
      std::string before;
      bool is_in_call;  // or a call was begun before it
    };
    std::vector<std::string> known{};
    bool is_begun = false;
    std::deque<Branch> open{};
    std::unordered_set<Number> seen{};
    std::vector<std::uint8_t> bytes{};  // of the first branch, that are left, from the last
  };
  struct Found {
    NodeIndex node;
    Number next;
    bool ends_call;
  };

  Place& place(Number id);
  const std::optional<std::string>& shortest(Number id);

  // Whether positions are in a call; in which tool's, is noted.
  Inside inside(std::span<const grammar::StackFrame> positions);

  bool find_whether_it_can_end(Number id);

  bool find_more(Number id, Texts& texts);
  bool begin(Number id, Texts& texts);
  static void push(Texts& texts, Texts::Branch branch);
  // From the last.
  [[nodiscard]] std::vector<std::uint8_t> bytes_behind(Number id) const;
  static bool is_letter(std::uint8_t byte) noexcept;

  std::optional<Pair> find_pair(Number id, const AreTwoCalls& are_two_calls);
  // Whether what two texts mean differs whatever is before them, if it does behind one text. It may
  // not inside a number, whose last digits can be lost in rounding, nor in blanks, nor where letters
  // are digits of a character's number.
  static bool tells_apart(std::string_view one, std::string_view other);

  // Follows all tokens; inside a lexeme most lead to few states, and no call ends.
  class Walk {
   public:
    Walk(RepeatPlaces& places, std::vector<Found>& found);

    void operator()(Number id);

   private:
    struct At {
      Inside inside;
      std::size_t tool;
    };
    At at(Span place);
    void follow(Span place, NodeIndex node, At before, bool ends);
    void step(Span place, NodeIndex child, At before, bool ends);
    [[nodiscard]] std::optional<grammar::StackFrame> find_lexeme(Span place) const;
    void follow_lexeme(const grammar::StackFrame& from, NodeIndex root, At before, bool ends);

    RepeatPlaces& places_;
    const core::ByteTrie& trie_;
    Automaton::Cursor walk_;
    std::vector<Found>& found_;
  };

  // Completions among which two are looked for that make two calls.
  static constexpr std::size_t pairs_tried = 24;

  Constraint grammar_;
  Completions completions_;
  ToolOf tool_of_;
  std::size_t max_texts_;
  std::size_t tool_ = 0;  // that `inside` came to
  std::unordered_map<Number, Place> places_;
  std::unordered_map<Number, Texts> texts_;
  std::unordered_map<Number, std::optional<Pair>> pairs_;
  std::unordered_map<Number, Tokens> tokens_;
  std::unordered_map<std::uint32_t, std::optional<std::size_t>> tools_;  // by stack
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/repeat_places.ipp>
#endif
