#include <string>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/form_algebra.hpp>

#include <support/catch.hpp>
#include <support/form_judge.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;

TEST_CASE("FormAlgebra::are_disjoint finds objects that differ in a required member") {
  FormAlgebra forms;
  const auto with = [&](bool truth) {
    const FormId value = forms.add(Form{.truth = truth, .falsehood = !truth});
    return Form{.objects = {{.members = {{"k", value, true}}}}};
  };
  const Form a = with(true), b = with(false);
  CHECK(forms.are_disjoint(a, b));
  CHECK(forms.difference(a, b).objects == a.objects);
  Form open                           = b;
  open.objects[0].members[0].required = false;
  CHECK(forms.are_disjoint(a, open));
}

TEST_CASE("FormAlgebra::intersection charges the BuildBudget for each pair of alternatives") {
  FormAlgebra forms;
  Form wide;
  for (int i = 0; i < 1000; ++i) {
    wide.objects.push_back({.count = {static_cast<std::uint32_t>(i)}});
  }
  {
    const BuildBudget budget({.steps = 1'000'000});
    CHECK_THROWS_AS(forms.intersection(wide, wide), Error);
  }
  const BuildBudget budget({.steps = ~std::uint64_t{0}, .bytes = 10'000'000});
  CHECK_THROWS_AS(forms.intersection(wide, wide), Error);
}

TEST_CASE(
    "FormAlgebra::complement of a large object has small parts and excludes the same values") {
  // 200 rules: each object below breaks at most one of them.
  FormAlgebra forms;
  Form all;
  ObjectForm closed;
  const FormId text = forms.add(Form{.texts = {{}}});
  for (int i = 0; i < 200; ++i) {
    closed.members.push_back({"p" + std::to_string(i), text, i % 2 == 0});
  }
  all.objects.push_back(closed);
  const FormId form    = forms.add(all);
  const FormId inverse = forms.complement(form);
  std::size_t members  = 0;
  for (const ObjectForm& one : forms[inverse].objects) members += one.members.size();
  CHECK(members <= 400);
  test::FormJudge judge(forms);
  tooldecode::JsonValue value = tooldecode::JsonValue::object();
  for (int i = 0; i < 200; i += 2) value["p" + std::to_string(i)] = "x";
  CHECK(judge(form, value));
  CHECK_FALSE(judge(inverse, value));
  for (int i = 0; i < 200; ++i) {
    const std::string name = "p" + std::to_string(i);
    auto wrong             = value;
    wrong[name]            = 1;
    CHECK(judge(inverse, wrong));
    CHECK_FALSE(judge(form, wrong));
    auto other = value;
    if (i % 2 == 0) other.erase(name);
    if (i % 2 != 0) other[name] = "y";
    CHECK(judge(form, other) == (i % 2 != 0));
    CHECK(judge(inverse, other) == (i % 2 == 0));
  }
}
