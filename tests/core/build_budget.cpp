#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

std::string refusal_of(std::uint64_t steps, std::uint64_t bytes) {
  try {
    BuildBudget::spend(steps, bytes);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(error.where().empty());
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("BuildBudget allows its limit of steps exactly and then names that limit in an error") {
  const BuildBudget budget({.steps = 10, .bytes = 100});
  CHECK(refusal_of(4, 50).empty());
  CHECK(refusal_of(6, 50).empty());
  CHECK(budget.spent() == BuildLimits{10, 100});
  CHECK(refusal_of(0, 0).empty());
  CHECK(refusal_of(1, 0) ==
        "building this takes more than 10 steps; the option limits.steps raises that");
  CHECK(refusal_of(0, 0) != "");  // the budget stays exceeded
}

TEST_CASE("BuildBudget limits bytes separately from steps and its sums do not overflow") {
  const BuildBudget budget({.steps = ~std::uint64_t{0}, .bytes = 100});
  CHECK(refusal_of(~std::uint64_t{0}, 0).empty());
  CHECK(refusal_of(~std::uint64_t{0}, 0).empty());
  CHECK(refusal_of(0, ~std::uint64_t{0}) ==
        "building this takes more than 100 bytes; the option limits.bytes raises that");
  CHECK(refusal_of(0, ~std::uint64_t{0}) != "");
}

TEST_CASE(
    "BuildBudget charges the outermost budget of the thread and nothing on threads without one") {
  CHECK(refusal_of(~std::uint64_t{0}, ~std::uint64_t{0}).empty());
  {
    const BuildBudget outer({.steps = 10, .bytes = 10});
    {
      const BuildBudget inner({.steps = 1, .bytes = 1});
      CHECK(refusal_of(8, 8).empty());
      CHECK(inner.spent() == BuildLimits{8, 8});
    }
    CHECK(outer.spent() == BuildLimits{8, 8});
    bool free_elsewhere = false;
    std::thread([&] {
      try {
        BuildBudget::spend(100, 100);
        free_elsewhere = true;
      } catch (const Error&) {}
    }).join();
    CHECK(free_elsewhere);
    CHECK(refusal_of(3, 0) != "");
  }
  CHECK(refusal_of(~std::uint64_t{0}, 0).empty());
}

TEST_CASE("BuildBudget::Pause keeps charges out of the budget until it is destroyed") {
  const BuildBudget budget({.steps = 10, .bytes = 10});
  {
    const BuildBudget::Pause once;
    CHECK(refusal_of(~std::uint64_t{0}, ~std::uint64_t{0}).empty());
  }
  CHECK(budget.spent() == BuildLimits{0, 0});
  CHECK(refusal_of(10, 10).empty());
  CHECK(refusal_of(1, 0) != "");
}

TEST_CASE(
    "BuildBudget throws cancelled at the next charge after cancellation, also in an inner budget") {
  std::atomic<bool> cancelled = false;
  const BuildBudget budget({.steps = 10, .bytes = 10, .cancelled = &cancelled});
  const auto code_of = [](const auto& charge) -> std::optional<Errc> {
    try {
      charge();
    } catch (const Error& error) {
      CHECK(error.where().empty());
      return error.code();
    }
    return std::nullopt;
  };
  CHECK(!code_of([] { BuildBudget::spend(1, 1); }));
  cancelled = true;
  CHECK(code_of([] { BuildBudget::spend(1, 1); }) == Errc::cancelled);
  CHECK(code_of([] { BuildBudget::require_room(1); }) == Errc::cancelled);
  {
    const BuildBudget inner;
    CHECK(code_of([] { BuildBudget::spend(0); }) == Errc::cancelled);
    const BuildBudget::Pause once;
    CHECK(!code_of([] { BuildBudget::spend(1, 1); }));
  }
  CHECK(budget.spent() == BuildLimits{1, 1});  // cancelled charges are not added
}
