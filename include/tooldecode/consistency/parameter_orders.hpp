/// \file
/// parameter_orders: the orders in which a call's required parameters are asked for; and one of
/// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/core/philox.hpp>

namespace tooldecode {

/// Distinct orders of `count` parameters: as documented, reversed, then seeded shuffles; as many as
/// are asked for, and never more than there are.
///
/// The first k of a longer list are the list of k.
///
/// \param count       parameters, by their places in the document
/// \param max_orders  orders at most; at least one is given
/// \par Shapes      [orders][count], orders = max(1, min(max_orders, count!))
/// \par Complexity  O(orders x count x log orders) expected, where orders are fewer than count!;
///                  a further factor of log orders where all are wanted
/// \par Threads     pure
/// \par Errors      none
/// \par Source      Tool Decoding, order consistency
[[nodiscard]] inline std::vector<std::vector<std::size_t>> parameter_orders(
    std::size_t count, std::size_t max_orders, std::uint64_t seed = 0) {
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

/// One order of `parameter_orders`: 0 as documented, 1 reversed, from 2 on the shuffles; modulo the
/// number of orders that there are.
///
/// \par Shapes      [count]
/// \par Complexity  as of place + 1 orders
/// \par Threads     pure
/// \par Errors      none
/// \par Source      Tool Decoding, Table 2
[[nodiscard]] inline std::vector<std::size_t> parameter_order(std::size_t count, std::size_t place,
                                                              std::uint64_t seed = 0) {
  auto orders = parameter_orders(count, place + 1, seed);
  return std::move(orders[place % orders.size()]);
}

}  // namespace tooldecode
