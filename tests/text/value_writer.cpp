#include <limits>
#include <string>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("write_python_literal and write_json write values as Python's repr and json.dumps do") {
  int rows = 0;
  for (const auto& row : test::read_jsonl(test::own_data("tools/python_literals.jsonl"))) {
    if (!row.contains("repr")) continue;
    const auto value = nlohmann::ordered_json::parse(row["dumps"].get<std::string>());
    INFO(row["repr"]);
    CHECK(write_python_literal(value) == row["repr"]);
    CHECK(write_json(value) == row["dumps"]);
    ++rows;
  }
  CHECK(rows > 380);
}

TEST_CASE("write_json and write_python_literal throw for NaN, infinity and invalid UTF-8") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(write_json(nlohmann::json(infinity)), Error);
  CHECK_THROWS_AS(write_python_literal(nlohmann::json(std::nan(""))), Error);
  CHECK_THROWS_AS(write_json(nlohmann::json("\xff")), Error);
  CHECK_THROWS_AS(write_python_literal(nlohmann::json{{"\xff", 1}}), Error);
}

TEST_CASE("write_json and write_python_literal write code points that read back unchanged") {
  std::string all;
  for (std::uint32_t value = 0; value <= 0x10FFFF; value += value < 0x3100 ? 1 : 97) {
    if (value < 0xD800 || value > 0xDFFF) append_utf8(all, value);
  }
  const std::string python = write_python_literal(nlohmann::json(all));
  CHECK(parse_python_literal(python) == all);
  CHECK(parse_json(write_json(nlohmann::json(all))) == all);
}

TEST_CASE("write_json and write_python_literal write exact numbers as they were read") {
  const auto value = parse_exact_json("[18446744073709551617, -1e-400, 0.1]");
  CHECK(write_json(value) == "[18446744073709551617, -1e-400, 0.1]");
  CHECK(write_python_literal(value) == "[18446744073709551617, -1e-400, 0.1]");
  CHECK(write_json(nlohmann::json::binary({1})) == "null");
}
