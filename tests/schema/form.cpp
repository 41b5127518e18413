#include <optional>
#include <vector>

#include <tooldecode/schema/form.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;

TEST_CASE("find_point returns a number only if the bounds admit exactly one") {
  const NumberBounds::Bound two{Decimal::parse("2.0"), false}, open{Decimal::parse("2"), true};
  const auto point = [](NumberBounds bounds) {
    const NumberForm form{.bounds = std::move(bounds)};
    const Decimal* found = find_point(form);
    return found == nullptr ? std::optional<std::string>() : found->plain();
  };
  CHECK(point({two, two}) == "2");
  CHECK_FALSE(point({two, open}));
  CHECK_FALSE(point({two, {}}));
  CHECK_FALSE(point({}));
  CHECK(NumberForm{.bounds = {two, {}}} == NumberForm{.bounds = {{{Decimal::parse("2")}}, {}}});
}

TEST_CASE("ObjectForm::find finds members by name and ArrayForm::item finds items by index") {
  const ObjectForm object{.members = {{"a", FormId(5)}, {"b", FormId(6)}}};
  CHECK(object.find("b")->value == FormId(6));
  CHECK(object.find("c") == nullptr);
  const ArrayForm array{.prefix = {FormId(4), FormId(5)}, .rest = FormId(6)};
  CHECK(array.item(1) == FormId(5));
  CHECK(array.item(2) == FormId(6));
}

TEST_CASE("ObjectForm::lead moves members, and names a key that cannot lead") {
  ObjectForm object{.members = {{"a"}, {"b"}, {"c"}, {"d"}}};
  CHECK_FALSE(object.lead({"c", "b"}));
  CHECK(object.members == std::vector<ObjectForm::Member>{{"c"}, {"b"}, {"a"}, {"d"}});
  CHECK_FALSE(object.lead({}));
  CHECK(object.lead({"d", "e"}) == "e");
  CHECK(object.lead({"d", "d"}) == "d");
}
