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
/// \par Source      Tool Decoding, order consistency
[[nodiscard]] std::vector<std::vector<std::size_t>> parameter_orders(std::size_t count,
                                                                     std::size_t max_orders,
                                                                     std::uint64_t seed = 0);

/// One order of `parameter_orders`: 0 as documented, 1 reversed, from 2 on the shuffles; modulo the
/// number of orders that there are.
///
/// \par Shapes      [count]
/// \par Complexity  as of place + 1 orders
/// \par Source      Tool Decoding, Table 2
[[nodiscard]] std::vector<std::size_t> parameter_order(std::size_t count, std::size_t place,
                                                       std::uint64_t seed = 0);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/parameter_orders.ipp>
#endif
