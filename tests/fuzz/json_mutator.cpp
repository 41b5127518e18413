// Lets libFuzzer mutate JSON inputs node by node.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include <fuzz/fuzz.hpp>
#include <fuzz/mutate.hpp>
#include <nlohmann/json.hpp>

using tooldecode::fuzz::mutate_json;
using tooldecode::fuzz::text_of;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

namespace {

std::size_t write(const std::string& text, std::uint8_t* data, std::size_t max) {
  if (text.size() > max) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

nlohmann::ordered_json parse(const std::uint8_t* data, std::size_t size) {
  return nlohmann::ordered_json::parse(text_of(data, size), nullptr, false);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  std::mt19937 random(seed);
  const auto value = parse(data, size);
  if (!value.is_discarded() && random() % 4 != 0) {
    const auto error = nlohmann::ordered_json::error_handler_t::replace;
    const auto text  = mutate_json(value, value, random).dump(-1, ' ', false, error);
    if (const std::size_t written = write(text, data, max)) return written;
  }
  return LLVMFuzzerMutate(data, size, max);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second,
                                                 std::size_t second_size, std::uint8_t* out,
                                                 std::size_t max, unsigned seed) {
  std::mt19937 random(seed);
  const auto a = parse(first, first_size), b = parse(second, second_size);
  if (a.is_discarded() || b.is_discarded()) return 0;
  const auto error = nlohmann::ordered_json::error_handler_t::replace;
  return write(mutate_json(a, b, random).dump(-1, ' ', false, error), out, max);
}
