#include <tooldecode/schema/form_algebra.hpp>

#include <support/catch.hpp>
#include <support/form_judge.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

namespace {

std::size_t merged(FormAlgebra& forms, const std::vector<ObjectForm>& objects) {
  Form form{.objects = objects};
  const FormId before = forms.add(form);
  merge_objects(form, forms);
  const std::size_t left = form.objects.size();
  const FormId after     = forms.add(std::move(form));
  test::FormJudge judge(forms);
  // All objects of three keys, each with one of three values or absent.
  const Json values[] = {Json(), Json(true), Json("x")};
  for (int code = 0; code < 64; ++code) {
    Json object = Json::object();
    for (int i = 0, rest = code; i < 3; ++i, rest /= 4) {
      if (rest % 4 != 3) object[std::string(1, static_cast<char>('a' + i))] = values[rest % 4];
    }
    INFO(object.text());
    CHECK(judge(before, object) == judge(after, object));
  }
  return left;
}

}  // namespace

TEST_CASE("merge_objects merges alternatives that differ in one member or in which keys occur") {
  FormAlgebra forms;
  const FormId null = forms.add(Form{.null = true}), text = forms.add(Form{.texts = {{}}});
  using Members = std::vector<ObjectForm::Member>;
  const auto of = [](Members members) { return ObjectForm{.members = std::move(members)}; };
  CHECK(merged(forms, {of({{"a", null, true}}), of({{"a", text, true}})}) == 1);
  CHECK(merged(forms, {of({{"a", null, true}}), of({{"a", nothing_form}})}) == 1);
  CHECK(merged(forms, {of({{"a", null, true}}), of({{"a", text}})}) == 1);
  CHECK(merged(forms, {of({{"a", any_form, true}}), of({{"b", any_form, true}})}) == 1);
  CHECK(merged(forms, {of({{"a", null, true}, {"b", nothing_form}}),
                       of({{"a", nothing_form}, {"b", text, true}}),
                       of({{"c", any_form, true}, {"a", nothing_form}, {"b", nothing_form}})}) ==
        1);
  // A relation between two values is no condition on keys.
  CHECK(merged(forms, {of({{"a", null, true}, {"b", null, true}}),
                       of({{"a", text, true}, {"b", text, true}})}) == 2);
  // Two of the three differ in one member.
  CHECK(merged(forms, {of({{"a", null, true}, {"b", null, true}}),
                       of({{"a", text, true}, {"b", text, true}}),
                       of({{"a", text, true}, {"b", null, true}})}) == 2);
  ObjectForm few = of({{"a", null, true}});
  few.count.max  = 1;
  CHECK(merged(forms, {few, of({{"a", text, true}})}) == 2);
}

TEST_CASE("merge_objects adds no form for alternatives that it keeps") {
  FormAlgebra forms;
  const FormId null = forms.add(Form{.null = true}), text = forms.add(Form{.texts = {{}}});
  Form form;
  for (const FormId value : {null, text}) {
    form.objects.push_back({.members = {{"a", value, true}, {"b", value, true}}});
  }
  const FormId before = forms.add(Form{});
  merge_objects(form, forms);
  CHECK(form.objects.size() == 2);
  CHECK(forms.add(Form{}).index() == before.index() + 1);
}
