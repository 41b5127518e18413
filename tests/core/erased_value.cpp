#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/erased_value.hpp>

#include <support/catch.hpp>

using tooldecode::core::ErasedValue;

TEST_CASE("ErasedValue returns the stored value after a move") {
  ErasedValue text{std::string("a text that is longer than what a string holds in itself")};
  ErasedValue moved = std::move(text);
  CHECK(std::as_const(moved).as<std::string>().size() == 56);
  moved.as<std::string>() = "b";
  CHECK(moved.as<std::string>() == "b");
}

TEST_CASE("ErasedValue holds a move-only value and destroys it once") {
  const auto counted = std::make_shared<int>(7);
  struct Owner {
    std::unique_ptr<std::shared_ptr<int>> held;
  };
  {
    std::vector<ErasedValue> values;
    for (int i = 0; i < 3; ++i) {
      values.emplace_back(Owner{std::make_unique<std::shared_ptr<int>>(counted)});
    }
    CHECK(counted.use_count() == 4);
    values[0] = std::move(values[2]);
    CHECK(counted.use_count() == 3);
    CHECK(**values[0].as<Owner>().held == 7);
  }
  CHECK(counted.use_count() == 1);
}
