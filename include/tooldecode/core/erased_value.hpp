/// \file
/// ErasedValue: a type-erased, move-only value.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// Owns a movable value of any type; `as<T>()` returns it. Made from another ErasedValue it takes
/// over what that owned, and `as<ErasedValue>()` returns the object itself.
///
/// \par Complexity  one allocation per value; moves are O(1)
/// \par Threads     as for the value
/// \par Errors      none; a wrong type, or access after a move, violates a precondition
class ErasedValue {
 public:
  template <class T>
    requires(!std::is_same_v<T, ErasedValue>)
  explicit ErasedValue(T value)
      : held_(new T(std::move(value)), [](void* held) noexcept { delete static_cast<T*>(held); }) {}

  template <class T>
  [[nodiscard]] T& as() noexcept {
    TOOLDECODE_ASSERT(held_ != nullptr);
    if constexpr (std::is_same_v<T, ErasedValue>)
      return *this;
    else
      return *static_cast<T*>(held_.get());
  }
  template <class T>
  [[nodiscard]] const T& as() const noexcept {
    TOOLDECODE_ASSERT(held_ != nullptr);
    if constexpr (std::is_same_v<T, ErasedValue>)
      return *this;
    else
      return *static_cast<const T*>(held_.get());
  }

 private:
  std::unique_ptr<void, void (*)(void*) noexcept> held_;
};

}  // namespace tooldecode::core
