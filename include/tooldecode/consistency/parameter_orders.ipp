/// \file
/// Definitions of parameter_orders.hpp.
#pragma once

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <tooldecode/consistency/parameter_orders.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::vector<std::vector<std::size_t>> parameter_orders(std::size_t count,
                                                                         std::size_t max_orders,
                                                                         std::uint64_t seed) {
  std::size_t possible = 1;
  for (std::size_t i = 2; i <= count && possible < max_orders; ++i) possible *= i;
  const std::size_t wanted = std::max<std::size_t>(1, std::min(max_orders, possible));

  std::vector<std::size_t> documented(count);
  std::iota(documented.begin(), documented.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> orders{documented};
  std::set<std::vector<std::size_t>> known{documented};
  std::vector<std::size_t> next(documented.rbegin(), documented.rend());
  for (std::uint64_t draw = 0; orders.size() < wanted; ++draw) {
    if (known.insert(next).second) orders.push_back(next);
    next = documented;
    for (std::size_t i = count; i > 1; --i) {
      const double unit = core::uniform(seed, draw, static_cast<std::int32_t>(i));
      std::swap(next[i - 1], next[static_cast<std::size_t>(unit * static_cast<double>(i))]);
    }
  }
  return orders;
}

TOOLDECODE_INLINE std::vector<std::size_t> parameter_order(std::size_t count, std::size_t place,
                                                           std::uint64_t seed) {
  auto orders = parameter_orders(count, place + 1, seed);
  return std::move(orders[place % orders.size()]);
}

}  // namespace tooldecode
