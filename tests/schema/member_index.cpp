#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/member_index.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;

TEST_CASE("MemberIndex finds each member by name, also after additions") {
  std::mt19937 random(4);
  for (std::uint32_t count = 0; count < 40; ++count) {
    ObjectForm form;
    for (std::uint32_t i = 0; i < count; ++i) form.members.push_back({"m" + std::to_string(i)});
    MemberIndex index(form);
    for (std::uint32_t added = 0; added < 20; ++added) {
      for (std::uint32_t i = 0; i < count + added; ++i) {
        CAPTURE(count, added, i);
        REQUIRE(index.find("m" + std::to_string(i)) == i);
        REQUIRE(index.member("m" + std::to_string(i)) == &form.members[i]);
      }
      CHECK(index.find("m" + std::to_string(count + added)) == std::nullopt);
      CHECK(index.member("other") == nullptr);
      CHECK(index.add(form, {"m" + std::to_string(count + added)}) == count + added);
    }
  }
}

TEST_CASE("MemberIndex finds the first of members with equal names") {
  for (const int count : {2, 40}) {
    ObjectForm form;
    for (int i = 0; i < count; ++i) form.members.push_back({"twin"});
    CHECK(MemberIndex(form).find("twin") == 0);
  }
}

TEST_CASE("MemberIndex charges the BuildBudget for many members") {
  ObjectForm form;
  for (int i = 0; i < 1000; ++i) form.members.push_back({std::to_string(i)});
  const BuildBudget budget({.steps = 100});
  bool refused = false;
  try {
    (void)MemberIndex(form);
  } catch (const Error& error) {
    refused = error.code() == Errc::limit_exceeded;
  }
  CHECK(refused);
}
