#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tooldecode/model/gguf_tensors.hpp>

#include <support/catch.hpp>
#include <support/gguf_writer.hpp>

namespace td = tooldecode;
using td::model::GgufTensors;
using td::test::GgufWriter;

namespace {

/// Reads all tensors; returns the code and the message of the error.
std::string tensors_failure(const std::string& bytes) {
  try {
    const GgufTensors file(bytes);
    for (const auto& [name, tensor] : file.tensors()) {
      static_cast<void>(file.floats(name, tensor.shape));
    }
  } catch (const td::Error& error) {
    return std::string(name(error.code())) + ' ' + error.what();
  }
  return "none";
}

GgufWriter two_tensors() {
  return GgufWriter()
      .number("key", 7)
      .tensor("a", {2, 3}, {1, 2, 3, 4, 5, 6})
      .tensor("b.weight", {2}, 1, std::string("\x00\x3C\x00\xC0", 4));
}

}  // namespace

TEST_CASE("GgufTensors finds tensors by name and converts them to float") {
  const std::string bytes = two_tensors().file(1);
  const GgufTensors file(bytes);
  CHECK(file.metadata().value<double>("key") == 7);
  CHECK(file.contains("a"));
  CHECK_FALSE(file.contains("c"));
  CHECK(file.tensors().size() == 2);
  CHECK(file.floats("a", std::array<std::size_t, 2>{2, 3}) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(file.floats("b.weight", std::array<std::size_t, 1>{2}) == std::vector<float>{1, -2});
  CHECK_THROWS_WITH(file.floats("a", std::array<std::size_t, 2>{3, 2}),
                    "tensor \"a\": has shape [2,3], must have [3,2]");
  CHECK_THROWS_WITH(file.floats("a", std::array<std::size_t, 1>{6}),
                    "tensor \"a\": has shape [2,3], must have [6]");
  CHECK_THROWS_WITH(file.floats("c", std::array<std::size_t, 1>{1}),
                    "tensor \"c\": is not in the file");
}

TEST_CASE("GgufTensors reads data at the alignment of the file") {
  const std::string key = "general.alignment";
  for (const std::uint32_t alignment : {1U, 8U, 32U}) {  // the writer's tensors are at 0 and 32
    const std::string with_key = two_tensors().number(key, alignment).file(2);
    std::string bytes          = with_key;
    const std::size_t data     = 64;  // of two tensors, padded
    const std::size_t infos    = bytes.find("b.weight") + 8 + 4 + 8 + 4 + 8;
    const std::size_t begin    = (infos + alignment - 1) / alignment * alignment;
    bytes                      = with_key.substr(0, infos) + std::string(begin - infos, '\0') +
            with_key.substr(with_key.size() - data);
    INFO("alignment " << alignment);
    CHECK(GgufTensors(bytes).floats("a", std::array<std::size_t, 2>{2, 3})[5] == 6);
  }
  for (const std::uint32_t alignment : {0U, 24U, 131072U}) {
    CHECK(tensors_failure(two_tensors().number(key, alignment).file(2)) ==
          "malformed_file general.alignment " + std::to_string(alignment) +
              ": must be a power of two from 1 to 65536");
  }
  CHECK(
      tensors_failure(two_tensors().number(key, 64).file(2)) ==
      "malformed_file tensor \"b.weight\": begins at byte 32 of the data, must begin at a multiple of 64");
}

TEST_CASE("GgufTensors throws for inconsistent tensors") {
  CHECK(tensors_failure(two_tensors().file(1)) == "none");
  CHECK(tensors_failure(two_tensors().tensor("a", {1}, {1}).file(1)) ==
        "malformed_file tensor \"a\": is there twice");
  CHECK(tensors_failure(GgufWriter().tensor("a", {}, {1}).file(0)) ==
        "malformed_file byte 37: 0 dimensions: must be from 1 to 4");
  CHECK(tensors_failure(GgufWriter().tensor("a", {1, 1, 1, 1, 1}, {1}).file(0)) ==
        "malformed_file byte 37: 5 dimensions: must be from 1 to 4");
  CHECK(tensors_failure(GgufWriter().tensor("a", {0, 3}, {1}).file(0)) ==
        "malformed_file tensor \"a\": has shape [0,3], must not be empty");
  CHECK(tensors_failure(GgufWriter().tensor("a", {2, 33}, 8, std::string(68, 'x')).file(0)) ==
        "malformed_file tensor \"a\": has rows of 33, of type Q8_0 they must be multiples of 32");
  CHECK(
      tensors_failure(GgufWriter().tensor("a", {9}, {1}).file(0)) ==
      "malformed_file tensor \"a\": has shape [9], the file is cut short: it has 32 bytes of data");
  // Extents whose product overflows.
  const auto huge = std::size_t{1} << 62;
  CHECK(tensors_failure(GgufWriter().tensor("a", {huge, 4}, {1}).file(0)) ==
        "malformed_file tensor \"a\": has shape [4611686018427387904,4], the file is cut short: it "
        "has 32 bytes of data");
}

TEST_CASE("GgufTensors names a type that it does not support") {
  const std::string types =
      ", weights must be F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, "
      "Q6_K or BF16";
  const std::string start = "unknown_format tensor \"a\": has type ";
  const auto failure      = [](std::uint32_t type) {
    return tensors_failure(GgufWriter().tensor("a", {256}, type, std::string(600, 'x')).file(0));
  };
  CHECK(failure(10) == start + "Q2_K" + types);
  CHECK(failure(39) == start + "MXFP4" + types);
  CHECK(failure(4) == start + "number 4" + types);
}

TEST_CASE("GgufTensors throws for a file that is truncated anywhere") {
  const std::string bytes = two_tensors().file(1);
  const std::size_t end   = bytes.size() - 28;  // padding after the last tensor may be missing
  for (std::size_t size = 0; size < end; ++size) {
    INFO("size " << size);
    CHECK(tensors_failure(bytes.substr(0, size)).starts_with("malformed_file"));
  }
  CHECK(tensors_failure(bytes.substr(0, end)) == "none");
}
