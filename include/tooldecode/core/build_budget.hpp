/// \file
/// BuildBudget: limits the cost of building a constraint or a mask, by counting instead of timing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>

namespace tooldecode {

/// Limits on the cost of building one document's constraint (its tools, schema and patterns) or one
/// mask.
///
/// A step is about 20 ns of work on a typical machine, so the default allows about a second. Bytes
/// count the memory that is kept. The counts do not depend on the machine: what builds on one
/// machine builds on every other.
struct BuildLimits {
  std::uint64_t steps = 50'000'000;
  std::uint64_t bytes = std::uint64_t{256} << 20;
  /// Building stops at the next step after this becomes true; null: it cannot be cancelled.
  const std::atomic<bool>* cancelled                             = nullptr;
  friend bool operator==(const BuildLimits&, const BuildLimits&) = default;
};

/// While it lives, everything this thread builds is charged to it, unless an outer budget is
/// already active: a set of tools has one budget, not one for each schema.
///
/// You pass BuildLimits as an option. The budget carries them down to code that has no such
/// parameter, such as automaton operators and tries. Without an active budget nothing is limited.
///
/// \par Complexity  O(1) per charge
/// \par Threads     belongs to the thread that made it; any thread may set BuildLimits::cancelled
/// \par Errors      Error{limit_exceeded, cancelled} from `spend`, without a place; a caller that
///                  knows the place adds it
class BuildBudget {
 public:
  /// \param option  the name of the option that has the limits, for error messages
  explicit BuildBudget(BuildLimits limits = {}, const char* option = "limits");
  ~BuildBudget();
  BuildBudget(const BuildBudget&)            = delete;
  BuildBudget& operator=(const BuildBudget&) = delete;

  /// While it lives, nothing this thread builds is charged. For things built once per process, so
  /// that a document's budget does not depend on which document came first.
  class Pause {
   public:
    Pause() : paused_(std::exchange(current_, nullptr)) {}
    ~Pause();
    Pause(const Pause&)            = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    BuildBudget* paused_;
  };

  /// What was spent so far. An inner budget reports the spending of the outer one.
  [[nodiscard]] BuildLimits spent() const noexcept;

  /// Charges this thread's budget, if there is one. Call it before doing the work.
  static void spend(std::uint64_t steps, std::uint64_t bytes = 0);
  /// Charges like `spend` and adds `place` to errors.
  static void spend_at(const std::string& place, std::uint64_t steps, std::uint64_t bytes = 0);
  /// Checks that the budget has room for temporary data, without charging it.
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
