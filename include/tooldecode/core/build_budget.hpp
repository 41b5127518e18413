/// \file
/// BuildBudget: what building a constraint, or a mask, may cost, counted and not timed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>

namespace tooldecode {

/// The most that building may cost: one document's constraint (its tools, its schema, its patterns),
/// or one mask.
///
/// A step is some 20 ns of work on a usual machine, so that the default stands for about a second;
/// bytes are those of what is kept. Counts do not depend on the machine: what is built on one is
/// built on each.
struct BuildLimits {
  std::uint64_t steps = 50'000'000;
  std::uint64_t bytes = std::uint64_t{256} << 20;
  /// Ends the building at its next step once it is true; null: nothing does.
  const std::atomic<bool>* cancelled                             = nullptr;
  friend bool operator==(const BuildLimits&, const BuildLimits&) = default;
};

/// While it lives, whatever this thread builds is charged to it, unless it already was to an outer
/// one: a set of tools has one budget, and none of its own for each schema.
///
/// Who builds gives BuildLimits, as an option; the budget is how they reach the automata that are
/// combined by operators, and the tries, far below. Where nobody has set one, nothing is bounded
/// here.
///
/// \par Complexity  O(1) per charge
/// \par Threads     of the thread that made it; BuildLimits::cancelled may be set by any
/// \par Errors      Error{limit_exceeded, cancelled} from `spend`, without a place: whoever knows it
///                  adds it
class BuildBudget {
 public:
  /// \param option  the option that has the limits, for errors
  explicit BuildBudget(BuildLimits limits = {}, const char* option = "limits");
  ~BuildBudget();
  BuildBudget(const BuildBudget&)            = delete;
  BuildBudget& operator=(const BuildBudget&) = delete;

  /// While it lives, nothing that this thread builds is charged: it is built once for the whole
  /// process, so that no document's budget depends on which document came first.
  class Pause {
   public:
    Pause() : paused_(std::exchange(current_, nullptr)) {}
    ~Pause();
    Pause(const Pause&)            = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    BuildBudget* paused_;
  };

  /// What was spent of it so far; of an inner one, what was spent of the outer one.
  [[nodiscard]] BuildLimits spent() const noexcept;

  /// Charges this thread's budget, if there is one, before the work is done.
  static void spend(std::uint64_t steps, std::uint64_t bytes = 0);
  /// The same by who knows the place of what is at work.
  static void spend_at(const std::string& place, std::uint64_t steps, std::uint64_t bytes = 0);
  /// Asks for room for something that is being made and may not be kept: it is not charged.
  static void require_room(std::uint64_t bytes);

 private:
  void take(std::uint64_t steps, std::uint64_t bytes);
  void require_wanted() const;
  [[noreturn]] void exceeded(const char* what, std::uint64_t limit) const;

  static inline thread_local BuildBudget* current_ = nullptr;

  BuildLimits limits_;
  BuildLimits spent_{0, 0};
  const char* option_;
  BuildBudget* outer_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/build_budget.ipp>
#endif
