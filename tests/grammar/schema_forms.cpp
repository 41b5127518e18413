#include <string>

#include <tooldecode/grammar/schema_forms.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("Objects exclude each other by a member that one of them needs") {
  SchemaForms forms;
  const auto with = [&](bool truth) {
    const FormId value = forms.add(SchemaForm{.truth = truth, .falsehood = !truth});
    return SchemaForm{.objects = {{.members = {{"k", value, true}}}}};
  };
  const SchemaForm a = with(true), b = with(false);
  CHECK(forms.are_disjoint(a, b));
  CHECK(forms.difference(a, b).objects == a.objects);
  SchemaForm open                     = b;
  open.objects[0].members[0].required = false;
  CHECK(forms.are_disjoint(a, open));
}

TEST_CASE("Too many combinations are an error") {
  SchemaForms forms;
  SchemaForm wide;
  for (int i = 0; i < 1000; ++i) {
    wide.objects.push_back({.count = {static_cast<std::uint32_t>(i)}});
  }
  CHECK_THROWS_AS(forms.intersection(wide, wide), Error);
}
