#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/page_pool.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr PagePoolShape shape{
    .pages = 2, .page_size = 4, .layers = 3, .key_heads = 2, .head_size = 8};

}  // namespace

TEST_CASE("PagePool: gives each page once, and again when all copies are gone") {
  test::on_device([] {
    std::optional<PagePool<__half>> pool(shape);
    std::optional<CachePage> first(pool->take());
    const CachePage second = pool->take();
    CHECK(first->index() != second.index());
    std::optional<CachePage> copy = first;
    CHECK_FALSE(first->is_exclusive());
    CHECK(second.is_exclusive());
    CHECK_THROWS_WITH(pool->take(), "cache: 8 tokens of all sequences: there is no room for more");
    const int index = first->index();
    first.reset();
    CHECK_THROWS_AS(pool->take(), Error);
    copy.reset();
    const CachePage third = pool->take();
    CHECK(third.index() == index);
    pool.reset();  // the pages go back to nothing
  });
}

TEST_CASE("PagePool, views: no two rows of a pool are in the same place, and a copy has all") {
  test::on_device([] {
    PagePool<__half> pool(shape);
    const CachePage from = pool.take(), to = pool.take();
    const std::vector<std::int32_t> pages{from.index(), to.index()};
    const auto views = pool.views(pages.data(), 2);  // the table is read on the host here
    REQUIRE(views.size() == 3);
    const __half* const begin = views[0].keys;
    std::vector<__half> numbers(2 * shape.page_numbers());
    std::vector<int> seen(numbers.size());
    for (const auto& view : views) {
      for (int slot = 0; slot < 8; ++slot) {
        for (int head = 0; head < 2; ++head) {
          for (const __half* rows : {view.keys, view.values}) {
            const std::ptrdiff_t at = rows + view.offset(0, slot, head) - begin;
            for (std::ptrdiff_t i = at; i < at + 8; ++i) ++seen[static_cast<std::size_t>(i)];
          }
        }
      }
    }
    CHECK(seen == std::vector<int>(numbers.size(), 1));

    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = from_float<__half>(static_cast<float>(i));
    }
    const std::size_t bytes = numbers.size() * sizeof(__half);
    check(cudaMemcpy(views[0].keys, numbers.data(), bytes, cudaMemcpyHostToDevice));
    pool.copy(from, to, nullptr);
    check(cudaMemcpy(numbers.data(), views[0].keys, bytes, cudaMemcpyDeviceToHost));
    bool is_equal = true;
    for (std::size_t i = 0; i < shape.page_numbers(); ++i) {
      const auto page = [&](const CachePage& of) {
        return to_float(numbers[static_cast<std::size_t>(of.index()) * shape.page_numbers() + i]);
      };
      is_equal = is_equal && page(from) == page(to);
    }
    CHECK(is_equal);
  });
}
