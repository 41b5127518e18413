#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/model/safetensors.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Shape  = std::vector<std::size_t>;

namespace {

std::string with_size(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(file.data(), &size, sizeof size);
  return file + header + data;
}

std::string bytes_of(const auto& values) {
  std::string bytes(values.size() * sizeof(values[0]), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Three tensors, one of each type, and a zero-sized one.
std::string valid_file() {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                             R"("b.weight":{"dtype":"F16","shape":[3],"data_offsets":[16,22]},)"
                             R"("c":{"dtype":"BF16","shape":[1,2],"data_offsets":[22,26]},)"
                             R"("empty":{"dtype":"F32","shape":[0,4],"data_offsets":[26,26]}})";
  return with_size(header, bytes_of(std::array{1.5F, -2.0F, 0.0F, 1e30F}) +
                               bytes_of(std::array<std::uint16_t, 3>{0x3C00, 0xC000, 0x3555}) +
                               bytes_of(std::array<std::uint16_t, 2>{0x3F80, 0xC049}));
}

/// Reads all tensors; returns the code and the message of the error.
std::pair<td::Errc, std::string> failure(const std::string& file) {
  try {
    const auto tensors = td::SafeTensors::parse(file, "m.safetensors");
    for (const auto& [name, tensor] : tensors.tensors()) {
      static_cast<void>(tensors.floats(name, tensor.shape));
    }
  } catch (const td::Error& error) {
    return {error.code(), error.what()};
  }
  return {td::Errc::invalid_option, "none"};
}

std::pair<td::Errc, std::string> failure_of(const std::string& header, std::size_t data_bytes) {
  return failure(with_size(header, std::string(data_bytes, '\0')));
}

}  // namespace

TEST_CASE("SafeTensors reads F32, F16 and BF16 tensors") {
  const auto file = td::SafeTensors::parse(valid_file());
  CHECK(file.tensors().size() == 4);
  CHECK(file.contains("b.weight"));
  CHECK_FALSE(file.contains("__metadata__"));
  CHECK(file.floats("a", Shape{2, 2}) == std::vector{1.5F, -2.0F, 0.0F, 1e30F});
  CHECK(file.floats("b.weight", Shape{3}) == std::vector{1.0F, -2.0F, 0.333251953125F});
  CHECK(file.floats("c", Shape{1, 2}) == std::vector{1.0F, -3.140625F});
  CHECK(file.floats("empty", Shape{0, 4}).empty());
}

TEST_CASE("half_to_float converts each half-precision number exactly") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float actual = td::half_to_float(static_cast<std::uint16_t>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 31U);
    const int mantissa = static_cast<int>(bits & 0x3ffU);
    const double sign  = bits >> 15 != 0 ? -1 : 1;
    const double number =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    bool same = static_cast<double>(actual) == sign * number;
    if (exponent == 31) {
      same = mantissa != 0
                 ? std::isnan(actual)
                 : static_cast<double>(actual) == sign * std::numeric_limits<double>::infinity();
    }
    if (!same || std::signbit(actual) != (sign < 0)) FAIL("bits " << bits);
  }
}

TEST_CASE("SafeTensors::floats throws for a missing tensor, a wrong shape and an integer type") {
  const auto file = td::SafeTensors::parse(valid_file(), "m.safetensors");
  CHECK_THROWS_WITH(file.floats("x", Shape{1}), "m.safetensors: tensor \"x\": is not in the file");
  CHECK_THROWS_WITH(file.floats("a", Shape{4}),
                    "m.safetensors: tensor \"a\": has shape [2,2], must have [4]");
  CHECK(failure_of(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8).second ==
        "m.safetensors: tensor \"a\": has type I64, weights must be F32, F16 or BF16");
}

TEST_CASE("SafeTensors::parse errors name the place of an inconsistent header") {
  using td::Errc;
  const auto check = [](const std::pair<Errc, std::string>& found, Errc code,
                        const std::string& part) {
    CHECK(found.first == code);
    CHECK_THAT(found.second, td::test::contains(part));
    CHECK(found.second.find('\n') == std::string::npos);
  };
  check(failure(""), Errc::malformed_file, "shorter than the 8 bytes");
  check(failure("1234567"), Errc::malformed_file, "shorter than the 8 bytes");
  check(failure(std::string(8, '\xff')), Errc::malformed_file, "18446744073709551615 bytes");
  check(failure(std::string("\x05\0\0\0\0\0\0\0{}", 10)), Errc::malformed_file, "5 bytes");
  check(failure_of("", 0), Errc::malformed_json, "not JSON");
  check(failure_of("{\"a\":", 0), Errc::malformed_json,
        "m.safetensors: the header is not JSON: byte 5");
  check(failure_of("[]", 0), Errc::malformed_file, "no object");
  check(failure_of("{\"a\":1e999}", 0), Errc::malformed_json, "too large");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4), Errc::malformed_file, "\"a\"");
  check(failure_of(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4),
        Errc::malformed_file, "dtype");
  check(failure_of(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4),
        Errc::unknown_format, "\"F99\"");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
        Errc::malformed_file, "shape");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4),
        Errc::malformed_file, "shape");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 4),
        Errc::malformed_file, "[0, 8] outside the 4 bytes");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
        Errc::malformed_file, "[4, 0] outside");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
        Errc::malformed_file, "more bytes than data_offsets");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8),
        Errc::malformed_file, "4 bytes, data_offsets give 8");
  // 2^62 elements of four bytes are 2^64 bytes, which overflows to zero.
  check(
      failure_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
      Errc::malformed_file, "more bytes");
  check(failure_of(R"({"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,4]}})",
                   4),
        Errc::malformed_file, "more bytes");
  check(failure_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
                   5),
        Errc::malformed_file, "begins at byte 3");
  check(failure_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
        Errc::malformed_file, "begins at byte 1");
  check(failure_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2),
        Errc::malformed_file, "2 bytes of data, its tensors take 1");
  check(failure_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                   R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                   1),
        Errc::malformed_json, "occurs twice");
  check(failure_of("{\"a\\n\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
        Errc::unknown_format, "\"a\\n\"");
  check(failure_of(std::string(100'000, '['), 0), Errc::limit_exceeded, "not JSON");
}

TEST_CASE("SafeTensors::parse of a damaged file throws only Error") {
  const std::string valid = valid_file();
  CHECK(failure(valid).second == "none");
  std::mt19937 random{5};
  for (std::size_t cut = 0; cut < valid.size(); ++cut) {
    CHECK(failure(valid.substr(0, cut)).second != "none");
  }
  const std::string alphabet = "{}[]\",:0189-.eE\\u\xff\x01\n aF";
  for (int round = 0; round < 5000; ++round) {
    INFO("seed 5, round " << round);
    std::string file = valid;
    for (std::size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          file.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 2:
          file.erase(at, 1 + random() % 4);
          break;
        default:
          file[at] = static_cast<char>(file[at] ^ (1 << random() % 8));
      }
      if (file.empty()) break;
    }
    const std::string what = failure(file).second;
    CHECK(what.find('\n') == std::string::npos);
  }
}

TEST_CASE("SafeTensors::load of an unreadable file names it") {
  const auto directory = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(td::SafeTensors::load("/nowhere/m.safetensors"),
                    "/nowhere/m.safetensors: is not a file that can be read");
  CHECK_THROWS_AS(td::SafeTensors::load(directory), td::Error);
}
