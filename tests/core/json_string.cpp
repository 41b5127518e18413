#include <string>

#include <tooldecode/core/json_string.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using tooldecode::core::is_string;

TEST_CASE("is_string: a value is a string only where it is one, with all of its bytes") {
  for (const nlohmann::ordered_json& value :
       {nlohmann::ordered_json("ab"), nlohmann::ordered_json(std::string("ab\0", 3)),
        nlohmann::ordered_json(""), nlohmann::ordered_json(1), nlohmann::ordered_json()}) {
    INFO(value.dump());
    CHECK(is_string(value, "ab") == (value == "ab"));
    CHECK(is_string(value, "") == (value == ""));
  }
  CHECK(is_string(nlohmann::json("ab"), "ab"));
}
