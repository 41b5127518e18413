/// \file
/// Boxed: a member whose type may be incomplete where its owner is declared.
#pragma once

#include <memory>
#include <utility>

#include <tooldecode/core/config.hpp>

namespace tooldecode::core {

/// Owns a value whose type may be incomplete here. Copying a Boxed copies the value.
///
/// \par Complexity  a copy costs a copy of the value; a move is O(1) and leaves the source empty
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
  std::shared_ptr<T>
      value_;  // never shared; a shared_ptr because its deleter works where T is incomplete
  std::shared_ptr<T> (*copy_)(const T&);
};

}  // namespace tooldecode::core
