#pragma once

#include <algorithm>

#include <tooldecode/decode/batch_loop.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/rule_ref.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE BatchLoop::BatchLoop(ModelRef model, BatchOptions options)
    : model_(model), options_(options), prefixes_(model, options.prefix_cache), pass_(model) {
  if (options.max_prefill == 0) {
    throw Error(Errc::invalid_option, "max_prefill", options.max_prefill,
                "must be 1 or more, or no prompt is ever read");
  }
}

TOOLDECODE_INLINE BatchLoop::Id BatchLoop::add(BatchItem item) {
  if (item.drafter.reads_hidden()) require_abilities(model_, item.drafter);
  require_logits(model_, item.constraint);
  const LogitsPipeline pipeline{item.options.logits()};
  require_prompt(model_, item.prompt);
  if (item.options.always_ends) {
    require_room(model_, item.constraint, item.prompt, pipeline, item.options);
  }
  arrived_.push_back(std::make_unique<Slot>(++last_id_, std::move(item)));
  return last_id_;
}

TOOLDECODE_INLINE void BatchLoop::resume(Id id, std::span<const TokenId> tokens) {
  if (Slot* slot = find(id); slot && slot->waits) go_on(*slot, tokens);
  throw_first();
}

TOOLDECODE_INLINE void BatchLoop::leave(Id id) {
  std::erase_if(arrived_, [id](const auto& slot) { return slot->id == id; });
  if (Slot* slot = find(id); slot != nullptr && !slot->retired) retire(*slot);
  erase_retired();
}

TOOLDECODE_INLINE bool BatchLoop::step() {
  erase_retired();  // of a step that threw
  admit();
  erase_retired();
  unpark();
  ++steps_;
  std::size_t level = 0, tokens = 0, prefill = options_.max_prefill;
  std::vector<Slot*> reading;
  const std::vector<Slot*> ready = find_ready(level);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (i >= level && tokens >= options_.max_shared) break;
    Slot& slot = *ready[i];
    auto& now  = *slot.now;
    alone(slot, [&] {
      while (!now.is_finished() && now.take_forced()) {}
      if (now.is_finished()) return;
      SpeculativeSequence* const drafting = now.speculative();
      if (drafting != nullptr && model_.abilities().tree) drafting->prepare();
      reading.push_back(&slot);
      std::size_t count = now.unread_count();
      if (now.is_prefilling()) {
        count = std::min(count, prefill);
        prefill -= count;
      }
      tokens += count;
      if (drafting != nullptr) tokens += drafting->draft_size();
    });
  }
  std::ranges::sort(reading, {}, &Slot::id);
  share_prefill(reading);
  if (!reading.empty()) read(reading);
  for (Slot* slot : reading) slot->last = steps_;
  for (const auto& slot : present_) {
    if (slot->waits || slot->retired || !slot->now->is_finished()) continue;
    alone(*slot, [&] { end(*slot); });
  }
  erase_retired();
  throw_first();
  return !ready.empty();
}

TOOLDECODE_INLINE BatchLoop::Slot* BatchLoop::find(Id id) {
  const auto found = std::find_if(present_.begin(), present_.end(),
                                  [id](const auto& slot) { return slot->id == id; });
  return found == present_.end() ? nullptr : found->get();
}

TOOLDECODE_INLINE std::vector<BatchLoop::Slot*> BatchLoop::find_ready(std::size_t& level) {
  std::vector<Slot*> ready;
  for (const auto& slot : present_) {
    if (!slot->waits && !slot->parked && !slot->retired) ready.push_back(slot.get());
  }
  level = ready.size();
  if (options_.max_shared == BatchOptions().max_shared) return ready;
  std::vector<FairCandidate> candidates;
  for (const Slot* slot : ready) candidates.push_back({&slot->item.origin, slot->last});
  const FairOrder fair = fair_order(candidates);
  level                = fair.level;
  std::vector<Slot*> ordered;
  for (const std::size_t i : fair.order) ordered.push_back(ready[i]);
  return ordered;
}

TOOLDECODE_INLINE void BatchLoop::admit() {
  std::size_t waiting = 0;  // their places are kept
  for (auto next = arrived_.begin();
       next != arrived_.end() && present_.size() + waiting < options_.max_batch;) {
    Slot& slot              = **next;
    const KnownPrefix known = find_known(slot);
    if (known.is_worth_waiting) {
      ++waiting;
      ++next;
      continue;
    }
    std::optional<CachedPrefix> read;
    if (!with_room([&] { read.emplace(take_over(slot, known)); })) return;
    counts_.prompt_tokens += slot.tokens.size();
    slot.reused = model_.length(read->cache);
    counts_.reused_tokens += slot.reused;
    present_.push_back(std::move(*next));
    next = arrived_.erase(next);
    alone(slot, [&] { begin(slot, std::move(*read)); });
  }
}

TOOLDECODE_INLINE std::size_t BatchLoop::readable(const Slot& from, const Slot& slot) const {
  if (from.retired || options_.prefix_cache == 0) return 0;
  // A sequence that makes no drafts keeps no states, which a drafter needs of the whole prefix.
  if (from.item.make && from.item.drafter.reads_hidden()) return 0;
  return shared_with_prompt(from.tokens, slot.tokens);
}

TOOLDECODE_INLINE BatchLoop::KnownPrefix BatchLoop::find_known(const Slot& slot) const {
  KnownPrefix known{.length = prefixes_.known(slot.tokens)};
  std::size_t reading = 0;
  for (const auto& from : present_) {
    const std::size_t shared = readable(*from, slot);
    if (shared == 0) continue;
    const std::size_t read = std::min(shared, cached(*from));
    if (read > known.length) known = {.length = read, .from = from.get()};
    // One that has its turn only now and then is not worth waiting for.
    const bool has_turn = from->last == 0 || from->last == steps_;
    if (has_turn && !from->waits && !from->parked && from->now->is_prefilling()) {
      reading = std::max(reading, shared);
    }
  }
  known.is_worth_waiting = reading >= known.length + worth_waiting;
  return known;
}

TOOLDECODE_INLINE CachedPrefix BatchLoop::take_over(const Slot& slot, const KnownPrefix& known) {
  if (known.from != nullptr) {
    try {
      return fork_prefix(model_, known.from->now->read_so_far(), known.length);
    } catch (const Error& error) {  // no room, or a model that cannot forget a part
      if (error.code() != Errc::limit_exceeded) throw;
    }
  }
  auto left = prefixes_.find(slot.tokens);
  return left ? std::move(*left) : CachedPrefix{model_.make_cache()};
}

TOOLDECODE_INLINE bool BatchLoop::with_room(const std::function<void()>& work) {
  for (;;) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (error.code() != Errc::limit_exceeded) throw;
      if (prefixes_.size() == 0 && present_.empty()) throw;
      if (prefixes_.size() == 0) return false;
      prefixes_.clear();
    }
  }
}

TOOLDECODE_INLINE void BatchLoop::begin(Slot& slot, CachedPrefix read) {
  if (slot.item.reset) slot.item.reset();
  slot.run.emplace(Run{slot.item.constraint, slot.tokens, slot.pipeline, slot.item.options,
                       model_.context_length()});
  if (slot.item.make) {
    slot.now = slot.item.make(model_, *slot.run, std::move(read));
  } else {
    slot.now = std::make_unique<SpeculativeSequence>(model_, *slot.run, slot.item.drafter,
                                                     verify::RuleRef(verifier_), std::move(read));
  }
}

TOOLDECODE_INLINE void BatchLoop::share_prefill(std::vector<Slot*>& slots) const {
  const auto is_prefilling = [](const Slot* slot) { return slot->now->is_prefilling(); };
  const auto count         = std::count_if(slots.begin(), slots.end(), is_prefilling);
  if (count == 0) return;
  std::vector<std::size_t> tokens(slots.size());  // of each that reads a prompt
  std::size_t left        = options_.max_prefill;
  const std::size_t share = std::max(least_share, left / static_cast<std::size_t>(count));
  for (const std::size_t most : {share, left}) {  // what short prompts leave goes to the first long
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!is_prefilling(slots[i])) continue;
      const std::size_t unread = slots[i]->now->unread_count() - tokens[i];
      const std::size_t more   = std::min({unread, most, left});
      tokens[i] += more;
      left -= more;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (is_prefilling(slots[i])) {
      if (tokens[i] == 0) continue;
      slots[i]->now->limit_reading(tokens[i]);
    }
    slots[kept++] = slots[i];
  }
  slots.resize(kept);
}

TOOLDECODE_INLINE void BatchLoop::read(std::vector<Slot*>& slots) {
  while (!with_room([&] { run(slots); })) {
    if (drop_largest_draft(slots)) continue;
    Slot* const last = find_last(slots);
    if (last == nullptr) {  // it already has all the room, so this throws, or others freed some
      return alone(*slots.front(), [&] {
        run(slots);
        slots.front()->now->take_pass(pass_, firsts_.front());
      });
    }
    park(*last);
    std::erase(slots, last);
    if (slots.empty()) return;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    alone(*slots[i], [&] { slots[i]->now->take_pass(pass_, firsts_[i]); });
  }
}

TOOLDECODE_INLINE bool BatchLoop::drop_largest_draft(std::span<Slot* const> slots) {
  SpeculativeSequence* largest = nullptr;
  for (Slot* slot : slots) {
    SpeculativeSequence* const drafting = slot->now->speculative();
    if (drafting == nullptr || !drafting->has_draft()) continue;
    if (largest == nullptr || drafting->draft_size() > largest->draft_size()) largest = drafting;
  }
  if (largest != nullptr) largest->drop_draft();
  return largest != nullptr;
}

TOOLDECODE_INLINE BatchLoop::Slot* BatchLoop::find_last(const std::vector<Slot*>& reading) {
  Slot* last          = nullptr;
  std::size_t holders = 0;
  for (const auto& slot : present_) {
    const bool holds = cached(*slot) > 0;
    holders += holds && slot.get() != reading.front();
    if (slot->waits ? holds : !slot->parked && (last == nullptr || !last->waits)) {
      last = slot.get();
    }
  }
  return reading.size() == 1 && holders == 0 ? nullptr : last;
}

TOOLDECODE_INLINE void BatchLoop::run(std::span<Slot* const> slots) {
  std::vector<BatchReading> readings;
  firsts_.clear();
  for (Slot* slot : slots) {
    firsts_.push_back(readings.size());
    slot->now->add_readings(readings);
  }
  counts_.passes += pass_.run(readings);
  for (const BatchReading& one : readings) counts_.read_tokens += one.tokens.size();
}

TOOLDECODE_INLINE void BatchLoop::park(Slot& slot) {
  slot.now->give_up_cache();
  counts_.reused_tokens -= std::exchange(slot.reused, 0);  // they will be read after all
  slot.parked = !slot.waits;
  ++counts_.preempted;
}

TOOLDECODE_INLINE void BatchLoop::end(Slot& slot) {
  Output& output       = slot.now->output();
  output.reused_tokens = std::exchange(slot.reused, 0);
  counts_.generated_tokens += output.tokens.size();
  counts_.drafted_tokens += output.drafts.nodes;
  for (const std::size_t accepted : output.drafts.accepted) counts_.accepted_tokens += accepted;
  const AfterTurn next = slot.item.on_end ? slot.item.on_end(output) : AfterTurn(Leave{});
  if (const auto* more = std::get_if<GoOn>(&next)) return go_on(slot, more->tokens);
  slot.waits = std::holds_alternative<Wait>(next);
  if (!slot.waits) retire(slot);
}

TOOLDECODE_INLINE void BatchLoop::go_on(Slot& slot, std::span<const TokenId> more) {
  const std::vector<TokenId> emitted = std::move(slot.now->output().tokens);
  CachedPrefix read                  = std::move(slot.now->read_so_far());
  slot.now.reset();
  slot.tokens.insert(slot.tokens.end(), emitted.begin(), emitted.end());
  slot.tokens.insert(slot.tokens.end(), more.begin(), more.end());
  slot.waits = false;
  alone(slot, [&] {
    require_tokens(model_, more, "next turn's token");
    if (model_.length(read.cache) == slot.tokens.size()) {
      throw Error(Errc::invalid_option, "next turn",
                  "must have a token: all tokens of the sequence are read");
    }
    begin(slot, std::move(read));
  });
}

TOOLDECODE_INLINE void BatchLoop::retire(Slot& slot) {
  const auto& emitted = slot.now->output().tokens;
  slot.tokens.insert(slot.tokens.end(), emitted.begin(), emitted.end());
  slot.tokens.resize(cached(slot));
  if (!slot.item.make || !slot.item.drafter.reads_hidden()) {
    prefixes_.insert(slot.tokens, std::move(slot.now->read_so_far()));
  }
  slot.retired = true;
}

TOOLDECODE_INLINE void BatchLoop::unpark() {
  Slot* first = nullptr;
  for (const auto& slot : present_) {
    if (!slot->waits && !slot->parked) return;
    if (slot->parked && first == nullptr) first = slot.get();
  }
  if (first != nullptr) first->parked = false;
}

TOOLDECODE_INLINE void BatchLoop::erase_retired() {
  if (std::erase_if(present_, [](const auto& slot) { return slot->retired; }) == 0) return;
  for (const auto& slot : present_) slot->parked = false;
}

}  // namespace tooldecode::decode
