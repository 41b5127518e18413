#include <cstdint>
#include <random>

#include <tooldecode/grammar/keys_together.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using Table = KeysTogether<int>;

TEST_CASE("KeysTogether operations equal those of a list of allowed sets of keys") {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    Table table;
    const std::size_t count = 1 + random() % Table::max_keys;
    for (std::size_t i = 0; i < count; ++i) table.keys.push_back(static_cast<int>(10 * i));
    table.allowed = (std::uint64_t{random()} << 32 | random()) & table.sets();
    if (round % 3 == 0) table.allowed &= table.allowed >> 7;
    for (std::uint32_t set = 0; set < 1U << count; ++set) {
      bool leads = false;
      for (std::uint32_t more = 0; more < 1U << count; ++more) {
        leads |= (more & set) == set && table.allows(more);
      }
      REQUIRE(table.leads_on(set) == leads);
      REQUIRE(table.opposite().allows(set) != table.allows(set));
      for (std::size_t i = 0; i < count; ++i) {
        Table with = table, without = table;
        with.require(i), without.forbid(i);
        const bool has = (set >> i & 1) != 0;
        REQUIRE(with.allows(set) == (has && table.allows(set)));
        REQUIRE(without.allows(set) == (!has && table.allows(set)));
      }
    }
  }
}

TEST_CASE("KeysTogether::joined allows what both tables allow") {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const auto draw = [&] {
      Table table;
      for (int key = 0; key < 6; ++key) {
        if (random() % 2 == 0) table.keys.push_back(key);
      }
      table.allowed = (std::uint64_t{random()} << 32 | random()) & table.sets();
      return table;
    };
    const Table a = draw(), b = draw(), both = Table::joined(a, b);
    for (std::uint32_t set = 0; set < 64; ++set) {
      const auto part = [&](const Table& table) {
        std::uint32_t result = 0;
        for (std::size_t i = 0; i < table.keys.size(); ++i) {
          result |= (set >> table.keys[i] & 1) << i;
        }
        return result;
      };
      REQUIRE(both.allows(part(both)) == (a.allows(part(a)) && b.allows(part(b))));
    }
  }
}
