#pragma once

#include <algorithm>

#include <tooldecode/mask/shared_states.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE void MaskEntry::fill(MaskView words) const noexcept {
  if (base != nullptr) {
    std::copy_n(base->words().begin(), words.size(), words.begin());
  } else {
    words.clear();
  }
  for (const TokenId token : removed) words.erase(token);
  for (const TokenId token : added) words.insert(token);
}

TOOLDECODE_INLINE void MaskEntry::update(const MaskEntry& shown, MaskView words) const noexcept {
  if (&shown == this) return;
  const auto listed = [](const MaskEntry& entry) {
    return entry.removed.size() + entry.added.size();
  };
  // A listed token costs about as much as four words.
  if (base != shown.base || 4 * (listed(*this) + listed(shown)) > words.size()) return fill(words);
  const auto restore = [&](TokenId token) {
    base != nullptr && base->contains(token) ? words.insert(token) : words.erase(token);
  };
  for (const TokenId token : shown.removed) restore(token);
  for (const TokenId token : shown.added) restore(token);
  for (const TokenId token : removed) words.erase(token);
  for (const TokenId token : added) words.insert(token);
}

TOOLDECODE_INLINE SharedStates::SharedStates(const Vocabulary& vocabulary,
                                             const core::ByteTrie& trie,
                                             const TokenClasses& classes)
    : vocabulary_(&vocabulary),
      trie_(&trie),
      classes_(&classes),
      automaton_(static_cast<std::uint32_t>(trie.longest())) {
  make_common_slice();
}

TOOLDECODE_INLINE SharedStates::SharedStates(const SharedStates& from)
    : vocabulary_(from.vocabulary_),
      trie_(from.trie_),
      classes_(from.classes_),
      automaton_(from.automaton_.shared_nodes(),
                 static_cast<std::uint32_t>(from.trie_->longest())) {
  make_common_slice();
}

TOOLDECODE_INLINE SharedStates::Slice& SharedStates::Slices::operator[](text::Dfa::State state) {
  const auto at = std::ranges::lower_bound(by_state, state, {}, &Slice::state);
  if (at != by_state.end() && at->state == state) return *at;
  return *by_state.insert(at, Slice{.state = state});
}

TOOLDECODE_INLINE const LexemeSlice* SharedStates::slice(const text::DfaPointer& dfa,
                                                         text::Dfa::State state,
                                                         core::ByteTrie::NodeIndex node) const {
  const std::lock_guard lock(mutex_);
  Slices& known            = slices_[{number(dfa), node}];
  const std::size_t before = known.bytes();
  Slice& of_state          = known[state];
  ++of_state.asked;
  if (of_state.made == nullptr) of_state.made = find_slice(known, of_state, *dfa, state, node);
  bytes_ += known.bytes() - before;
  if (of_state.made == nullptr) return nullptr;
  const std::size_t bytes = of_state.made->slice.bytes();
  bytes_ += bytes - std::exchange(of_state.made->counted, bytes);
  return &of_state.made->slice;
}

TOOLDECODE_INLINE SharedStates::MadeSlice* SharedStates::find_slice(
    Slices& known, Slice& of_state, const text::Dfa& dfa, text::Dfa::State state,
    core::ByteTrie::NodeIndex node) const {
  const std::size_t made = known.made.size();
  const std::size_t first =
      std::max<std::size_t>(of_state.compared, made - std::min(made, compared_slices));
  for (std::size_t i = made; i > first; --i) {
    if (known.made[i - 1]->slice.stands_for(dfa, state)) return known.made[i - 1].get();
  }
  of_state.compared   = static_cast<std::uint32_t>(made);
  const bool is_due   = ++known.asked >= known.next;
  const bool is_ready = made < ready_slices || of_state.asked >= asks_before_slice;
  if (!is_due && !is_ready) return nullptr;
  std::unique_ptr<MadeSlice> fresh(
      new MadeSlice{LexemeSlice(*vocabulary_, *trie_, *classes_, dfa, state, node)});
  known.made.push_back(std::move(fresh));
  if (is_due) known.next = 2 * known.asked;
  return known.made.back().get();
}

TOOLDECODE_INLINE const LexemeSlice& SharedStates::ready_slice(
    const text::DfaPointer& dfa, text::Dfa::State state, core::ByteTrie::NodeIndex node) const {
  for (;;) {
    if (const LexemeSlice* made = slice(dfa, state, node)) return *made;
  }
}

TOOLDECODE_INLINE const std::vector<TokenId>& SharedStates::tokens_below(
    core::ByteTrie::NodeIndex node) const {
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = below_.try_emplace(node);
  std::vector<TokenId>& all  = known->second;
  if (!is_new) return all;
  std::vector<core::ByteTrie::NodeIndex> nodes{node};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::uint32_t token : trie_->values(nodes[i])) {
      all.push_back(static_cast<TokenId>(token));
    }
    const auto [first, last] = trie_->children(nodes[i]);
    for (auto child = first; child < last; ++child) nodes.push_back(child);
  }
  std::ranges::sort(all);
  all.shrink_to_fit();
  bytes_ += core::heap_bytes(all);
  return all;
}

TOOLDECODE_INLINE const PastTokens* SharedStates::find_past(
    const LexemeSlice& slice, std::span<const grammar::StackFrame> after) const {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = past_.equal_range(past_hash(slice, after));
  const auto known         = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.slice == &slice && std::ranges::equal(entry.second.after, after);
  });
  return known == last ? nullptr : &known->second.tokens;
}

TOOLDECODE_INLINE const PastTokens& SharedStates::keep_past(
    const LexemeSlice& slice, std::span<const grammar::StackFrame> after, PastTokens tokens) const {
  tokens.shrink_to_fit();
  const std::lock_guard lock(mutex_);
  const auto kept = past_.emplace(past_hash(slice, after),
                                  Past{&slice, {after.begin(), after.end()}, std::move(tokens)});
  bytes_ += core::heap_bytes(kept->second.after) + core::heap_bytes(kept->second.tokens);
  return kept->second.tokens;
}

TOOLDECODE_INLINE const PastInValue* SharedStates::find_past(const LexemeSlice& slice,
                                                             grammar::StoredId value) const {
  const std::lock_guard lock(mutex_);
  const auto known = past_in_value_.find({&slice, value});
  return known == past_in_value_.end() ? nullptr : &known->second;
}

TOOLDECODE_INLINE const PastInValue& SharedStates::keep_past(const LexemeSlice& slice,
                                                             grammar::StoredId value,
                                                             PastInValue past) const {
  past.tokens.shrink_to_fit();
  past.ends.shrink_to_fit();
  const std::lock_guard lock(mutex_);
  const PastInValue& kept = past_in_value_[{&slice, value}] = std::move(past);
  bytes_ += core::heap_bytes(4 * sizeof(void*) + sizeof *past_in_value_.begin()) +
            core::heap_bytes(kept.tokens) + core::heap_bytes(kept.ends);
  return kept;
}

TOOLDECODE_INLINE std::size_t SharedStates::bytes() const {
  const std::size_t states = automaton_.bytes();
  const std::lock_guard lock(mutex_);
  using core::heap_bytes;
  constexpr std::size_t lexeme = heap_bytes(4 * sizeof(void*) + sizeof *slices_.begin());
  return states + bytes_ + heap_bytes(masks_) + lexeme * slices_.size() + heap_bytes(past_) +
         heap_bytes(lexemes_) + heap_bytes(below_);
}

TOOLDECODE_INLINE void SharedStates::make_common_slice() {
  const text::DfaPointer& common = text::any_string(text::ValueSyntax::json, '"');
  (void)ready_slice(common, common->next(0, '"'), 0);
}

TOOLDECODE_INLINE std::uint32_t SharedStates::next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t number = 0;
  while (number == 0) number = ++last;
  return number;
}

TOOLDECODE_INLINE std::size_t SharedStates::number(const text::DfaPointer& dfa) const {
  const auto [first, last] = lexemes_.equal_range(dfa->hash());
  for (auto known = first; known != last; ++known) {
    const auto& [other, number] = known->second;
    if (other == dfa || *other == *dfa) return number;
  }
  const std::size_t fresh = lexemes_.size();
  lexemes_.emplace(dfa->hash(), std::pair(dfa, fresh));
  return fresh;
}

TOOLDECODE_INLINE std::shared_ptr<SharedStates> StatesReset::states(const SharedStates& from,
                                                                    std::size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  if (!latest_ || latest_->bytes() > max_bytes) {
    latest_ = std::make_shared<SharedStates>(from);
  }
  return latest_;
}

TOOLDECODE_INLINE std::shared_ptr<StatesReset> SharedStates::renewal() const {
  const std::lock_guard lock(mutex_);
  auto known = renewal_.lock();
  if (!known) renewal_ = known = std::make_shared<StatesReset>();
  return known;
}

}  // namespace tooldecode::mask
