#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/ebnf/strong_components.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

TEST_CASE("find_strong_components numbers components so that edges lead to lower numbers") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::size_t nodes = 1 + random() % 9;
    std::vector<std::vector<std::uint32_t>> edges(nodes);
    std::vector<std::vector<char>> reaches(nodes, std::vector<char>(nodes, 0));
    for (std::uint32_t a = 0; a < nodes; ++a) {
      reaches[a][a] = 1;
      for (auto count = random() % 3; count > 0; --count) {
        edges[a].push_back(static_cast<std::uint32_t>(random() % nodes));
        reaches[a][edges[a].back()] = 1;
      }
    }
    for (std::size_t via = 0; via < nodes; ++via) {
      for (std::size_t a = 0; a < nodes; ++a) {
        for (std::size_t b = 0; b < nodes; ++b) {
          if (reaches[a][via] && reaches[via][b]) reaches[a][b] = 1;
        }
      }
    }
    const auto component =
        find_strong_components(nodes, [&](std::uint32_t node) { return edges[node]; });
    for (std::size_t a = 0; a < nodes; ++a) {
      for (std::size_t b = 0; b < nodes; ++b) {
        CHECK((component[a] == component[b]) == (reaches[a][b] && reaches[b][a]));
        if (reaches[a][b]) CHECK(component[a] >= component[b]);
      }
    }
  }
}

TEST_CASE("find_strong_components of a chain of 200000 nodes does not overflow the stack") {
  const std::size_t nodes = 200'000;
  const auto component    = find_strong_components(nodes, [&](std::uint32_t node) {
    return node + 1 < nodes ? std::vector<std::uint32_t>{node + 1} : std::vector<std::uint32_t>{};
  });
  CHECK(component.front() == nodes - 1);
  CHECK(component.back() == 0);
}
