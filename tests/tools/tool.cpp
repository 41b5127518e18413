#include <tooldecode/tools/tool.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("documented_parameters gives the document's schema, whatever is enforced") {
  Tool tool{.name = "f", .parameters = {{"type", "object"}}};
  CHECK(documented_parameters(tool) == JsonValue{{"type", "object"}});
  tool.documented = {{"minProperties", 1}};
  CHECK(documented_parameters(tool) == JsonValue{{"minProperties", 1}});
}
