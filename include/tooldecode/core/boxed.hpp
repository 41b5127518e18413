/// \file
/// Boxed: a member whose type is defined where its owner is, and not where its owner is declared.
#pragma once

#include <memory>
#include <utility>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// Owns a value of a type that may be incomplete here; a copy copies it.
///
/// \par Complexity  a copy as the value's; a move O(1), which leaves nothing
template <class T>
class Boxed {
 public:
  explicit Boxed(T value)
      : value_(std::make_shared<T>(std::move(value))),
        copy_([](const T& from) { return std::make_shared<T>(from); }) {}
  Boxed(const Boxed& other) : value_(other.copy_(*other.value_)), copy_(other.copy_) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) {
    value_ = other.copy_(*other.value_);
    copy_  = other.copy_;
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed()                           = default;

  [[nodiscard]] const T& operator*() const noexcept { return *value_; }
  [[nodiscard]] T& operator*() noexcept { return *value_; }
  [[nodiscard]] const T* operator->() const noexcept { return value_.get(); }
  [[nodiscard]] T* operator->() noexcept { return value_.get(); }

 private:
  std::shared_ptr<T> value_;  // of its own: it also knows how to destroy what is incomplete here
  std::shared_ptr<T> (*copy_)(const T&);
};

}  // namespace tooldecode::core
