/// \file
/// RepeatPlaces: finds the tokens of a state after which a call might repeat the one before it.
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
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

namespace tooldecode::constraint {

/// What is known of a call machine's states, independent of the text before them.
///
/// A state is inside a call if all of its positions are; a call ends where a text leaves it. A
/// token is loose if no call ends in it and if either the answer can end without another call or
/// the next call can still become two different calls: no repeated call can be near. Other tokens
/// are tight.
///
/// \par Complexity  for the tokens of a state, one walk of the vocabulary's trie, then cached
/// \par Threads     one thread at a time
class RepeatPlaces {
 public:
  using Number    = grammar::Automaton::State;
  using NodeIndex = core::ByteTrie::NodeIndex;
  using ToolOf    = std::function<std::optional<std::size_t>(std::span<const std::uint32_t>)>;
  /// Whether two completions of a text give two different last calls, and equal calls before them.
  using AreTwoCalls = std::function<bool(const std::string&, const std::string&)>;

  /// Two completions, at least one of which repeats no call.
  struct Pair {
    std::string one, other;
  };
  struct Tight {
    NodeIndex node;
    Number next;
    bool ends_call;
  };
  /// A state's tokens: the tight ones, and the states that the loose ones lead to.
  struct Tokens {
    std::vector<Tight> tight;
    std::vector<Number> loose;
  };

  RepeatPlaces(const Constraint& grammar, ToolOf tool_of, std::size_t max_texts);

  [[nodiscard]] const Constraint& grammar() const noexcept { return grammar_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept;

  [[nodiscard]] bool is_in_call(Number id) { return place(id).inside == Inside::call; }
  /// Whether the shortest completion of a state enters no call; false inside a call.
  [[nodiscard]] bool can_end(Number id);
  /// The i-th completion of a state, shortest first; null after the last one.
  [[nodiscard]] const std::string* completion(Number id, std::size_t i);
  /// Two completions of a state that give two different calls whatever the text before it;
  /// `are_two_calls` decides it for one text that leads to the state.
  [[nodiscard]] const std::optional<Pair>& pair(Number id, const AreTwoCalls& are_two_calls);
  /// The state's tokens; `are_two_calls(bytes)` returns the predicate for the text extended by
  /// `bytes`.
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
  /// Whether a call ends within bytes that follow a state.
  [[nodiscard]] bool ends_call(Number id, std::string_view bytes);
  /// Calls `visit(node, next, ends_call)` for each trie node where a token ends that may follow.
  template <class Visit>
  void walk(Number id, const Visit& visit) {
    for (const auto& [node, next, ends] : reached(id)) visit(node, next, ends);
  }

  [[nodiscard]] std::size_t bytes() const;

 private:
  using Automaton = grammar::Automaton;
  using Span      = Automaton::Cursor::Span;

  enum class Inside : std::uint8_t { nothing, call, unknown };
  struct StateFacts {
    Inside inside;
    std::optional<bool> can_end{};
    std::optional<std::optional<std::string>> text{};  // the shortest completion
  };
  // The search for a state's completions: from each state on the way, each byte that may follow,
  // then the shortest completion. States on the shortest way come first, the last of them foremost.
  struct Texts {
    struct Branch {
      Number state;
      std::string before;
      bool is_in_call;  // now, or since the search began
    };
    std::vector<std::string> known{};
    bool is_begun = false;
    std::deque<Branch> open{};
    std::unordered_set<Number> seen{};
    std::vector<std::uint8_t> bytes{};  // of the first branch; still to be tried, from the back
  };
  struct ReachedNode {
    NodeIndex node;
    Number next;
    bool ends_call;
  };

  StateFacts& place(Number id);
  const std::optional<std::string>& shortest(Number id);

  // Whether positions are inside a call; sets tool_ to its tool.
  Inside inside(std::span<const grammar::StackFrame> positions);

  bool find_whether_it_can_end(Number id);

  bool find_more(Number id, Texts& texts);
  bool begin(Number id, Texts& texts);
  static void push(Texts& texts, Texts::Branch branch);
  // In reverse order.
  [[nodiscard]] std::vector<std::uint8_t> bytes_behind(Number id) const;
  static bool is_letter(std::uint8_t byte) noexcept;

  std::optional<Pair> find_pair(Number id, const AreTwoCalls& are_two_calls);
  // Whether two texts that differ in meaning after one text do so after every text. They may not
  // inside a number, whose last digits rounding can lose, in white space, or where letters are hex
  // digits of an escape.
  static bool tells_apart(std::string_view one, std::string_view other);

  // The nodes where tokens end that may follow; no call ends inside a lexeme.
  [[nodiscard]] std::vector<ReachedNode> reached(Number id);

  // Completions to try for a pair of two calls.
  static constexpr std::size_t pairs_tried = 24;

  Constraint grammar_;
  Completions completions_;
  ToolOf tool_of_;
  std::size_t max_texts_;
  std::size_t tool_ = 0;  // set by `inside`
  std::unordered_map<Number, StateFacts> places_;
  std::unordered_map<Number, Texts> texts_;
  std::unordered_map<Number, std::optional<Pair>> pairs_;
  std::unordered_map<Number, Tokens> tokens_;
  std::unordered_map<std::uint32_t, std::optional<std::size_t>> tools_;  // by stack
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/repeat_places.ipp>
#endif
