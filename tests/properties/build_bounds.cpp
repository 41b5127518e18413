// The counted cost of building: for each family of documents at n, 2n and 4n, the budget's steps
// and bytes and the grammar's nodes grow at most as the square of n, and too small a budget ends
// the build with a pointer to the schema in work.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using Json = tooldecode::JsonValue;

namespace {

std::string key(const char* prefix, int i) {
  return prefix + std::to_string(i);
}

// An array, or an object by names, of n parts.
Json list(int n, const std::function<Json(int)>& part) {
  Json all = Json::array();
  for (int i = 0; i < n; ++i) all.push_back(part(i));
  return all;
}
Json map(int n, const std::function<Json(int)>& part, const char* prefix = "p") {
  Json all = Json::object();
  for (int i = 0; i < n; ++i) all[key(prefix, i)] = part(i);
  return all;
}
Json nested(int n, const std::function<Json(Json, int)>& around) {
  Json all{{"type", "string"}};
  for (int i = 0; i < n; ++i) all = around(std::move(all), i);
  return all;
}
Json text_schema(int min) {
  return {{"type", "string"}, {"minLength", min}};
}

struct Family {
  const char* name;
  int n;  // the first of three sizes
  std::function<Json(int)> make;
  const char* place = "#";   // what the pointer of an error begins with
  double exponent   = 1.15;  // of the growth: 1 is linear, 2 the most that is allowed
};

// To add one: a name, the size to begin with, and the schema of size n.
const std::vector<Family> schemas{
    {"required", 200,
     [](int n) {
       return Json{{"required", list(n, [](int i) { return key("k", i); })}};
     }},
    {"properties, all required", 200,
     [](int n) {
       return Json{{"properties", map(n, text_schema)},
                   {"required", list(n, [](int i) { return key("p", i); })},
                   {"additionalProperties", false}};
     }},
    {"not properties", 200,
     [](int n) {
       return Json{{"not", {{"properties", map(n, [](int) { return text_schema(0); })}}}};
     }},
    {"not required", 200,
     [](int n) {
       return Json{{"not", {{"required", list(n, [](int i) { return key("k", i); })}}}};
     },
     "#", 2.05},
    {"not prefixItems", 60,
     [](int n) {
       return Json{{"not", {{"prefixItems", list(n, [](int i) { return Json{{"const", i}}; })}}}};
     },
     "#", 2.05},
    {"allOf of properties", 60,
     [](int n) {
       return Json{{"allOf", list(n, [](int i) {
                      return Json{{"properties", {{key("p", i), {{"type", "string"}}}}}};
                    })}};
     },
     "#", 2.05},
    {"anyOf of objects", 60,
     [](int n) {
       return Json{{"anyOf", list(n, [](int i) {
                      return Json{{"type", "object"},
                                  {"properties", {{key("p", i), {{"type", "string"}}}}},
                                  {"required", {key("p", i)}}};
                    })}};
     }},
    {"oneOf told apart by a constant", 40,
     [](int n) {
       return Json{{"oneOf", list(n, [](int i) {
                      return Json{{"type", "object"},
                                  {"properties", {{"kind", {{"const", i}}}, {key("p", i), true}}},
                                  {"required", {"kind"}}};
                    })}};
     },
     "#", 2.05},
    {"uniqueItems of an enum", 200,
     [](int n) {
       return Json{{"type", "array"},
                   {"uniqueItems", true},
                   {"minItems", n / 2},
                   {"items", {{"enum", list(n, [](int i) { return key("v", i); })}}}};
     }},
    {"enum of strings", 500,
     [](int n) {
       return Json{{"enum", list(n, [](int i) { return key("v", i); })}};
     }},
    {"enum of numbers", 500,
     [](int n) {
       return Json{{"enum", list(n, [](int i) { return i; })}};
     }},
    {"enum of arrays", 200,
     [](int n) {
       return Json{{"enum", list(n, [](int i) { return Json::array({i}); })}};
     }},
    {"enum of objects", 200,
     [](int n) {
       return Json{{"enum", list(n, [](int i) { return Json{{"a", i}}; })}};
     }},
    {"const object", 200,
     [](int n) {
       return Json{{"const", map(n, [](int i) { return i; })}};
     }},
    {"const array", 200,
     [](int n) {
       return Json{{"const", list(n, [](int i) { return i; })}};
     }},
    {"dependentRequired", 200,
     [](int n) {
       return Json{{"dependentRequired", map(n, [](int i) { return Json::array({key("q", i)}); })}};
     }},
    {"dependentRequired, a chain", 200,
     [](int n) {
       return Json{
           {"dependentRequired", map(n, [](int i) { return Json::array({key("p", i + 1)}); })}};
     }},
    {"dependentRequired, a chain backwards", 200,
     [](int n) {
       Json chain = Json::object();
       for (int i = n; i > 0; --i) chain[key("p", i - 1)] = {key("p", i)};
       return Json{{"dependentRequired", std::move(chain)}};
     }},
    {"propertyNames of an enum", 200,
     [](int n) {
       return Json{{"propertyNames", {{"enum", list(n, [](int i) { return key("k", i); })}}}};
     }},
    {"unevaluatedProperties over allOf", 40,
     [](int n) {
       return Json{
           {"allOf", list(n,
                          [](int i) {
                            return Json{{"properties", {{key("p", i), {{"type", "string"}}}}}};
                          })},
           {"unevaluatedProperties", false}};
     },
     "#", 2.05},
    {"references in a chain", 200,
     [](int n) {
       Json chain = Json::object();
       for (int i = 0; i < n; ++i) chain[key("d", i)] = {{"$ref", "#/$defs/" + key("d", i + 1)}};
       chain[key("d", n)] = text_schema(1);
       return Json{{"$ref", "#/$defs/d0"}, {"$defs", std::move(chain)}};
     }},
    {"definitions, each referred to", 200,
     [](int n) {
       return Json{{"properties", map(n,
                                      [](int i) {
                                        return Json{{"$ref", "#/$defs/" + key("d", i)}};
                                      })},
                   {"$defs", map(n, text_schema, "d")}};
     }},
    {"nested objects", 20,
     [](int n) {
       return nested(n, [](Json inner, int) {
         return Json{{"type", "object"}, {"properties", {{"a", std::move(inner)}}}};
       });
     },
     "#", 1.35},
    {"nested allOf", 20,
     [](int n) {
       return nested(n, [](Json inner, int) {
         return Json{{"allOf", Json::array({std::move(inner)})}};
       });
     },
     "#", 1.5},
    {"if, then and else in a chain", 20,
     [](int n) {
       return nested(n, [](Json inner, int i) {
         return Json{{"if", {{"const", key("x", i)}}},
                     {"then", {{"maxLength", i}}},
                     {"else", std::move(inner)}};
       });
     },
     "#", 2.05},
    {"long names", 20,
     [](int n) {
       Json all = Json::object();
       for (int i = 0; i < n; ++i) all[std::string(1000, 'x') + std::to_string(i)] = text_schema(1);
       return Json{{"properties", std::move(all)}};
     }},
    {"first items", 200,
     [](int n) {
       return Json{{"prefixItems", list(n, text_schema)}, {"minItems", n}};
     }},
};

struct Cost {
  double steps, bytes, nodes;
};

Cost cost_of(const Json& schema) {
  const BuildBudget budget({.steps = ~std::uint64_t{0}, .bytes = ~std::uint64_t{0}});
  Grammar grammar;
  const NodeId root = SchemaCompiler(grammar, schema).value(schema, "#");
  NodeStore store;
  (void)store.add(grammar, root);
  return {static_cast<double>(budget.spent().steps), static_cast<double>(budget.spent().bytes),
          static_cast<double>(store.size())};
}

// The growth from one size to twice the size, as an exponent.
double exponent(double before, double after) {
  return std::log2(after / before);
}

}  // namespace

TEST_CASE("Grammar::json_schema costs at most the square of the schema's size") {
  for (const Family& family : schemas) {
    INFO(family.name);
    REQUIRE(family.exponent <= 2.05);
    (void)cost_of(family.make(2));  // objects that are made once for the process
    const Cost one = cost_of(family.make(family.n));
    const Cost two = cost_of(family.make(2 * family.n)), four = cost_of(family.make(4 * family.n));
    CHECK(exponent(one.steps, two.steps) < family.exponent);
    CHECK(exponent(two.steps, four.steps) < family.exponent);
    CHECK(exponent(one.bytes, two.bytes) < family.exponent);
    CHECK(exponent(two.bytes, four.bytes) < family.exponent);
    CHECK(exponent(one.nodes, two.nodes) < family.exponent);
    CHECK(exponent(two.nodes, four.nodes) < family.exponent);
  }
}

TEST_CASE("Grammar::json_schema beyond its budget throws with the place and the option's name") {
  const VocabularyIndex cache{test::byte_vocabulary()};
  for (const Family& family : schemas) {
    INFO(family.name);
    const Json schema  = family.make(family.n);
    const Cost cost    = cost_of(schema);
    const auto attempt = [&](BuildLimits limits) {
      try {
        const Constraint constraint(cache, Grammar::json_schema(schema, {.limits = limits}));
        return std::string("built");
      } catch (const Error& error) {
        CHECK(error.code() == Errc::limit_exceeded);
        CHECK(error.where().starts_with(family.place));
        return std::string(error.what());
      }
    };
    const auto steps = static_cast<std::uint64_t>(cost.steps);
    const auto bytes = static_cast<std::uint64_t>(cost.bytes);
    CHECK(attempt({.steps = 2 * steps + 1000, .bytes = 2 * bytes + 10'000}) == "built");
    for (const std::uint64_t share : {2U, 10U, 100U}) {
      CHECK_THAT(attempt({.steps = steps / share, .bytes = 2 * bytes}),
                 test::contains("the option limits.steps raises"));
      CHECK_THAT(attempt({.steps = 2 * steps, .bytes = bytes / share}),
                 test::contains("the option limits.bytes raises"));
    }
  }
}

TEST_CASE(
    "Grammar::json_schema of products of alternatives stays in the default budget or is refused") {
  const VocabularyIndex cache{test::byte_vocabulary()};
  for (const int n : {4, 8, 20, 40}) {
    const Json schema{{"type", "object"},
                      {"allOf", list(n, [](int i) {
                         return Json{{"anyOf",
                                      {{{"minProperties", 2 * i}},
                                       {{"properties", {{key("a", i), text_schema(i)}}}},
                                       {{"properties", {{key("b", i), text_schema(i)}}}}}}};
                       })}};
    INFO(n);
    const BuildBudget budget;
    try {
      const Constraint constraint(cache, Grammar::json_schema(schema));
      CHECK(n <= 8);  // 3^8 alternatives
    } catch (const Error& error) {
      CHECK(n >= 20);
      CHECK(error.code() == Errc::limit_exceeded);
      CHECK(error.where().starts_with("#"));
    }
    CHECK(budget.spent().steps < 2 * BuildLimits{}.steps);
  }
}

TEST_CASE("ToolCallFSM over a set of tools costs no more than its tools do") {
  const auto tools = [](int n) {
    return list(n, [](int i) {
      return Json{
          {"name", key("t", i)},
          {"parameters", {{"properties", {{"a", {{"type", "string"}}}}}, {"required", {"a"}}}}};
    });
  };
  const auto cost = [&](int n) {
    const BuildBudget budget({.steps = ~std::uint64_t{0}, .bytes = ~std::uint64_t{0}});
    const ToolSet set = ToolSet::from_json(tools(n));
    const ToolCallFSM calls(VocabularyIndex{test::byte_vocabulary()}, set, JsonCall::hermes());
    return budget.spent();
  };
  (void)cost(2);
  const BuildLimits one = cost(50), two = cost(100), four = cost(200);
  CHECK(two.steps < one.steps * 22 / 10);
  CHECK(four.steps < two.steps * 22 / 10);
  CHECK(two.bytes < one.bytes * 22 / 10);
  CHECK(four.bytes < two.bytes * 22 / 10);
  CHECK_THROWS_AS(ToolSet::from_json(tools(100), {.steps = 1000}), Error);
  const ToolSet set = ToolSet::from_json(tools(100));
  try {
    const ToolCallFSM calls(VocabularyIndex{test::byte_vocabulary()}, set, JsonCall::hermes(),
                            {.limits = {.steps = one.steps}});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(error.where().starts_with("#"));
  }
}
