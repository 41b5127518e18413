#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/decode/fair_order.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE FairOrder fair_order(std::span<const FairCandidate> candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> rank(candidates.size());  // among those of the same request or client
  const auto sort = [&] {
    std::ranges::sort(order, {},
                      [&](std::size_t i) { return std::tuple(rank[i], candidates[i].last, i); });
  };
  // Replaces ranks by those among the candidates of a key; returns the count of each.
  const auto number = [&](const auto& key_of) {
    sort();
    std::map<decltype(key_of(*candidates[0].origin)), std::size_t> counts;
    for (const std::size_t i : order) rank[i] = counts[key_of(*candidates[i].origin)]++;
    return counts;
  };
  const auto least = [](const auto& counts) {
    std::size_t count = counts.empty() ? 0 : counts.begin()->second;
    for (const auto& [key, other] : counts) count = std::min(count, other);
    return count;
  };
  const auto by_request = number([](const RequestOrigin& origin) {
    return std::pair(std::string_view(origin.client), std::string_view(origin.request));
  });
  const bool one_client = std::ranges::all_of(candidates, [&](const FairCandidate& one) {
    return one.origin->client == candidates[0].origin->client;
  });
  const std::size_t each =
      one_client ? least(by_request) : least(number([](const RequestOrigin& origin) {
        return std::string_view(origin.client);
      }));
  sort();
  const auto is_level = [&](std::size_t i) { return rank[i] < each; };
  const auto level    = static_cast<std::size_t>(std::ranges::count_if(order, is_level));
  return {std::move(order), level};
}

}  // namespace tooldecode::decode
