#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/decode/fair_order.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

struct Asked {
  td::RequestOrigin origin;
  std::uint64_t last = 0;
};

td::decode::FairOrder order_of(const std::vector<Asked>& all) {
  std::vector<td::decode::FairCandidate> candidates;
  for (const Asked& one : all) candidates.push_back({&one.origin, one.last});
  return td::decode::fair_order(candidates);
}

std::map<std::string, std::size_t> count(const std::vector<Asked>& all, bool by_request) {
  std::map<std::string, std::size_t> counts;
  for (const Asked& one : all) {
    ++counts[one.origin.client + (by_request ? '/' + one.origin.request : "")];
  }
  return counts;
}

}  // namespace

TEST_CASE("fair_order: the level is all of one request, and of requests that are equally large") {
  CHECK(order_of({}).level == 0);
  CHECK(order_of({{{"a", "1"}}}).level == 1);
  CHECK(order_of({{{"a", "1"}}, {{"a", "1"}}, {{"a", "1"}}}).level == 3);
  CHECK(order_of({{{"a", "1"}}, {{"a", "2"}}, {{"a", "3"}}}).level == 3);
}

TEST_CASE("fair_order: clients take turns first, then requests, then sequences") {
  const std::vector<Asked> all{{{"a", "1"}, 5}, {{"a", "1"}, 4}, {{"a", "1"}, 3},
                               {{"a", "2"}, 9}, {{"b", "1"}, 8}, {{"b", "1"}, 2}};
  const auto fair = order_of(all);
  // Of a, in turn: sequences 2, 3, 1, 0. Of b: 5, 4.
  CHECK(fair.order == std::vector<std::size_t>{5, 2, 4, 3, 1, 0});
  CHECK(fair.level == 4);
}

TEST_CASE("fair_order: each client gets its level, and every sequence its turn") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    std::vector<Asked> all(1 + random() % 30);
    const auto clients = 1 + random() % 3, requests = 1 + random() % 4;
    for (Asked& one : all) {
      one.origin = {std::to_string(random() % clients), std::to_string(random() % requests)};
    }
    const bool one_client = count(all, false).size() == 1;
    const auto counts     = count(all, one_client);
    std::size_t least     = all.size();
    for (const auto& [name, number] : counts) least = std::min(least, number);
    std::set<std::size_t> read;
    for (std::uint64_t pass = 1; pass <= 4 * all.size(); ++pass) {
      const auto fair = order_of(all);
      REQUIRE(std::set(fair.order.begin(), fair.order.end()).size() == all.size());
      REQUIRE(fair.level == least * counts.size());
      std::vector<Asked> first;
      for (std::size_t i = 0; i < fair.level; ++i) first.push_back(all[fair.order[i]]);
      for (const auto& [name, number] : count(first, one_client)) REQUIRE(number == least);
      for (std::size_t i = 0; i < fair.level; ++i) {
        all[fair.order[i]].last = pass;
        read.insert(fair.order[i]);
      }
    }
    REQUIRE(read.size() == all.size());
  }
}
