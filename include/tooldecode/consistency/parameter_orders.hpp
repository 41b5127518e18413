/// \file
/// parameter_orders: the orders in which a call's required parameters are requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/philox.hpp>

namespace tooldecode {

/// Distinct orders of `count` parameters: as documented, reversed, then seeded shuffles; at most
/// `max_orders`.
///
/// A shorter list is a prefix of a longer one.
///
/// \param count       parameters, numbered by their place in the document
/// \param max_orders  at most so many orders; at least one is returned
/// \par Shapes      [orders][count], orders = max(1, min(max_orders, count!))
/// \par Complexity  O(orders x count x log orders) expected if orders are fewer than count!; a
///                  further factor of log orders if all are requested
/// \par Source      Tool Decoding, order consistency
[[nodiscard]] std::vector<std::vector<std::size_t>> parameter_orders(std::size_t count,
                                                                     std::size_t max_orders,
                                                                     std::uint64_t seed = 0);

/// One order of `parameter_orders`: 0 as documented, 1 reversed, from 2 on the shuffles; modulo the
/// number of orders.
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
