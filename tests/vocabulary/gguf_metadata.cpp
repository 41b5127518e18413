#include <cstdint>
#include <string>

#include <tooldecode/vocabulary/gguf_metadata.hpp>

#include <support/catch.hpp>
#include <support/gguf_writer.hpp>

namespace td = tooldecode;
using td::vocabulary::GgufMetadata;

namespace {

std::string metadata_failure(const std::string& bytes) {
  try {
    static_cast<void>(GgufMetadata(bytes));
  } catch (const td::Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("GgufMetadata reads values of each type") {
  td::test::GgufWriter writer;
  writer.key("a", 0).put<std::uint8_t>(200).key("b", 1).put<std::int8_t>(-3);
  writer.key("c", 2).put<std::uint16_t>(60000).key("d", 3).put<std::int16_t>(-300);
  writer.number("e", 4000000000U).key("f", 5).put<std::int32_t>(-70000).real("g", 0.5F);
  writer.key("h", 7).put<std::uint8_t>(1).text("i", "text").types("j", {1, -2});
  writer.texts("k", {"x", ""}).key("l", 10).put(std::uint64_t{1} << 40);
  writer.key("m", 11).put(-(std::int64_t{1} << 40)).key("n", 12).put(1e300);
  const std::string bytes = writer.file(14);
  const GgufMetadata file(bytes + "what follows");
  const auto number = [&](const char* key) { return file.value<double>(key); };
  CHECK(number("a") == 200);
  CHECK(number("b") == -3);
  CHECK(number("c") == 60000);
  CHECK(number("d") == -300);
  CHECK(number("e") == 4e9);
  CHECK(number("f") == -70000);
  CHECK(number("g") == 0.5);
  CHECK(number("h") == 1);
  CHECK(file.value<std::string>("i") == "text");
  CHECK(file.value<GgufMetadata::Numbers>("j") == GgufMetadata::Numbers{1, -2});
  CHECK(file.value<GgufMetadata::Strings>("k") == GgufMetadata::Strings{"x", ""});
  CHECK(number("l") == 0x1p40);
  CHECK(number("m") == -0x1p40);
  CHECK(number("n") == 1e300);
  CHECK(file.has("n"));
  CHECK_FALSE(file.has("o"));
  CHECK(file.tensor_count() == 0);
  CHECK(file.size_bytes() == bytes.size());
  for (const char* key : {"i", "o"})
    CHECK_THROWS_WITH(number(key), std::string(key) + ": must be there, and of its type");
}

TEST_CASE("GgufMetadata counts tensors without reading them") {
  const std::string whole = td::test::GgufWriter().number("a", 1).tensor("t", {1}, {0.0F}).file(1);
  const GgufMetadata file(whole);
  CHECK(file.tensor_count() == 1);
  CHECK(GgufMetadata(whole.substr(0, file.size_bytes())).value<double>("a") == 1);
}

TEST_CASE("GgufMetadata errors name the byte and huge counts allocate nothing") {
  using Writer = td::test::GgufWriter;
  CHECK(metadata_failure("GGML") == "byte 0: must be \"GGUF\"");
  CHECK(metadata_failure(Writer().file(0, 1)) == "byte 8: version 1: must be 2 or 3");
  CHECK(metadata_failure(Writer().file(0, 2)) == "accepted");
  CHECK(metadata_failure(Writer().key("k", 13).file(1)) ==
        "byte 37: value type 13: must be from 0 to 12");
  CHECK(metadata_failure(Writer().key("k", 9).put<std::uint32_t>(9).put<std::uint64_t>(1).file(
            1)) == "byte 49: must not be an array of arrays");
  // Counts beyond the size of the file are rejected before an allocation.
  const auto huge = ~std::uint64_t{0};
  CHECK(metadata_failure(Writer().put(huge).file(1)) ==
        "byte 32: a string must not be longer than the file");
  CHECK(metadata_failure(Writer().key("k", 9).put<std::uint32_t>(8).put(huge).file(1)) ==
        "byte 49: an array must not be longer than the file");
  CHECK(metadata_failure(Writer().file(huge)) ==
        "byte 24: must be followed by 8 bytes: the file is cut short");
}
