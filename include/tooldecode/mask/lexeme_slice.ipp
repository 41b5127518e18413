#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE LexemeSlice::LexemeSlice(const Vocabulary& vocabulary, const core::ByteTrie& trie,
                                           const TokenClasses& classes, const text::Dfa& dfa,
                                           text::Dfa::State state, core::ByteTrie::NodeIndex node)
    : vocabulary_size_(vocabulary.size()), classes_(&classes), start_(state) {
  if (node == 0) plain_ = classes.find(dfa, state);
  may_end_in_class_ = plain_ && plain_->counts && dfa.may_end_inside();
  if (node == 0 && !plain_) plain_ = classes.find_bounded(dfa, state);
  past_ = build(vocabulary, trie, dfa, state, node);
  staying_.resize(std::max(staying_.size(), counted()));
  by_limit_.resize(staying_.size());
  if (!plain_) {
    count_ = closing_.size();
    for (const std::vector<TokenId>& tokens : staying_) count_ += tokens.size();
  }
  if (!is_listed()) {
    inside_ = make_staying(max_units());
    for (const CountedToken& token : closing_) inside_.insert(token.token);
    count_ = inside_.count();
  }
  bytes_ += core::heap_bytes(sizeof *this) + core::heap_bytes(staying_) +
            core::heap_bytes(closing_) + core::heap_bytes(past_end_) + past_.bytes() +
            inside_.bytes() + core::heap_bytes(by_limit_) + core::heap_bytes(reached_);
  for (const std::vector<TokenId>& tokens : staying_) bytes_ += core::heap_bytes(tokens);
}

TOOLDECODE_INLINE std::uint32_t LexemeSlice::max_units() const noexcept {
  return static_cast<std::uint32_t>(staying_.size() - 1);
}

TOOLDECODE_INLINE const TokenMask& LexemeSlice::staying(std::uint32_t limit) const {
  const std::lock_guard lock(mutex_);
  auto& mask = by_limit_[std::min<std::size_t>(limit, by_limit_.size() - 1)];
  if (!mask) {
    mask = std::make_unique<TokenMask>(make_staying(limit));
    bytes_ += core::heap_bytes(sizeof *mask) + mask->bytes();
  }
  return *mask;
}

TOOLDECODE_INLINE TokenMask LexemeSlice::make_staying(std::uint32_t limit) const {
  TokenMask mask(vocabulary_size_);
  if (plain_) {
    const std::size_t most = plain_->most;
    mask = classes_->up_to(plain_->k, plain_->counts ? std::min<std::size_t>(most, limit) : most);
    classes_->for_each_apart(*plain_, [&](TokenId token) { mask.erase(token); });
  }
  for (std::size_t units = 0; units < staying_.size() && units <= limit; ++units) {
    for (const TokenId token : staying_[units]) mask.insert(token);
  }
  return mask;
}

TOOLDECODE_INLINE std::optional<std::vector<TokenId>> LexemeSlice::not_fitting(
    std::uint32_t min, std::uint32_t max, std::size_t limit) const {
  std::vector<TokenId> tokens;
  for (std::size_t units = std::size_t{max} + 1; units < staying_.size(); ++units) {
    const std::size_t plain = units < counted() ? classes_->by_characters(plain_->k)[units] : 0;
    if (tokens.size() + staying_[units].size() + plain > limit) return std::nullopt;
    tokens.insert(tokens.end(), staying_[units].begin(), staying_[units].end());
    if (plain == 0) continue;
    classes_->for_each(plain_->k, units, [&](TokenId token) { tokens.push_back(token); });
  }
  for (const CountedToken& token : closing_) {
    if (token.units < min || token.units > max) tokens.push_back(token.token);
  }
  if (tokens.size() > limit) return std::nullopt;
  return tokens;
}

TOOLDECODE_INLINE std::optional<std::vector<CountedToken>> LexemeSlice::staying_between(
    std::uint32_t min, std::uint32_t max, std::size_t limit) const {
  if (plain_ && !plain_->counts) return std::nullopt;  // plain tokens are not listed by their units
  std::vector<CountedToken> tokens;
  for (std::uint32_t units = min; units <= std::min(max, max_units()); ++units) {
    const std::size_t plain = units < counted() ? classes_->by_characters(plain_->k)[units] : 0;
    if (tokens.size() + staying_[units].size() + plain > limit) return std::nullopt;
    for (const TokenId token : staying_[units]) tokens.push_back({token, units});
    if (plain == 0) continue;
    classes_->for_each(plain_->k, units, [&](TokenId token) { tokens.push_back({token, units}); });
  }
  return tokens;
}

TOOLDECODE_INLINE std::size_t LexemeSlice::counted() const noexcept {
  return plain_ && plain_->counts ? plain_->most + 1 : 0;
}

TOOLDECODE_INLINE bool LexemeSlice::may_end_inside(std::uint32_t limit) const noexcept {
  return may_end_inside_ || (may_end_in_class_ && limit < max_units());
}

TOOLDECODE_INLINE core::ByteTrie LexemeSlice::build(const Vocabulary& vocabulary,
                                                    const core::ByteTrie& trie,
                                                    const text::Dfa& dfa, text::Dfa::State start,
                                                    core::ByteTrie::NodeIndex root) {
  std::vector<core::ByteTrie::Entry> suffixes;
  std::vector<text::Dfa::State> reached;
  std::vector<bool> is_reached(dfa.size());
  const auto reach = [&](text::Dfa::State state) {
    if (!is_reached[state]) reached.push_back(state);
    is_reached[state] = true;
  };
  bool is_known = true;  // what tokens of the class reach
  if (plain_) {
    const auto of_class = classes_->reached(*plain_, dfa, start, max_reached);
    is_known            = !of_class.empty();
    std::ranges::for_each(of_class, reach);
  }
  const ClassWalk walk(trie, *classes_, plain_);
  const auto visit = [&](const Visit& at, std::vector<Visit>& deeper) {
    walk.for_each_child(at.place, [&](const ClassWalk::Child& child) {
      const text::Dfa::State next = dfa.next(at.state, child.label);
      if (next == text::Dfa::dead) return;
      reach(next);
      const bool closes        = dfa.closing(next);
      const bool begins        = !closes && dfa.boundary(at.state);
      const std::uint32_t more = at.units + (begins ? 1 : 0);
      if (more >= staying_.size()) staying_.resize(more + 1);
      for (const std::uint32_t value : walk.tokens(child)) {
        const auto token = static_cast<TokenId>(value);
        if (closes) {
          closing_.push_back({token, more});
        } else {
          staying_[more].push_back(token);
        }
      }
      if (dfa.accepting(next)) {
        if (dfa.live(next).empty()) {
          return collect_past(vocabulary, trie, child.node, more, suffixes);
        }
        // A lexeme that may also continue, such as white space, has too many tokens past its end.
        may_end_inside_ = true;
      }
      const ClassWalk::Place below = walk.below(child);
      if (!below.empty()) deeper.push_back({below, next, more});
    });
  };
  // Level by level, in the memory order of the trie.
  std::vector<Visit> deeper;
  for (std::vector<Visit> level{{walk.begin(root), start, 0}}; !level.empty(); level.swap(deeper)) {
    deeper.clear();
    for (std::size_t i = 0; i < level.size(); ++i) {
      // Slices are shared, so no budget is charged for them, but they can be cancelled.
      if (i % 256 == 0) BuildBudget::spend(0);
      visit(level[i], deeper);
    }
  }
  if (is_known && reached.size() <= max_reached) {
    reached_.assign(reached.begin(), reached.end());
    std::ranges::sort(reached_);
  }
  return core::ByteTrie(std::move(suffixes));
}

TOOLDECODE_INLINE bool LexemeSlice::stands_for(const text::Dfa& dfa, text::Dfa::State other) const {
  return !reached_.empty() && dfa.is_alike(start_, other, reached_);
}

TOOLDECODE_INLINE void LexemeSlice::collect_past(const Vocabulary& vocabulary,
                                                 const core::ByteTrie& trie,
                                                 core::ByteTrie::NodeIndex end, std::uint32_t units,
                                                 std::vector<core::ByteTrie::Entry>& suffixes) {
  std::vector<std::pair<core::ByteTrie::NodeIndex, std::size_t>> work{{end, 0}};
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto [node, length] = work[i];
    const auto [first, last]  = trie.children(node);
    for (auto child = first; child < last; ++child) {
      for (const std::uint32_t value : trie.values(child)) {
        const std::string_view bytes = vocabulary.grammar_bytes(static_cast<TokenId>(value));
        suffixes.emplace_back(bytes.substr(bytes.size() - length - 1),
                              static_cast<std::uint32_t>(past_end_.size()));
        past_end_.push_back({static_cast<TokenId>(value), units});
      }
      work.emplace_back(child, length + 1);
    }
  }
}

}  // namespace tooldecode::mask
