#include <tooldecode/schema/form_algebra.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;

TEST_CASE("FormTable interns conjunctions and complements by their parts") {
  FormAlgebra forms;
  const FormId a = forms.add(Form{.null = true});
  const FormId b = forms.add(Form{.null = true, .truth = true});
  CHECK(forms.both(a, any_form) == a);
  CHECK(forms.both(a, nothing_form) == nothing_form);
  CHECK(forms.both(a, b) == forms.both(b, a));
  CHECK(forms.both(forms.both(a, b), a) == forms.both(a, b));
  CHECK(forms.complement(forms.complement(a)) == a);
  CHECK(forms.both(a, forms.complement(a)) == nothing_form);
  CHECK(forms[forms.both(a, b)].null);
  CHECK_FALSE(forms[forms.both(a, b)].truth);
  const Form& rest = forms[forms.both(b, forms.complement(a))];
  CHECK(rest.truth);
  CHECK_FALSE(rest.null);
  CHECK(forms.are_disjoint(a, forms.complement(b)));
  CHECK_FALSE(forms.are_disjoint(a, b));
}

TEST_CASE("FormTable throws for a form that contains itself") {
  // Reads each form as the form with the same id.
  struct Alias final : FormSource {
    FormAlgebra forms{this};
    Form read(std::uint32_t id) override { return forms[FormId(id)]; }
  };
  Alias alias;
  FormAlgebra& forms = alias.forms;
  const FormId self  = forms.add_read(2, "#/self");
  REQUIRE(self == FormId(2));
  try {
    (void)forms[self];
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::malformed_schema);
    CHECK(error.where() == "#/self");
  }
}

TEST_CASE("FormTable::Origin sets the place of new forms until it is destroyed") {
  FormAlgebra forms;
  const FormTable::Origin outer(forms, "#/allOf");
  const FormId first = forms.add(Form{.null = true});
  try {
    const FormTable::Origin inner(forms, "#/allOf/0/not");
    CHECK(forms.place_of(forms.complement(first)) == "#/allOf/0/not");
    throw Error(Errc::malformed_schema, "#", "anything");
  } catch (const Error&) {}
  CHECK(forms.place_of(first) == "#/allOf");
  CHECK(forms.place_of(forms.add(Form{.truth = true})) == "#/allOf");
}
