#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>

#include <support/catch.hpp>
#include <support/kept_memory.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

namespace {

// The thread that runs an operation takes or leaves a few blocks, and malloc does not split off a
// rest that is too small.
bool is_about(std::size_t counted, std::size_t kept) {
  const double difference = static_cast<double>(counted) - static_cast<double>(kept);
  return std::abs(difference) <= 64 + 0.005 * static_cast<double>(kept);
}

// Whether what malloc keeps for values that `make` returns is what heap_bytes says of them.
template <class Make, class Bytes>
void check_kept(const Make& make, Bytes bytes) {
  std::vector<decltype(make(std::size_t{0}))> values(400);
  const auto kept = test::kept_memory([&] {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = make(i);
  });
  if (!kept) return;
  std::size_t counted = 0;
  for (const auto& value : values) counted += bytes(value);
  CHECK(is_about(counted, *kept));
}

}  // namespace

TEST_CASE("heap_bytes of a size is what malloc takes for a block of that size") {
  CHECK(heap_bytes(0) == 0);
  check_kept([](std::size_t i) { return std::make_unique<char[]>(i + 1); },
             [n = std::size_t{0}](const auto&) mutable { return heap_bytes(++n); });
}

TEST_CASE("heap_bytes of vectors and strings is what malloc takes for them") {
  check_kept([](std::size_t i) { return std::vector<std::uint32_t>(i); },
             [](const auto& vector) { return heap_bytes(vector); });
  check_kept([](std::size_t i) { return std::string(i / 4, 'a'); },
             [](const auto& text) { return heap_bytes(text); });
}

TEST_CASE("heap_bytes of hash maps is what malloc takes for their buckets and nodes") {
  check_kept(
      [](std::size_t i) {
        auto map = std::make_unique<std::unordered_map<std::uint32_t, std::uint64_t>>();
        for (std::uint32_t n = 0; n < i; ++n) map->emplace(n, 0);
        return map;
      },
      [](const auto& map) { return heap_bytes(sizeof *map) + heap_bytes(*map); });
}

TEST_CASE("shared_bytes is what malloc takes for a shared object") {
  struct Large {
    char bytes[200];
  };
  check_kept([](std::size_t) { return std::make_shared<Large>(); },
             [](const auto&) { return shared_bytes<Large>(); });
}

TEST_CASE("StableVector::bytes and InternIndex::bytes are what malloc takes for them") {
  if (!test::allocated_bytes()) return;
  for (const std::size_t count : {1U, 64U, 65U, 500U, 3'000U}) {
    CAPTURE(count);
    StableVector<std::uint64_t> vector;
    const auto of_vector = test::kept_memory([&] {
      for (std::size_t i = 0; i < count; ++i) (void)vector.emplace(i);
    });
    CHECK(is_about(vector.bytes(), *of_vector));
    std::optional<InternIndex> index;
    const auto of_index = test::kept_memory([&] {
      index.emplace();
      for (std::size_t i = 0; i < count; ++i) {
        (void)index->intern(
            hash_combine(0, i), [](std::uint32_t) { return false; },
            [&] { return static_cast<std::uint32_t>(i); });
      }
    });
    CHECK(is_about(index->bytes(), *of_index));
  }
}
