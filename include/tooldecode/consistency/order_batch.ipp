#pragma once

#include <algorithm>

#include <tooldecode/consistency/order_batch.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::consistency {

TOOLDECODE_INLINE OrderBatch::OrderBatch(Setting setting, const ModelRef::Cache& cache,
                                         std::span<const TokenId> unread,
                                         std::vector<OrderBranch> branches)
    : setting_(std::move(setting)),
      cache_(&cache),
      base_(unread.begin(), unread.end()),
      branches_(std::move(branches)),
      all_(setting_.model.vocabulary_size()),
      mask_(setting_.answer.vocabulary_size()),
      outer_mask_(setting_.answer.vocabulary_size()),
      row_(setting_.model.vocabulary_size()) {
  TOOLDECODE_ASSERT(!base_.empty());
  all_.words().fill(setting_.model.vocabulary_size());
  std::vector<std::size_t> members(branches_.size());
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = i;
  groups_.push_back({std::nullopt, base, 0, std::move(members)});
}

TOOLDECODE_INLINE bool OrderBatch::prepare(std::size_t count) {
  const auto runs = [&](const Group& group) {
    return std::any_of(group.members.begin(), group.members.end(), [&](std::size_t member) {
      return member < count && !branches_[member].is_over;
    });
  };
  for (std::size_t g = 0, known = groups_.size(); g < known; ++g) {  // split adds more
    if (!runs(groups_[g])) continue;
    for (const std::size_t member : groups_[g].members) supply(branches_[member], member, g);
    split(g);
  }
  running_.clear();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!runs(groups_[g])) continue;
    running_.push_back(g);
    groups_[g].unread = unread_of(groups_[g]);
  }
  return !running_.empty();
}

TOOLDECODE_INLINE void OrderBatch::add_readings(std::vector<decode::BatchReading>& readings) {
  fork_groups();
  for (const std::size_t g : running_) {
    Group& group = groups_[g];
    readings.push_back({&*group.cache, group.unread, {}, group.unread.size() - 1, all_.words()});
  }
}

TOOLDECODE_INLINE void OrderBatch::take(decode::BatchPass& pass, std::size_t first) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const std::size_t g = running_[i];
    groups_[g].read += groups_[g].unread.size();
    for (const std::size_t member : groups_[g].members) {
      choose(branches_[member], member, g, pass.row(first + i));
    }
    drop_finished(groups_[g]);
  }
  // Groups that run have caches, and the others begin at the base: none needs its parent any more.
  std::erase_if(groups_, [](const Group& group) { return group.members.empty(); });
}

TOOLDECODE_INLINE void OrderBatch::supply(OrderBranch& branch, std::size_t index,
                                          std::size_t group) {
  for (;;) {
    if (branch.is_over || !has_room(branch)) break;
    const auto [text, closes]         = forced_arguments(branch);
    const std::vector<TokenId> tokens = setting_.encode(text);
    if (!tokens.empty()) {
      std::string_view rest = text;
      std::size_t settled   = 0;
      while (settled < tokens.size() && has_room(branch) && leaves_room(branch, tokens[settled]) &&
             !may_go_on(branch, rest, closes, settled + 1 == tokens.size())) {
        rest.remove_prefix(bytes(branch, tokens[settled]).size());
        take(branch, tokens[settled++], 0, true);
      }
      if (branch.is_over) break;
      if (closes) {
        branch.read(rest, 0);
        branch.closing     = rest;
        branch.is_complete = branch.is_over = true;
      }
      if (closes || settled > 0) continue;
    }
    fill_mask(branch);
    const auto only = decode::find_only_token(mask_.words());
    if (!setting_.options.skip_forced || !only || setting_.pipeline.is_banned(*only)) return;
    take(branch, *only, 0, true);
  }
  keep(index, group, {});
}

TOOLDECODE_INLINE std::pair<std::string, bool> OrderBatch::forced_arguments(
    const OrderBranch& branch) {
  std::string text = branch.calls.jump_forward(branch.state);
  auto state       = branch.state;
  for (std::size_t i = 0; i < text.size(); ++i) {
    state = *branch.calls.advance_bytes(state, std::string_view(text).substr(i, 1));
    if (branch.calls.find_tool(state)) continue;
    text.resize(i + 1);
    return {std::move(text), true};
  }
  return {std::move(text), false};
}

TOOLDECODE_INLINE void OrderBatch::fill_mask(const OrderBranch& branch) {
  branch.calls.fill_mask(branch.state, mask_.words());
  if (!branch.outer) return;
  setting_.answer.fill_mask(*branch.outer, outer_mask_.words());
  if (setting_.ending != nullptr) {
    setting_.ending->narrow(ConstraintRef::State(*branch.outer), room(branch), outer_mask_.words());
  }
  outer_mask_ &= mask_;
  if (outer_mask_.count() > 0) mask_ = outer_mask_;
}

TOOLDECODE_INLINE bool OrderBatch::may_go_on(const OrderBranch& branch, std::string_view rest,
                                             bool closes, bool is_last) {
  if (closes && is_last) return true;
  if (!setting_.text.is_within_token(rest)) return false;
  if (closes) return true;
  fill_mask(branch);
  return mask_.count() > setting_.text.count_prefixes(rest);
}

TOOLDECODE_INLINE std::size_t OrderBatch::room(const OrderBranch& branch) const {
  const std::size_t context = setting_.model.context_length();
  return std::min(setting_.options.max_tokens, context - setting_.prompt.size() + 1) -
         setting_.generated.size() - branch.tokens.size();
}

TOOLDECODE_INLINE bool OrderBatch::leaves_room(const OrderBranch& branch, TokenId token) const {
  if (setting_.ending == nullptr || !branch.outer) return true;
  const auto next = setting_.answer.advance(*branch.outer, token);
  return !next || setting_.ending->can_end(ConstraintRef::State(*next), room(branch) - 1);
}

TOOLDECODE_INLINE bool OrderBatch::has_room(OrderBranch& branch) const {
  const std::size_t length = setting_.generated.size() + branch.tokens.size();
  if (length >= setting_.options.max_tokens) return stop(branch, Finish::length);
  if (setting_.prompt.size() + length > setting_.model.context_length()) {
    return stop(branch, Finish::context);
  }
  return true;
}

TOOLDECODE_INLINE bool OrderBatch::stop(OrderBranch& branch, Finish finish) {
  branch.finish  = finish;
  branch.is_over = true;
  return false;
}

TOOLDECODE_INLINE void OrderBatch::choose(OrderBranch& branch, std::size_t index, std::size_t group,
                                          std::span<const float> raw) {
  std::copy(raw.begin(), raw.end(), row_.begin());
  fill_mask(branch);
  TokenTrace seen;
  if (const auto removed = setting_.options.trace) {
    seen = decode::trace_mask(raw, mask_.words(), *removed);
  }
  setting_.pipeline.apply(row_, mask_.words(),
                          {setting_.prompt, setting_.generated, branch.tokens});
  const std::size_t position =
      setting_.prompt.size() + setting_.generated.size() + branch.tokens.size();
  const auto token = find_token(row_, setting_.options.temperature,
                                {.seed = seed_of(branch), .position = position});
  if (token) {
    if (setting_.options.trace) seen.model_probability = decode::model_probability(raw, *token);
    take(branch, *token,
         static_cast<double>(row_[static_cast<std::size_t>(*token)]) - log_sum_exp(row_), false,
         std::move(seen));
  } else {
    stop(branch, Finish::stuck);
  }
  if (branch.is_over) keep(index, group, raw);
}

TOOLDECODE_INLINE std::uint64_t OrderBatch::seed_of(const OrderBranch& branch) const {
  // Orders write different values at one position: with the same noise their votes would depend on
  // each other.
  return setting_.options.seed + 0xD1B54A32D192ED03 * branch.order;
}

TOOLDECODE_INLINE void OrderBatch::take(OrderBranch& branch, TokenId token, double log_probability,
                                        bool forced, TokenTrace seen) {
  const std::string_view text = bytes(branch, token);
  const std::size_t taken     = branch.read(text, log_probability);
  if (text.empty()) branch.read_control(token);
  if (taken < text.size() || !branch.calls.find_tool(branch.state)) {
    branch.closing                 = text.substr(0, taken);
    branch.closing_log_probability = log_probability;
    branch.is_complete = branch.is_over = true;
    return;
  }
  if (branch.outer) branch.outer = setting_.answer.advance(*branch.outer, token);
  branch.tokens.push_back(token);
  branch.log_probabilities.push_back(log_probability);
  branch.forced.push_back(forced);
  if (setting_.options.trace) branch.trace.push_back(std::move(seen));
}

TOOLDECODE_INLINE std::string_view OrderBatch::bytes(const OrderBranch& branch, TokenId token) {
  return branch.calls.vocabulary().bytes(token);
}

TOOLDECODE_INLINE void OrderBatch::keep(std::size_t index, std::size_t group,
                                        std::span<const float> raw) {
  if (index != 0 || kept_) return;
  const Group& own = groups_[group];
  try {
    kept_.emplace(Kept{setting_.model.fork(own.cache ? *own.cache : source_of(own)),
                       own.read,
                       {raw.begin(), raw.end()}});
  } catch (const Error& error) {
    if (error.code() != Errc::limit_exceeded) throw;
  }
}

TOOLDECODE_INLINE void OrderBatch::drop_finished(Group& group) const {
  std::erase_if(group.members, [&](std::size_t member) { return branches_[member].is_over; });
}

TOOLDECODE_INLINE void OrderBatch::split(std::size_t g) {
  drop_finished(groups_[g]);
  std::vector<std::size_t> members = std::move(groups_[g].members);
  groups_[g].members.clear();
  const std::size_t first_new = groups_.size();
  for (const std::size_t member : members) {
    const auto agrees = [&](const Group& group) {
      return group.members.empty() ||
             branches_[group.members.front()].tokens == branches_[member].tokens;
    };
    if (agrees(groups_[g])) {
      groups_[g].members.push_back(member);
      continue;
    }
    const auto found = std::find_if(groups_.begin() + static_cast<std::ptrdiff_t>(first_new),
                                    groups_.end(), agrees);
    if (found != groups_.end()) {
      found->members.push_back(member);
    } else {
      groups_.push_back({std::nullopt, g, groups_[g].read, {member}});
    }
  }
}

TOOLDECODE_INLINE const ModelRef::Cache& OrderBatch::source_of(const Group& group) const {
  const Group* from = &group;
  while (!from->cache) {
    if (from->parent == base) return *cache_;
    from = &groups_[from->parent];
  }
  return *from->cache;
}

TOOLDECODE_INLINE void OrderBatch::fork_groups() {
  for (const std::size_t g : running_) {
    if (!groups_[g].cache) groups_[g].cache = setting_.model.fork(source_of(groups_[g]));
  }
  // A group that does not run yet may never run. Its parent reads on, so it reads again if it does.
  for (Group& group : groups_) {
    if (group.cache) continue;
    group.parent = base;
    group.read   = 0;
  }
}

TOOLDECODE_INLINE std::vector<TokenId> OrderBatch::unread_of(const Group& group) const {
  std::vector<TokenId> tokens = base_;
  const auto& own             = branches_[group.members.front()].tokens;
  tokens.insert(tokens.end(), own.begin(), own.end());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(group.read));
  return tokens;
}

}  // namespace tooldecode::consistency
