/// \file
/// FailingMemory: memory that fails at a chosen allocation.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include <tooldecode/core/error.hpp>

namespace tooldecode::test {

/// Makes `operator new` throw std::bad_alloc at one allocation of this thread, in an executable
/// that links failing_memory.cpp. Only allocations inside `attempt` are counted and can fail.
class FailingMemory {
 public:
  enum class Failure : unsigned char {
    once,      ///< only this one fails
    until_end  ///< all later allocations of the operation fail too
  };

  /// No allocation fails; `allocations` counts.
  FailingMemory();
  /// \param at  the number of the allocation that fails, from 1
  FailingMemory(std::size_t at, Failure failure);
  FailingMemory(const FailingMemory&)            = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();

  /// Runs an operation, and runs it again if memory failed.
  template <class F>
  std::invoke_result_t<F&> attempt(F operation) {
    try {
      const Counting counting;
      return operation();
    } catch (const std::bad_alloc&) {
      end_failures();
    } catch (const Error&) {
      if (!has_failed()) throw;
      end_failures();
    }
    return operation();
  }

  [[nodiscard]] static std::size_t allocations() noexcept;
  [[nodiscard]] static bool has_failed() noexcept;
  /// Number of blocks that are allocated and not yet freed, in all threads.
  [[nodiscard]] static std::size_t blocks() noexcept;

 private:
  struct Plan {
    bool counts             = false;
    bool until_end          = false;
    bool failed             = false;
    std::size_t at          = 0;  // 0: none fails
    std::size_t allocations = 0;
  };
  struct Counting {
    Counting() noexcept;
    ~Counting();
    Counting(const Counting&)            = delete;
    Counting& operator=(const Counting&) = delete;
  };
  static void end_failures() noexcept;
  static bool fails() noexcept;
  [[noreturn]] static void say_which() noexcept;
  friend void* allocate(std::size_t size, std::size_t alignment) noexcept;

  static thread_local Plan plan_;
  Plan outer_;  // plan of the enclosing object
};

}  // namespace tooldecode::test
