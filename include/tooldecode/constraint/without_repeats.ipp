#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/repeat_places.hpp>
#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Knowledge about the machine's states, shared by all copies; its mutex guards the texts too.
class WithoutRepeats::Places : public constraint::RepeatPlaces {
 public:
  Places(const ToolCallFSM& calls, std::size_t max_texts)
      : RepeatPlaces(
            calls.constraint(),
            [calls](std::span<const std::uint32_t> marks) { return calls.tool_of(marks); },
            max_texts) {}

  std::mutex mutex;
};

/// The texts before states, as a tree; guarded by the mutex of Places.
class WithoutRepeats::Texts {
 public:
  using Written = std::uint32_t;
  using Hints   = std::vector<std::string>;
  using Number  = constraint::RepeatPlaces::Number;
  using Tight   = constraint::RepeatPlaces::Tight;
  using Fits    = std::function<bool(std::string_view)>;

  Texts(const ToolCallFSM& calls, Places& places)
      : calls_(calls), places_(places), number_(next_number()) {
    nodes_.push_back({});
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  void require(const State& state) const {
    if (state.memory == number_ && state.written < nodes_.size()) return;
    throw Error(Errc::unknown_state, "",
                "the state is another constraint's, or of memory that was given up since");
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return nodes_.size() * (sizeof(Node) + 64) + hint_bytes_;
  }

  [[nodiscard]] std::optional<Written> find(Written before, std::string_view bytes) const {
    const auto known = children_.find({before, std::string(bytes)});
    return known == children_.end() ? std::nullopt : std::optional(known->second);
  }
  Written add(Written before, std::string_view bytes, Hints hints) {
    const auto made = static_cast<Written>(nodes_.size());
    for (const std::string& hint : hints) hint_bytes_ += hint.size() + sizeof(std::string);
    nodes_.push_back({before, std::string(bytes), std::move(hints)});
    children_.emplace(std::pair(before, std::string(bytes)), made);
    return made;
  }
  [[nodiscard]] Written before(Written at) const { return nodes_[at].before; }
  [[nodiscard]] const std::string& piece(Written at) const { return nodes_[at].bytes; }
  [[nodiscard]] const Hints& hints(Written at) const { return nodes_[at].hints; }
  [[nodiscard]] std::string text(Written at) const {
    std::vector<const std::string*> pieces;
    for (; at != 0; at = nodes_[at].before) pieces.push_back(&nodes_[at].bytes);
    std::string all;
    for (std::size_t i = pieces.size(); i-- > 0;) all += *pieces[i];
    return all;
  }
  static Hints behind(const Hints& hints, std::string_view bytes) {
    Hints left;
    for (const std::string& hint : hints) {
      if (hint.starts_with(bytes)) add_to(left, hint.substr(bytes.size()));
    }
    return left;
  }
  static void add_to(Hints& hints, std::string hint) {
    if (std::find(hints.begin(), hints.end(), hint) == hints.end())
      hints.push_back(std::move(hint));
  }

  [[nodiscard]] bool repeats(std::string_view answer) const {
    const auto calls = read(answer);
    for (std::size_t i = 1; i < calls.size(); ++i) {
      if (are_same(calls[i - 1], calls[i])) return true;
    }
    return false;
  }
  /// The predicate of RepeatPlaces for the completions of a text.
  [[nodiscard]] constraint::RepeatPlaces::AreTwoCalls are_two_calls(std::string text) const {
    return [this, text = std::move(text)](const std::string& one, const std::string& other) {
      const auto a = read(text + one), b = read(text + other);
      if (a.empty() || a.size() != b.size()) return false;
      for (std::size_t i = 0; i + 1 < a.size(); ++i) {
        if (!are_same(a[i], b[i])) return false;
      }
      return !are_same(a.back(), b.back());
    };
  }
  [[nodiscard]] auto asker(const std::string& text) const {
    return [this, &text](const std::string& bytes) { return are_two_calls(text + bytes); };
  }

  /// Whether no call was made yet, or the current one cannot become equal to the one before.
  [[nodiscard]] bool is_clear(ToolCallFSM::State at, Written written) {
    std::optional<bool>& known = nodes_[written].is_clear;
    if (!known) known = find_whether_clear(at, written);
    return *known;
  }
  /// Whether a token needs no check, because its call and the one before it cannot be equal.
  [[nodiscard]] bool is_safe(ToolCallFSM::State at, Written written, const Tight& token) {
    return (!token.ends_call || places_.can_end(token.next)) && is_clear(at, written);
  }

  /// A completion that repeats no call, from `hints` or from those of the state after a text.
  [[nodiscard]] std::optional<std::string> find_completion(const std::string& text,
                                                           const Hints& hints, Number state,
                                                           const Fits& fits) {
    const auto serves = [&](const std::string& rest) {
      return fits(rest) && !repeats(text + rest);
    };
    for (const std::string& hint : hints) {
      if (serves(hint)) return hint;
    }
    for (std::size_t i = 0; const std::string* rest = places_.completion(state, i); ++i) {
      if (serves(*rest)) return *rest;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool may_follow(ToolCallFSM::State at, Written written, const std::string& text,
                                const Tight& token) {
    if (is_safe(at, written, token)) return true;
    const std::string bytes = places_.trie().text(token.node);
    return find_completion(text + bytes, behind(hints(written), bytes), token.next, any)
        .has_value();
  }
  static bool any(std::string_view /*completion*/) { return true; }

 private:
  struct Node {
    Written before = 0;
    std::string bytes{};
    Hints hints{};
    std::optional<bool> is_clear{};
  };

  static std::uint32_t next_number() {
    static std::atomic<std::uint32_t> last{0};
    return ++last;
  }

  [[nodiscard]] std::vector<ToolCall> read(std::string_view answer) const {
    std::string text(answer);
    std::erase_if(text, [](char c) { return c == control_open || c == control_close; });
    return calls_.parse(text);
  }
  [[nodiscard]] const Tool* tool_of(const ToolCall& call) const {
    const auto found = calls_.tools().find(call.name);
    return found ? &calls_.tools()[*found] : nullptr;
  }
  [[nodiscard]] bool are_same(const ToolCall& a, const ToolCall& b) const {
    if (a.name != b.name) return false;
    const Tool* tool = tool_of(a);
    return call_key(a, tool) == call_key(b, tool);
  }

  [[nodiscard]] bool find_whether_clear(ToolCallFSM::State at, Written written) {
    const auto id           = calls_.constraint().automaton_state(at);
    const std::string* rest = places_.completion(id, 0);
    if (rest == nullptr) return false;
    const auto calls      = read(text(written) + *rest);
    const bool is_in_call = places_.is_in_call(id);
    if (!is_in_call && places_.can_end(id)) return calls.empty();
    if (calls.size() < 2) return true;
    if (!is_in_call) return false;
    // What precedes the current argument cannot change any more.
    const ToolCall& now = calls[calls.size() - 1];
    ToolCall last       = calls[calls.size() - 2];
    if (now.name != last.name) return true;
    const auto argument = calls_.find_argument(at);
    const Tool* tool    = tool_of(now);
    if (!argument || tool == nullptr) return false;
    const auto names = argument_names(*tool);
    if (*argument >= names.size()) return false;
    fill_defaults(last.arguments, tool->parameters);
    for (const auto& [key, value] : now.arguments.items()) {
      if (key == names[*argument]) break;
      ToolCall one{.name = now.name}, other{.name = now.name};
      one.arguments[key] = value;
      if (!last.arguments.contains(key)) return true;
      other.arguments[key] = last.arguments[key];
      if (!are_same(one, other)) return true;
    }
    return false;
  }

  ToolCallFSM calls_;
  Places& places_;
  std::uint32_t number_;
  std::vector<Node> nodes_;
  std::map<std::pair<Written, std::string>, Written> children_;
  std::size_t hint_bytes_ = 0;
};

TOOLDECODE_INLINE WithoutRepeats::WithoutRepeats(ToolCallFSM calls, RepeatOptions options)
    : calls_(std::move(calls)),
      options_(options),
      places_(std::make_shared<Places>(calls_, options_.max_texts)),
      texts_(std::make_shared<Texts>(calls_, *places_)) {}

TOOLDECODE_INLINE void WithoutRepeats::reset() {
  calls_.reset();
  if (calls_.initial().memory != places_->grammar().initial().memory) {
    places_ = std::make_shared<Places>(calls_, options_.max_texts);
  }
  texts_ = std::make_shared<Texts>(calls_, *places_);
}

TOOLDECODE_INLINE std::size_t WithoutRepeats::bytes() const {
  const std::lock_guard lock(places_->mutex);
  return calls_.bytes() + places_->bytes() + texts_->bytes();
}

TOOLDECODE_INLINE WithoutRepeats::State WithoutRepeats::initial() const noexcept {
  return {calls_.initial(), 0, texts_->number()};
}

TOOLDECODE_INLINE std::optional<WithoutRepeats::State> WithoutRepeats::advance(
    State state, TokenId token) const {
  if (vocabulary().is_end(token)) {
    if (!is_accepting(state)) return std::nullopt;
    return State{*calls_.advance(state.at, token), 0, state.memory};
  }
  if (!calls_.advance(state.at, token)) return std::nullopt;
  return advance_bytes(state, vocabulary().grammar_bytes(token));
}

TOOLDECODE_INLINE std::optional<WithoutRepeats::State> WithoutRepeats::advance_bytes(
    State state, std::string_view bytes) const {
  const auto next = calls_.advance_bytes(state.at, bytes);
  if (!next || bytes.empty()) return next ? std::optional(state) : std::nullopt;
  const std::lock_guard lock(places_->mutex);
  texts_->require(state);
  if (const auto known = texts_->find(state.written, bytes)) {
    return State{*next, *known, state.memory};
  }
  const auto from = calls_.constraint().automaton_state(state.at);
  const auto to   = calls_.constraint().automaton_state(*next);
  Texts::Hints hints;
  hints                = Texts::behind(texts_->hints(state.written), bytes);
  const bool ends_call = places_->ends_call(from, bytes);
  if (ends_call || !places_->can_end(to)) {
    const Texts::Tight token{0, to, ends_call};
    const std::string text = texts_->text(state.written) + std::string(bytes);
    const auto& pair       = places_->pair(to, texts_->are_two_calls(text));
    if ((ends_call || !pair) && !texts_->is_safe(state.at, state.written, token)) {
      const auto found = texts_->find_completion(text, hints, to, Texts::any);
      if (!found) return std::nullopt;
      Texts::add_to(hints, *found);
    }
    if (pair) {
      Texts::add_to(hints, pair->one);
      Texts::add_to(hints, pair->other);
    }
  }
  return State{*next, texts_->add(state.written, bytes, std::move(hints)), state.memory};
}

TOOLDECODE_INLINE void WithoutRepeats::fill_mask(State state, MaskView words) const {
  calls_.fill_mask(state.at, words);
  if (is_finished(state)) return;
  const bool may_end = is_accepting(state);
  const std::lock_guard lock(places_->mutex);
  texts_->require(state);
  if (!may_end) {
    for (const TokenId token : vocabulary().end_tokens()) words.erase(token);
  }
  const std::string text = texts_->text(state.written);
  const auto& tokens =
      places_->tokens(calls_.constraint().automaton_state(state.at), texts_->asker(text));
  for (const Texts::Tight& token : tokens.tight) {
    if (texts_->may_follow(state.at, state.written, text, token)) continue;
    for (const std::uint32_t value : places_->trie().values(token.node)) words.erase(value);
  }
}

TOOLDECODE_INLINE bool WithoutRepeats::is_accepting(State state) const {
  if (!calls_.is_accepting(state.at)) return false;
  if (is_finished(state)) return true;
  const std::lock_guard lock(places_->mutex);
  texts_->require(state);
  // Outside a call, the last call was checked when it ended.
  const auto id = calls_.constraint().automaton_state(state.at);
  return !places_->is_in_call(id) || !texts_->repeats(texts_->text(state.written));
}

/// Completions within a token budget, without repeated calls.
class RepeatCompletions::Search {
 public:
  Search(const WithoutRepeats& constraint, CompletionOptions options)
      : constraint_(constraint), inner_(constraint.calls().constraint(), std::move(options)) {}

  [[nodiscard]] const CompletionCounts& counts() const noexcept { return inner_.counts(); }

  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough) {
    if (constraint_.is_finished(state)) return 0;
    const std::lock_guard lock(places().mutex);
    texts().require(state);
    if (!needs_another(state)) return inner_.shortest(state.at, enough);
    const std::string text = texts().text(state.written);
    if (const auto found = find(state, text, enough)) return *tokens_of(*found);
    std::optional<std::size_t> least;
    const auto try_one = [&](const std::string& rest) {
      const auto tokens = tokens_of(rest);
      if (tokens && (!least || *tokens < *least) && !texts().repeats(text + rest)) least = tokens;
    };
    for (const std::string& hint : hints(state)) try_one(hint);
    const auto id = number(state);
    for (std::size_t i = 0; i < compared; ++i) {
      const std::string* rest = places().completion(id, i);
      if (rest == nullptr) break;
      try_one(*rest);
    }
    if (!least) {
      if (const auto found = find(state, text, std::numeric_limits<std::size_t>::max())) {
        least = tokens_of(*found);
      }
    }
    return least;
  }

  void narrow(State state, std::size_t remaining, MaskView words) {
    if (constraint_.is_finished(state)) return;
    const std::lock_guard lock(places().mutex);
    texts().require(state);
    const std::vector<std::uint32_t> all(words.begin(), words.end());
    inner_.narrow(state.at, remaining, words);
    const std::size_t left = remaining - 1;
    const std::string text = texts().text(state.written);
    std::optional<std::string> way;
    if (needs_another(state)) {
      way = find(state, text, remaining);
      if (way) found_[state.written] = *way;
    }
    if (left > 0) narrow(state, text, left, words);
    if (!way || way->empty()) return;
    const auto tokens = inner_.fewest_tokens(*way);
    if (ConstMaskView(all).contains(tokens->front())) words.insert(tokens->front());
  }

 private:
  using Texts  = WithoutRepeats::Texts;
  using Hints  = Texts::Hints;
  using Number = constraint::RepeatPlaces::Number;

  // Completions to compare for the shortest one if none is short enough.
  static constexpr std::size_t compared = 64;

  [[nodiscard]] WithoutRepeats::Places& places() const noexcept { return *constraint_.places_; }
  [[nodiscard]] Texts& texts() const noexcept { return *constraint_.texts_; }
  [[nodiscard]] Number number(State state) const {
    return constraint_.calls().constraint().automaton_state(state.at);
  }

  // Whether the shortest completion may repeat a call.
  [[nodiscard]] bool needs_another(State state) const {
    const Number id = number(state);
    return !places().can_end(id) && !texts().is_clear(state.at, state.written);
  }
  // Counts the end token; nullopt if no tokens write the text.
  [[nodiscard]] std::optional<std::size_t> tokens_of(std::string_view rest) const {
    if (!inner_.can_end()) return std::nullopt;
    const auto tokens = inner_.fewest_tokens(rest);
    return tokens ? std::optional(tokens->size() + 1) : std::nullopt;
  }
  [[nodiscard]] Texts::Fits fits(std::size_t most) const {
    return [this, most](std::string_view rest) {
      const auto tokens = tokens_of(rest);
      return tokens && *tokens <= most;
    };
  }
  // Completions found earlier, also under a budget.
  [[nodiscard]] Hints hints(State state) const {
    Hints all        = texts().hints(state.written);
    const auto known = found_.find(texts().before(state.written));
    if (state.written != 0 && known != found_.end() &&
        known->second.starts_with(texts().piece(state.written))) {
      Texts::add_to(all, known->second.substr(texts().piece(state.written).size()));
    }
    return all;
  }
  [[nodiscard]] std::optional<std::string> find(State state, const std::string& text,
                                                std::size_t most) {
    return texts().find_completion(text, hints(state), number(state), fits(most));
  }

  void narrow(State state, const std::string& text, std::size_t left, MaskView words) {
    const Number id    = number(state);
    const auto& tokens = places().tokens(id, texts().asker(text));
    Hints known        = hints(state);
    if (const auto at = found_.find(state.written); at != found_.end()) {
      Texts::add_to(known, at->second);
    }
    const auto drop_unless_room = [&](core::ByteTrie::NodeIndex node, Number next) {
      const auto values = places().trie().values(node);
      if (std::none_of(values.begin(), values.end(),
                       [&](std::uint32_t value) { return words.contains(value); })) {
        return;
      }
      const std::string bytes = places().trie().text(node);
      if (texts().find_completion(text + bytes, Texts::behind(known, bytes), next, fits(left))) {
        return;
      }
      for (const std::uint32_t value : values) words.erase(value);
    };
    for (const Texts::Tight& token : tokens.tight) {
      if (!texts().is_safe(state.at, state.written, token))
        drop_unless_room(token.node, token.next);
    }
    std::unordered_map<Number, bool> is_short;
    for (const Number next : tokens.loose) {
      if (!places().can_end(next) && !has_room_for_both(next, left)) is_short[next] = true;
    }
    if (is_short.empty() || texts().is_clear(state.at, state.written)) return;
    places().walk(id, [&](core::ByteTrie::NodeIndex node, Number next, bool ends_call) {
      if (!ends_call && is_short.contains(next)) drop_unless_room(node, next);
    });
  }
  [[nodiscard]] bool has_room_for_both(Number next, std::size_t left) {
    const auto& pair = places().pair(next, [](const auto&, const auto&) { return false; });
    return pair && fits(left)(pair->one) && fits(left)(pair->other);
  }

  WithoutRepeats constraint_;
  Completions inner_;
  std::unordered_map<Texts::Written, std::string> found_;  // that fit, by the text before
};

TOOLDECODE_INLINE RepeatCompletions::RepeatCompletions(const WithoutRepeats& constraint,
                                                       CompletionOptions options)
    : search_(std::make_unique<Search>(constraint, std::move(options))) {}
TOOLDECODE_INLINE RepeatCompletions::RepeatCompletions(RepeatCompletions&&) noexcept = default;
TOOLDECODE_INLINE RepeatCompletions& RepeatCompletions::operator=(RepeatCompletions&&) noexcept =
    default;
TOOLDECODE_INLINE RepeatCompletions::~RepeatCompletions() = default;

TOOLDECODE_INLINE std::optional<std::size_t> RepeatCompletions::shortest(State state,
                                                                         std::size_t enough) {
  return search_->shortest(state, enough);
}

TOOLDECODE_INLINE void RepeatCompletions::narrow(State state, std::size_t remaining,
                                                 MaskView words) {
  TOOLDECODE_ASSERT(remaining > 0);
  search_->narrow(state, remaining, words);
}

TOOLDECODE_INLINE const CompletionCounts& RepeatCompletions::counts() const noexcept {
  return search_->counts();
}

TOOLDECODE_INLINE bool WithoutRepeats::is_finished(State state) const noexcept {
  return calls_.is_finished(state.at);
}

TOOLDECODE_INLINE RepeatCompletions make_completions(const WithoutRepeats& constraint,
                                                     CompletionOptions options) {
  return RepeatCompletions(constraint, std::move(options));
}

}  // namespace tooldecode
