/// \file
/// StackSets: merges the stacks of ambiguous texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/grammar/count_sets.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// Interned stacks, and bundles: a bundle is a frame that stands for several stacks, so a bundle is
/// a stack too.
///
/// If a text has many readings, similar stacks are merged: stacks that differ only in the item
/// count of a repetition become one with a set of counts, and stacks with the same top frame are
/// left together, above a bundle of the stacks below it.
///
/// \par Complexity  O(stacks of a bundle) per call; results are cached
/// \par Threads     members that are not const one at a time; reads need no lock
/// \par Source      graph-structured stacks: Tomita 1987
class StackSets {
 public:
  using Ones = WordsPool<StackId>::Words;
  /// The node of a bundle's frame; no NodeStore has it.
  static constexpr StoredId bundle{~std::uint32_t{0} - 1};

  explicit StackSets(const NodeStore& nodes) : nodes_(nodes) {}

  [[nodiscard]] StackId push(const StackFrame& frame) { return pool_.push(frame); }
  /// The top frame; requires a stack that is not empty.
  [[nodiscard]] const StackFrame& operator[](StackId id) const noexcept { return pool_[id]; }
  [[nodiscard]] const Ones& ones(const StackFrame& frame) const { return bundles_[frame.bundle()]; }
  /// The stacks of a bundle, with those that share their top frame merged.
  [[nodiscard]] const Ones& united_ones(const StackFrame& frame);
  /// The item counts of repetitions: `a` of their frames.
  [[nodiscard]] CountSets& counts() noexcept { return counts_; }
  [[nodiscard]] const CountSets& counts() const noexcept { return counts_; }
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Stacks joined so far: a measure of cost.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

  /// One stack for several; flattens their bundles.
  [[nodiscard]] StackId joined(const std::vector<StackId>& ids);

  /// Calls `visit(id, frame)`, which makes a stack known, for those of a stack and the stacks below
  /// it that are not known, each after those below it. No call recursion, because a model may nest
  /// brackets to any depth.
  template <class Known, class Visit>
  void visit_upwards(StackId root, const Known& is_known, const Visit& visit) const {
    if (is_known(root)) return;
    std::vector<StackId> work{root};
    while (!work.empty()) {
      const StackId id = work.back();
      if (is_known(id)) {
        work.pop_back();
        continue;
      }
      const StackFrame frame   = pool_[id];
      const std::size_t before = work.size();
      const auto want          = [&](StackId one) {
        if (!is_known(one)) work.push_back(one);
      };
      if (frame.node == bundle) {
        for (const StackId one : ones(frame)) want(one);
      } else {
        want(frame.below);
      }
      if (work.size() != before) continue;
      work.pop_back();
      visit(id, frame);
    }
  }

  /// The stack with every count that `horizon` bytes cannot bring to a bound set to one value.
  [[nodiscard]] StackId normal(StackId root, std::uint32_t horizon);

 private:
  using Repeat = NodeStore::Node::Repeat;

  // Merges stacks that differ only in the item count of their repetition.
  void join_counts(std::vector<StackId>& ids);
  [[nodiscard]] bool is_repeat(StackId id) const;
  // Merges stacks with the same top frame, above a bundle of the stacks below it. Otherwise what
  // follows the frame is added for each stack, and an ambiguous grammar doubles its stacks at every
  // level. Cached; a few stacks stay separate.
  std::uint32_t united(std::uint32_t number);
  [[nodiscard]] StackId known_normal(StackId id) const;

  const NodeStore& nodes_;
  StackPool pool_;
  WordsPool<StackId> bundles_;
  CountSets counts_;
  std::vector<StackId> normal_;        // [stacks]; the empty stack if unknown
  std::vector<std::uint32_t> united_;  // [bundles]; 0 if unknown
  std::uint64_t work_ = 0;
};

inline const StackSets::Ones& StackSets::united_ones(const StackFrame& frame) {
  return bundles_[united(frame.bundle())];
}

inline std::size_t StackSets::bytes() const noexcept {
  return pool_.bytes() + bundles_.bytes() + counts_.bytes() + core::heap_bytes(normal_) +
         core::heap_bytes(united_);
}

inline StackId StackSets::joined(const std::vector<StackId>& ids) {
  WordsPool<StackId>::Words all;
  for (const StackId id : ids) {
    if (id != empty_stack && pool_[id].node == bundle) {
      const auto& ones = bundles_[pool_[id].bundle()];
      all.insert(all.end(), ones.begin(), ones.end());
    } else {
      all.push_back(id);
    }
  }
  work_ += all.size();
  join_counts(all);
  // The empty stack is 0 and WordsPool drops zeros at the end, so it must come first.
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() == 1) return all[0];
  return pool_.push({bundle, bundles_.intern(std::move(all)), 0, empty_stack});
}

inline StackId StackSets::normal(StackId root, std::uint32_t horizon) {
  const auto is_known = [&](StackId id) {
    return id == empty_stack || known_normal(id) != empty_stack;
  };
  visit_upwards(root, is_known, [&](StackId id, StackFrame frame) {
    StackId normal;
    if (frame.node == bundle) {
      std::vector<StackId> ids;
      for (const StackId one : ones(frame)) ids.push_back(known_normal(one));
      normal = joined(ids);
    } else {
      if (const auto* repeat = nodes_[frame.node].as<Repeat>())
        frame.a = counts_.normal(frame.counts(), repeat->count, horizon);
      frame.below = known_normal(frame.below);
      normal      = pool_.push(frame);
    }
    if (id.index() >= normal_.size()) normal_.resize(2 * id.index() + 1);
    normal_[id.index()] = normal;
  });
  return known_normal(root);
}

inline void StackSets::join_counts(std::vector<StackId>& ids) {
  std::vector<StackFrame> repeats;
  for (const StackId id : ids) {
    if (is_repeat(id)) repeats.push_back(pool_[id]);
  }
  if (repeats.size() < 2) return;
  const auto place = [](const StackFrame& frame) {
    return std::tuple(frame.node, frame.b, frame.below);
  };
  std::sort(repeats.begin(), repeats.end(),
            [&](const StackFrame& x, const StackFrame& y) { return place(x) < place(y); });
  std::erase_if(ids, [&](StackId id) { return is_repeat(id); });
  for (std::size_t i = 0, end; i < repeats.size(); i = end) {
    StackFrame one    = repeats[i];
    const auto bounds = nodes_[one.node].as<Repeat>()->count;
    for (end = i + 1; end < repeats.size() && place(repeats[end]) == place(one); ++end) {
      one.a = counts_.united(one.counts(), repeats[end].counts(), bounds);
    }
    ids.push_back(pool_.push(one));
  }
}

inline bool StackSets::is_repeat(StackId id) const {
  return id != empty_stack && pool_[id].node != bundle &&
         nodes_[pool_[id].node].as<Repeat>() != nullptr;
}

inline std::uint32_t StackSets::united(std::uint32_t number) {
  static constexpr std::size_t few = 4;
  if (bundles_[number].size() <= few) return number;
  if (number >= united_.size()) united_.resize(2 * std::size_t{number} + 1);
  if (united_[number] != 0) return united_[number];
  WordsPool<StackId>::Words ids = bundles_[number];
  const auto top                = [&](StackId id) {
    const StackFrame& frame = pool_[id];
    return std::tuple(id != empty_stack, frame.node, frame.a, frame.b);
  };
  std::sort(ids.begin(), ids.end(), [&](StackId x, StackId y) { return top(x) < top(y); });
  std::size_t kept = 0;
  std::vector<StackId> below;
  for (std::size_t i = 0, end; i < ids.size(); i = end) {
    below.clear();
    for (end = i; end < ids.size() && top(ids[end]) == top(ids[i]); ++end) {
      below.push_back(pool_[ids[end]].below);
    }
    StackFrame frame = pool_[ids[i]];
    if (end - i > 1) frame.below = joined(below);
    ids[kept++] = end - i > 1 ? pool_.push(frame) : ids[i];
  }
  ids.resize(kept);
  std::sort(ids.begin(), ids.end());
  const std::uint32_t made = bundles_.intern(std::move(ids));
  united_[number]          = made;
  return made;
}

inline StackId StackSets::known_normal(StackId id) const {
  return id.index() >= normal_.size() ? empty_stack : normal_[id.index()];
}

}  // namespace tooldecode::grammar
