#pragma once

#include <algorithm>
#include <limits>
#include <queue>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/token_walk.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// A graph of states whose edges are tokens: bounds each state's distance from the end.
class Completions::Search {
 public:
  Search(const Constraint& constraint, CompletionOptions options)
      : constraint_(constraint),
        options_(std::move(options)),
        banned_(constraint.vocabulary_size()) {
    for (const TokenId token : options_.banned) {
      if (token >= 0 && static_cast<std::size_t>(token) < constraint.vocabulary_size()) {
        banned_.insert(token);
      }
    }
    const auto ends = constraint_.vocabulary().end_tokens();
    can_end_        = std::any_of(ends.begin(), ends.end(),
                                  [this](TokenId token) { return !banned_.contains(token); });
  }

  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough) {
    if (constraint_.is_finished(state)) return 0;
    const BuildBudget budget = constraint_.vocabulary_index().mask_budget();
    const Number id          = constraint_.automaton_state(state);
    CompletionBounds& known  = look_up(id);
    find_text(id);
    if (known.upper > enough && known.lower < known.upper) find_shortest(id);
    return known.upper == none ? std::nullopt : std::optional<std::size_t>(known.upper);
  }

  void narrow(State state, std::size_t remaining, MaskView words) {
    if (constraint_.is_finished(state)) return;
    const BuildBudget budget   = constraint_.vocabulary_index().mask_budget();
    const Number id            = constraint_.automaton_state(state);
    const std::size_t distance = remaining - 1;  // tokens left after the next one
    if (is_far(id, distance)) return;
    const auto left = static_cast<std::uint32_t>(std::min<std::size_t>(distance, none - 1));
    if (left == 0) return keep(id, left, words);
    CompletionBounds& known = look_up(id);
    if (known.worst <= left) return;
    expand(id);
    for (const Number next : known.next) find_text(next);
    std::vector<Number> open;
    for (const Number next : known.next) {
      const CompletionBounds& after = look_up(next);
      if (after.upper > left && after.lower <= left) open.push_back(next);
    }
    if (!open.empty()) search(open, left);
    std::uint32_t worst = 0;
    for (const Number next : known.next) worst = std::max(worst, look_up(next).upper);
    known.worst = worst;
    if (known.worst > left) keep(id, left, words);
  }

  bool is_far(State state, std::size_t remaining) {
    const BuildBudget budget = constraint_.vocabulary_index().mask_budget();
    return is_far(constraint_.automaton_state(state), remaining - 1);
  }
  [[nodiscard]] std::optional<std::string> find_text(State state) const {
    const BuildBudget budget = constraint_.vocabulary_index().mask_budget();
    return shortest_text(constraint_.automaton_state(state));
  }

  [[nodiscard]] std::optional<std::vector<TokenId>> fewest_tokens(std::string_view text) const {
    std::vector<TokenId> tokens;
    const std::vector<std::size_t> ends = cut(text);
    if (ends.empty() && !text.empty()) return std::nullopt;
    for (std::size_t from = 0, i = 0; i < ends.size(); from = ends[i++]) {
      NodeIndex node = 0;
      for (std::size_t at = from; at < ends[i]; ++at) {
        node = trie().find_child(node, static_cast<std::uint8_t>(text[at]));
      }
      for (const std::uint32_t token : trie().values(node)) {
        if (banned_.contains(static_cast<TokenId>(token))) continue;
        tokens.push_back(static_cast<TokenId>(token));
        break;
      }
    }
    return tokens;
  }
  [[nodiscard]] bool can_end() const noexcept { return can_end_; }

  [[nodiscard]] const CompletionCounts& counts() const noexcept { return counts_; }

 private:
  using Automaton = grammar::Automaton;
  using Number    = Automaton::State;
  using Span      = Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;

  static constexpr std::uint32_t none        = ~std::uint32_t{0};
  static constexpr std::size_t max_positions = 20'000;

  /// Bounds for the tokens of a state's shortest completion, end token included.
  struct CompletionBounds {
    std::uint32_t lower = 1;
    std::uint32_t upper = none;
    std::uint32_t worst = none;  // greatest upper bound of the next states
    std::uint32_t rest  = 0;     // bytes
    bool has_text       = false;
    bool is_expanded    = false;
    std::vector<Number> next{};
  };

  [[nodiscard]] const core::ByteTrie& trie() const noexcept {
    return constraint_.vocabulary_index().trie();
  }

  CompletionBounds& look_up(Number id) {
    const auto [at, is_new] = known_.try_emplace(id);
    if (!is_new) return at->second;
    const bool ends   = constraint_.automaton().is_accepting(id) && can_end_;
    return at->second = {.lower = ends ? 1U : 2U, .upper = ends ? 1U : none};
  }

  // Whether every token leads to a state for which `distance` tokens are enough.
  bool is_far(Number id, std::size_t distance) {
    if (!far_) {
      grammar::TextLengths::Worst far;
      if (can_end_ && has_all_bytes()) {
        Automaton::Cursor walk(constraint_.automaton());
        far = walk.lengths().worst(constraint_.root());
      } else {
        far.bytes = grammar::TextLengths::none;
      }
      far_ = far;
    }
    if (far_->bytes >= grammar::TextLengths::none || distance <= far_->bytes) return false;
    if (far_->nested == 0) return true;
    CompletionBounds& known = look_up(id);
    if (known.rest == 0) known.rest = 1 + bytes_left(id);
    return distance > std::size_t{far_->bytes} + known.rest + trie().longest() * far_->nested;
  }
  [[nodiscard]] bool has_all_bytes() const {
    for (unsigned byte = 0; byte < static_cast<std::uint8_t>(control_close); ++byte) {
      const NodeIndex node = trie().find_child(0, static_cast<std::uint8_t>(byte));
      if (node == 0 || !is_free(node)) return false;
    }
    return true;
  }
  [[nodiscard]] std::uint32_t bytes_left(Number id) const {
    Automaton::Cursor walk(constraint_.automaton());
    std::uint32_t least = grammar::TextLengths::none;
    for (const grammar::StackFrame& frame : constraint_.automaton().positions(id)) {
      least = std::min(least, walk.lengths().rest(frame));
    }
    return least;
  }
  [[nodiscard]] bool is_free(NodeIndex node) const {
    const auto tokens = trie().values(node);
    return std::any_of(tokens.begin(), tokens.end(), [this](std::uint32_t token) {
      return !banned_.contains(static_cast<TokenId>(token));
    });
  }

  // Calls `visit(node, next)` for each trie node where a token ends that is not banned and may
  // follow, with the state after it. Returns the bytes that were followed.
  template <class Visit>
  std::uint64_t walk(Number id, Visit visit) {
    struct Guide {
      struct Path {};
      static Path path(Path, std::span<const grammar::StackFrame>) { return {}; }
      [[nodiscard]] bool wants(NodeIndex node) const { return search.is_free(node); }
      void visit(NodeIndex node, Number next, Path) { see(node, next); }

      const Search& search;
      Visit& see;
    };
    Guide guide{*this, visit};
    constraint::TokenWalk<Guide> tokens(constraint_, guide);
    tokens(id, typename Guide::Path{});
    return tokens.steps();
  }

  std::uint64_t expand(Number id) {
    CompletionBounds& known = look_up(id);
    if (known.is_expanded) return 0;
    ++counts_.walks;
    std::vector<Number> all;
    const std::uint64_t steps = walk(id, [&](NodeIndex, Number next) { all.push_back(next); });
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    known.next        = std::move(all);
    known.is_expanded = true;
    return steps;
  }

  // Keeps the end tokens, and the tokens after which `left` tokens are enough.
  void keep(Number id, std::uint32_t left, MaskView words) {
    TokenMask kept(constraint_.vocabulary_size());
    if (constraint_.automaton().is_accepting(id)) {
      for (const TokenId token : constraint_.vocabulary().end_tokens()) kept.insert(token);
    }
    if (left > 0) {
      walk(id, [&](NodeIndex node, Number next) {
        if (look_up(next).upper > left) return;
        for (const std::uint32_t token : trie().values(node)) {
          kept.insert(static_cast<TokenId>(token));
        }
      });
    }
    words &= kept.words();
  }

  // The shortest text that completes a state, cut into the fewest tokens, bounds all states on its
  // way.
  void find_text(Number id) {
    CompletionBounds& known = look_up(id);
    if (known.has_text || known.upper == 1 || !can_end_) return;
    const std::optional<std::string> text = shortest_text(id);
    const std::vector<std::size_t> ends   = text ? cut(*text) : std::vector<std::size_t>();
    Automaton::Cursor walk(constraint_.automaton());
    Span place       = walk.begin(id);
    std::size_t from = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      std::uint32_t& upper = look_up(from == 0 ? id : walk.settle(place)).upper;
      upper                = std::min(upper, static_cast<std::uint32_t>(ends.size() - i + 1));
      for (; from < ends[i]; ++from) {
        place = walk.step(place, static_cast<std::uint8_t>((*text)[from]));
      }
    }
    known.has_text = true;
  }

  [[nodiscard]] std::optional<std::string> shortest_text(Number id) const {
    struct TextPosition {
      grammar::StackFrame frame;
      std::size_t before;
      char byte;
      std::uint32_t length;
    };
    struct Open {
      std::uint32_t whole, rest;
      std::size_t place;
      bool operator<(const Open& other) const noexcept {  // for a heap: the first to take is
                                                          // greatest
        return whole != other.whole ? whole > other.whole
               : rest != other.rest ? rest > other.rest
                                    : place > other.place;
      }
    };
    struct Hash {
      std::size_t operator()(const grammar::StackFrame& frame) const noexcept {
        return grammar::hash_of(frame);
      }
    };
    Automaton::Cursor walk(constraint_.automaton());
    std::vector<TextPosition> places;
    std::unordered_map<grammar::StackFrame, std::uint32_t, Hash> reached;
    std::priority_queue<Open> open;
    const auto reach = [&](const TextPosition& place) {
      const auto [at, is_new] = reached.try_emplace(place.frame, place.length);
      if (!is_new && at->second <= place.length) return;
      at->second               = place.length;
      const std::uint32_t rest = walk.lengths().rest(place.frame);
      open.push({place.length + rest, rest, places.size()});
      places.push_back(place);
    };
    constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
    for (const grammar::StackFrame& frame : constraint_.automaton().positions(id)) {
      reach({frame, nowhere, 0, 0});
    }
    while (!open.empty() && places.size() < max_positions) {
      const std::size_t at = open.top().place;
      open.pop();
      const TextPosition place = places[at];
      if (place.frame.node == grammar::Positions::text_end) {
        std::string text;
        for (std::size_t i = at; places[i].before != nowhere; i = places[i].before) {
          text.push_back(places[i].byte);
        }
        std::reverse(text.begin(), text.end());
        return text;
      }
      if (reached.at(place.frame) < place.length) continue;
      const Span from = walk.begin(place.frame);
      walk.candidates(from).for_each([&](std::uint8_t byte) {
        const Span next = walk.step(from, byte);
        for (std::uint32_t i = 0; i < next.last - next.first; ++i) {
          reach({walk.positions(next)[i], at, static_cast<char>(byte), place.length + 1});
        }
        walk.drop(next);
      });
      walk.drop(from);
    }
    return std::nullopt;
  }
  // The offsets where the tokens of a text end, with the fewest tokens; empty if no tokens write
  // it.
  [[nodiscard]] std::vector<std::size_t> cut(std::string_view text) const {
    std::vector<std::uint32_t> tokens(text.size() + 1, none);
    std::vector<std::size_t> before(text.size() + 1);
    tokens[0] = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (tokens[i] == none) continue;
      NodeIndex node = 0;
      for (std::size_t end = i; end < text.size();) {
        node = trie().find_child(node, static_cast<std::uint8_t>(text[end++]));
        if (node == 0) break;
        if (!is_free(node) || tokens[end] <= tokens[i] + 1) continue;
        tokens[end] = tokens[i] + 1;
        before[end] = i;
      }
    }
    std::vector<std::size_t> ends;
    if (tokens.back() == none) return ends;
    for (std::size_t end = text.size(); end > 0; end = before[end]) ends.push_back(end);
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

  // The states that a search has reached, breadth first, each once.
  struct Visits {
    struct Visit {
      Number id;
      std::uint32_t depth;  // tokens before it
    };
    std::vector<Visit> all{};
    std::unordered_set<Number> known{};

    void add(Number id, std::uint32_t depth) {
      if (known.insert(id).second) all.push_back({id, depth});
    }
  };
  // Visits the states that follow, except after those with `is_done(known, depth)`; returns whether
  // it finished.
  template <class IsDone>
  bool visit(Visits& visits, IsDone is_done) {
    ++counts_.searches;
    std::uint64_t steps = 0;
    for (std::size_t i = 0; i < visits.all.size(); ++i) {
      const auto [id, depth]        = visits.all[i];
      const CompletionBounds& known = look_up(id);
      if (is_done(known, depth) || known.lower == known.upper) continue;
      if (steps >= options_.max_steps) {
        ++counts_.searches_given_up;
        return false;
      }
      steps += expand(id);
      for (const Number next : known.next) visits.add(next, depth + 1);
    }
    return true;
  }
  // Propagates bounds from successors to the visited states.
  void relax(const Visits& visits) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = visits.all.size(); i-- > 0;) {
        CompletionBounds& known = look_up(visits.all[i].id);
        for (const Number next : known.next) {
          const std::uint32_t upper = look_up(next).upper;
          if (upper == none || upper + 1 >= known.upper) continue;
          known.upper = upper + 1;
          changed     = true;
        }
      }
    }
  }

  // Decides for some states whether `left` tokens are enough.
  void search(const std::vector<Number>& from, std::uint32_t left) {
    Visits visits;
    for (const Number id : from) visits.add(id, 0);
    const bool is_whole = visit(visits, [left](const CompletionBounds& known, std::uint32_t depth) {
      return depth + known.lower > left;
    });
    relax(visits);
    if (!is_whole) return;
    for (const auto& [id, depth] : visits.all) {
      CompletionBounds& known = look_up(id);
      known.lower = std::max(known.lower, std::min(known.upper, left - std::min(left, depth) + 1));
    }
  }
  // Finds how many tokens a state needs.
  void find_shortest(Number id) {
    Visits visits;
    visits.add(id, 0);
    std::uint32_t best = look_up(id).upper;
    const bool is_whole =
        visit(visits, [&best](const CompletionBounds& known, std::uint32_t depth) {
          if (known.upper != none) best = std::min(best, depth + known.upper);
          return depth + known.lower >= best;
        });
    relax(visits);
    CompletionBounds& known = look_up(id);
    if (is_whole) known.lower = known.upper;
  }

  Constraint constraint_;
  CompletionOptions options_;
  TokenMask banned_;
  bool can_end_ = false;
  std::optional<grammar::TextLengths::Worst> far_;
  std::unordered_map<Number, CompletionBounds> known_;
  CompletionCounts counts_;
};

TOOLDECODE_INLINE Completions::Completions(const Constraint& constraint, CompletionOptions options)
    : search_(std::make_unique<Search>(constraint, std::move(options))) {}
TOOLDECODE_INLINE Completions::Completions(Completions&&) noexcept            = default;
TOOLDECODE_INLINE Completions& Completions::operator=(Completions&&) noexcept = default;
TOOLDECODE_INLINE Completions::~Completions()                                 = default;

TOOLDECODE_INLINE std::optional<std::size_t> Completions::shortest(State state,
                                                                   std::size_t enough) {
  return search_->shortest(state, enough);
}

TOOLDECODE_INLINE void Completions::narrow(State state, std::size_t remaining, MaskView words) {
  TOOLDECODE_ASSERT(remaining > 0);
  search_->narrow(state, remaining, words);
}

TOOLDECODE_INLINE bool Completions::is_far(State state, std::size_t remaining) {
  return search_->is_far(state, remaining);
}

TOOLDECODE_INLINE std::optional<std::string> Completions::find_text(State state) const {
  return search_->find_text(state);
}

TOOLDECODE_INLINE std::optional<std::vector<TokenId>> Completions::fewest_tokens(
    std::string_view text) const {
  return search_->fewest_tokens(text);
}

TOOLDECODE_INLINE bool Completions::can_end() const noexcept {
  return search_->can_end();
}

TOOLDECODE_INLINE const CompletionCounts& Completions::counts() const noexcept {
  return search_->counts();
}

}  // namespace tooldecode
