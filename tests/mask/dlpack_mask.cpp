#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/mask/dlpack_mask.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// The fields of DLPack's DLTensor.
enum DeviceType { on_cpu = 1, on_gpu = 2 };
struct Tensor {
  void* data;
  struct {
    DeviceType device_type;
    std::int32_t device_id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

constexpr std::size_t vocabulary_size = 70;  // three words

// Masks as another library passes them: row-major, after two words of other data.
struct Foreign {
  std::vector<std::int32_t> memory    = std::vector<std::int32_t>(2 + 4 * 3);
  std::array<std::int64_t, 3> shape   = {4, 3, 1};
  std::array<std::int64_t, 3> strides = {3, 1, 1};
  Tensor tensor{memory.data(), {on_cpu, 0}, 2, {0, 32, 1}, shape.data(), strides.data(), 8};
};

template <class Change>
std::string refusal(Change change) {
  Foreign foreign;
  change(foreign);
  try {
    static_cast<void>(dlpack_mask_words(foreign.tensor, vocabulary_size));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class Change>
void check_refused(Errc code, const std::string& where, Change change) {
  Foreign foreign;
  change(foreign);
  try {
    static_cast<void>(dlpack_mask_words(foreign.tensor, vocabulary_size));
    FAIL("accepted, with a wrong " << where);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(error.where() == where);
  }
}

}  // namespace

TEST_CASE("dlpack_mask_words of a mask tensor returns the tensor's memory") {
  Foreign foreign;
  auto words = dlpack_mask_words(foreign.tensor, vocabulary_size);
  REQUIRE(words.size() == 4 * 3);
  words[0]  = 0xFFFFFFFF;
  words[11] = 5;
  CHECK(foreign.memory[2] == -1);
  CHECK(foreign.memory[13] == 5);
  CHECK(dlpack_mask_words(foreign.tensor, 65).data() == words.data());

  foreign.tensor.dtype.code = 1;
  foreign.tensor.strides    = nullptr;
  CHECK(dlpack_mask_words(foreign.tensor, vocabulary_size).size() == 12);

  foreign.tensor.ndim = 1;
  foreign.shape       = {3};
  CHECK(dlpack_mask_words(foreign.tensor, vocabulary_size).size() == 3);

  // A stride that no element uses may have any value.
  foreign.tensor.ndim    = 2;
  foreign.tensor.strides = foreign.strides.data();
  foreign.shape          = {1, 3};
  foreign.strides        = {77, 1};
  CHECK(dlpack_mask_words(foreign.tensor, vocabulary_size).size() == 3);
  foreign.shape   = {4, 1};
  foreign.strides = {1, 77};
  CHECK(dlpack_mask_words(foreign.tensor, 32).size() == 4);
  foreign.shape       = {0, 3};
  foreign.tensor.data = nullptr;
  CHECK(dlpack_mask_words(foreign.tensor, vocabulary_size).empty());
}

TEST_CASE("dlpack_mask_words of a tensor that is no mask throws with the wrong field") {
  using F = Foreign;
  CHECK(refusal([](F& f) { f.tensor.device.device_type = on_gpu; }) ==
        "device 2: must be the CPU, which DLPack numbers 1");
  CHECK(refusal([](F& f) { f.shape = {4, 2}; }) == "shape: [4, 2]: must be [rows, 3] or [3]");
  CHECK(refusal([](F& f) {
          f.strides = {4, 1};
        }) == "strides: must be those of rows without gaps: [3, 1]");
  CHECK(refusal([](F& f) { f.tensor.dtype.bits = 64; }) ==
        "dtype: 64 bits of code 0 in 1 lanes: must be int32 or uint32, in one lane");
  check_refused(Errc::invalid_option, "device", [](F& f) { f.tensor.device.device_type = on_gpu; });
  check_refused(Errc::unknown_format, "dtype", [](F& f) { f.tensor.dtype.code = 2; });
  check_refused(Errc::unknown_format, "dtype", [](F& f) { f.tensor.dtype.bits = 64; });
  check_refused(Errc::unknown_format, "dtype", [](F& f) { f.tensor.dtype.lanes = 2; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.tensor.ndim = 0; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.tensor.ndim = 3; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.tensor.shape = nullptr; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.shape = {4, 2}; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.shape = {3, 4}; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) { f.shape = {-4, 3}; });
  check_refused(Errc::shape_mismatch, "shape", [](F& f) {
    f.shape = {std::numeric_limits<std::int64_t>::max(), 3};
  });
  check_refused(Errc::shape_mismatch, "strides", [](F& f) { f.strides = {4, 1}; });
  check_refused(Errc::shape_mismatch, "strides", [](F& f) { f.strides = {1, 4}; });
  check_refused(Errc::shape_mismatch, "strides", [](F& f) { f.strides = {3, -1}; });
  check_refused(Errc::invalid_option, "data", [](F& f) { f.tensor.data = nullptr; });
  check_refused(Errc::invalid_option, "data", [](F& f) { f.tensor.byte_offset = 6; });
}
