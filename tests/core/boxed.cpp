#include <memory>
#include <utility>

#include <tooldecode/core/boxed.hpp>

#include <support/catch.hpp>

using tooldecode::core::Boxed;

namespace {

struct Inner;
struct Outer {
  Boxed<Inner> inner;  // incomplete here
};

struct Inner {
  int value                  = 0;
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

}  // namespace

TEST_CASE("Boxed copies its value when it is copied or assigned") {
  Outer a{Boxed(Inner{1})};
  Outer b        = a;
  b.inner->value = 2;
  CHECK(a.inner->value == 1);
  CHECK((*b.inner).value == 2);
  a              = b;
  b.inner->value = 3;
  CHECK(a.inner->value == 2);
}

TEST_CASE("Boxed keeps the value alive over a move and destroys it with the last owner") {
  std::weak_ptr<int> alive;
  {
    Outer a{Boxed(Inner{5})};
    alive   = a.inner->alive;
    Outer b = std::move(a);
    CHECK(b.inner->value == 5);
    CHECK(alive.use_count() == 1);
  }
  CHECK(alive.expired());
}
