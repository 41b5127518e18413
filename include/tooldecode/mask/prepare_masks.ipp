#pragma once

#include <atomic>
#include <deque>
#include <new>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/wanted_mutex.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/mask/mask_builder.hpp>
#include <tooldecode/mask/prepare_masks.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::mask {
namespace prepare {

using State     = grammar::Automaton::State;
using NodeIndex = core::ByteTrie::NodeIndex;
using Node      = grammar::NodeStore::Node;

/// The states after the tokens that are likely to follow a state.
///
/// \par Threads  holds the automaton's lock while it lives
class LikelyTokens {
 public:
  explicit LikelyTokens(const SharedStates& states)
      : trie_(states.trie()), automaton_(states.automaton()), walk_(automaton_) {}

  struct Found {
    std::vector<State> after;
    std::vector<State> inside_strings;  // that begin at the state, after a character
  };

  /// \param enters_strings  also finds the states inside them
  [[nodiscard]] Found find(State state, bool enters_strings) {
    Found found;
    const Span place = walk_.begin(state);
    follow(place, 0);
    found.after = std::move(found_);
    found_.clear();
    if (enters_strings) enter_strings(place);
    found.inside_strings = std::move(found_);
    return found;
  }

 private:
  using Span = grammar::Automaton::Cursor::Span;

  static constexpr std::uint8_t letter = 'a', digit = '1';

  void enter_strings(Span place) {
    text::ByteSet first;
    for (const grammar::StackFrame& frame : walk_.positions(place)) {
      const text::Dfa* dfa = dfa_of(frame);
      if (dfa == nullptr || !closer(*dfa, frame.dfa_state())) continue;
      if (dfa->live(frame.dfa_state()).contains(letter)) first.insert(letter);
    }
    first.for_each([&](std::uint8_t byte) { settle(walk_.step(place, byte)); });
  }

  // Takes the longest tokens, and those that end at a mark. Returns whether any was taken.
  bool follow(Span place, NodeIndex node) {
    bool is_longer = false;
    likely(place).for_each([&](std::uint8_t byte) {
      const NodeIndex child = trie_.find_child(node, byte);
      if (child == 0) return;
      const Span next = walk_.step(place, byte);
      if (!next.empty()) is_longer |= follow(next, child);
      walk_.drop(next);
    });
    if (node == 0 || trie_.values(node).empty()) return is_longer;
    if (!is_longer || is_mark(trie_.label(node))) settle(place);
    return true;
  }

  static bool is_mark(std::uint8_t byte) {
    const bool is_word =
        (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
    return !is_word && byte < 0x80 && byte != '_';
  }

  void settle(Span place) {
    if (!place.empty()) found_.push_back(walk_.settle(place));
  }

  [[nodiscard]] text::ByteSet likely(Span place) const {
    text::ByteSet bytes;
    for (const grammar::StackFrame& frame : walk_.positions(place)) {
      if (frame.node == grammar::Positions::text_end) continue;
      automaton_.nodes()[frame.node].visit(
          [&](const Node::Literal& literal) {
            bytes.insert(static_cast<std::uint8_t>(literal.text[frame.offset()]));
          },
          [&](const Node::Trie& trie) { add_children(*trie.literals, frame.trie_node(), bytes); },
          [&](const Node::Lexeme& lexeme) {
            if (const auto byte = end_of(lexeme, frame)) bytes.insert(*byte);
          },
          [&](const Node::Members& set) {
            if (grammar::KeyReader::is_in_trie(frame.key()))
              add_children(*set.literals, frame.key(), bytes);
          },
          [](const auto&) {});
    }
    return bytes;
  }

  static void add_children(const core::ByteTrie& trie, NodeIndex node, text::ByteSet& bytes) {
    const auto [first, last] = trie.children(node);
    for (NodeIndex child = first; child < last; ++child) bytes.insert(trie.label(child));
  }

  // The next byte of a short text that ends a lexeme; none if the lexeme may end here.
  static std::optional<std::uint8_t> end_of(const Node::Lexeme& lexeme,
                                            const grammar::StackFrame& frame) {
    const text::Dfa& dfa         = *lexeme.dfa;
    const text::Dfa::State state = frame.dfa_state();
    if (dfa.accepting(state)) return std::nullopt;
    const auto close = closer(dfa, state);
    if (close && frame.units() >= lexeme.units.min) return close;
    text::ByteSet live = dfa.live(state);
    if (close) live.erase(*close);
    if (live.empty()) return std::nullopt;
    return live.contains(digit) ? digit : live.contains(letter) ? letter : live.front();
  }

  // A byte that ends a lexeme as a quote does.
  static std::optional<std::uint8_t> closer(const text::Dfa& dfa, text::Dfa::State state) {
    std::optional<std::uint8_t> found;
    dfa.live(state).for_each([&](std::uint8_t byte) {
      if (!found && dfa.closing(dfa.next(state, byte))) found = byte;
    });
    return found;
  }

  [[nodiscard]] const text::Dfa* dfa_of(const grammar::StackFrame& frame) const {
    if (frame.node == grammar::Positions::text_end) return nullptr;
    const auto* lexeme = automaton_.nodes()[frame.node].as<Node::Lexeme>();
    return lexeme == nullptr ? nullptr : lexeme->dfa.get();
  }

  const core::ByteTrie& trie_;
  const grammar::Automaton& automaton_;
  grammar::Automaton::Cursor walk_;
  std::vector<State> found_;
};

/// Visits likely states, nearest first.
class Preparation {
 public:
  Preparation(const SharedStates& states, const PrepareOptions& options)
      : states_(states), options_(options) {}

  std::size_t run(State from) {
    try {
      const core::WantedMutex::Patience patience;
      visit_from(from);
    } catch (const std::bad_alloc&) {  // the masks that a text asks for may still fit
    }
    return made_;
  }

 private:
  struct Visit {
    State state;
    bool is_inside;  // a string, after an assumed character
  };

  // Work that others interrupt more often is left to them.
  static constexpr int max_attempts         = 8;
  static constexpr std::uint64_t steps_each = 1'000'000;
  static constexpr std::uint64_t bytes_each = std::uint64_t{64} << 20;

  void visit_from(State from) {
    meet({from}, false);
    for (std::size_t i = 0; i < options_.max_masks && !waiting_.empty() && !is_over(); ++i) {
      const Visit visit = waiting_.front();
      waiting_.pop_front();
      if (!make_mask(visit.state)) continue;
      LikelyTokens::Found found;
      undisturbed([&] { found = LikelyTokens(states_).find(visit.state, !visit.is_inside); });
      meet(found.inside_strings, true);
      meet(found.after, false);
    }
  }

  [[nodiscard]] bool is_over() const {
    return steps_ >= options_.max_steps ||
           (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed));
  }

  void meet(const std::vector<State>& states, bool are_inside) {
    for (const State state : states) {
      if (met_.insert(state).second) waiting_.push_back({state, are_inside});
    }
  }

  bool make_mask(State state) {
    const State normal = states_.automaton().representative(state);
    if (states_.automaton().attachment(normal).load(std::memory_order_acquire) != nullptr)
      return true;
    const bool is_made = undisturbed([&] {
      (void)states_.mask(
          normal, [&] { return MaskBuilder(states_, states_.vocabulary().size()).build(normal); });
    });
    made_ += is_made;
    return is_made;
  }

  // Runs work that takes the states' locks, again if another thread wants them meanwhile.
  template <class Work>
  bool undisturbed(const Work& work) {
    for (int attempt = 0; attempt < max_attempts && !is_over(); ++attempt) {
      const BuildBudget budget({steps_each, bytes_each, &states_.waiters().are_there()});
      try {
        work();
        steps_ += 1 + budget.spent().steps;
        return true;
      } catch (const Error& error) {
        steps_ += 1 + budget.spent().steps;
        if (error.code() != Errc::cancelled) return false;
      }
      while (states_.waiters().are_there() && !is_over()) std::this_thread::yield();
    }
    return false;
  }

  const SharedStates& states_;
  const PrepareOptions& options_;
  std::deque<Visit> waiting_;
  std::unordered_set<State> met_;
  std::size_t made_    = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace prepare

TOOLDECODE_INLINE std::size_t prepare_masks(const SharedStates& states, std::uint32_t from,
                                            const PrepareOptions& options) {
  return prepare::Preparation(states, options).run(from);
}

}  // namespace tooldecode::mask
