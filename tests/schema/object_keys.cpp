#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/object_keys.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;

TEST_CASE("key_classes puts each key into the one class of the patterns that it matches") {
  FormAlgebra forms;
  const FormId one = forms.add(Form{.null = true}), two = forms.add(Form{.truth = true});
  const FormId rest = forms.add(Form{.falsehood = true});
  ObjectForm form;
  form.others = key_classes(
      {{forms.texts.pattern("^a", "#"), one}, {forms.texts.pattern("b$", "#"), two}}, rest, forms);
  CHECK(form.others.size() == 4);
  CHECK(forms.value_of(form, "a") == one);
  CHECK(forms.value_of(form, "b") == two);
  CHECK(forms.value_of(form, "ab") == forms.both(one, two));
  CHECK(forms.value_of(form, "c") == rest);
  MemberIndex members(form);
  CHECK(member_of(form, members, "ab", forms).value == forms.both(one, two));
  const auto closed =
      key_classes({{forms.texts.pattern("^a", "#"), one}, {forms.texts.pattern("^b", "#"), two}},
                  nothing_form, forms);
  CHECK(closed.size() == 2);  // no class of both patterns
}

TEST_CASE("key_classes gives disjoint patterns a class each in polynomial time") {
  std::vector<std::uint64_t> steps;
  for (const std::size_t n : {40U, 80U, 160U}) {
    const BuildBudget budget;
    FormAlgebra forms;
    std::vector<std::pair<std::uint32_t, FormId>> patterns;
    const FormId value = forms.add(Form{.null = true});
    for (std::size_t i = 0; i < n; ++i) {
      patterns.emplace_back(forms.texts.pattern("^k" + std::to_string(i) + "_", "#"), value);
    }
    ObjectForm form;
    form.others = key_classes(patterns, nothing_form, forms);
    CHECK(form.others.size() == n);
    CHECK(forms.value_of(form, "k7_x") == value);
    CHECK(forms.value_of(form, "k7x") == nothing_form);
    steps.push_back(budget.spent().steps);
  }
  CHECK(steps[1] < 5 * steps[0]);
  CHECK(steps[2] < 5 * steps[1]);
}

TEST_CASE("key_classes throws for patterns that divide keys into too many classes") {
  FormAlgebra forms;
  std::vector<std::pair<std::uint32_t, FormId>> patterns;
  for (char c = 'a'; c <= 'h'; ++c) {
    patterns.emplace_back(forms.texts.pattern(std::string(1, c), "#"),
                          forms.add(Form{.null = true}));
  }
  try {
    (void)key_classes(patterns, nothing_form, forms);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_keyword);
    CHECK(error.where() == "/patternProperties");
    CHECK(std::string(error.what()).find("too many classes") != std::string::npos);
  }
}

TEST_CASE("restrict_names restricts keys by a list or by tests") {
  FormAlgebra forms;
  ObjectForm listed{.members = {{"a"}, {"b"}}};
  const auto text = [](StringForm form) { return Form{.texts = {std::move(form)}}; };
  restrict_names(listed, text({.values = std::vector<std::string>{"b", "c"}}), forms);
  CHECK(forms.value_of(listed, "a") == nothing_form);
  CHECK(forms.value_of(listed, "b") == any_form);
  CHECK(forms.value_of(listed, "c") == any_form);
  CHECK(forms.value_of(listed, "d") == nothing_form);
  ObjectForm tested{.members = {{"a"}, {"bbb"}}};
  restrict_names(tested, text({.length = {2, 3}, .excluded = {"cc"}}), forms);
  CHECK(forms.value_of(tested, "a") == nothing_form);
  CHECK(forms.value_of(tested, "bbb") == any_form);
  CHECK(forms.value_of(tested, "cc") == nothing_form);
  CHECK(forms.value_of(tested, "dd") == any_form);
  CHECK(forms.value_of(tested, "dddd") == nothing_form);
}
