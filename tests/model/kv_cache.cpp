#include <cstddef>
#include <random>
#include <vector>

#include <tooldecode/model/kv_cache.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

constexpr std::size_t layers = 2;
constexpr std::size_t width  = 3;

/// The float that stands for a number in a plane and column.
float mark(float number, std::size_t plane, std::size_t column) {
  return number * 100 + static_cast<float>(plane * 10 + column);
}

void write(td::model::KvCache& cache, std::size_t slot, float number) {
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t column = 0; column < width; ++column) {
      cache.key(layer, slot)[column]   = mark(number, 2 * layer, column);
      cache.value(layer, slot)[column] = mark(number, 2 * layer + 1, column);
    }
  }
}

bool holds(const td::model::KvCache& cache, const std::vector<float>& numbers) {
  if (cache.length() != numbers.size()) return false;
  for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
    for (std::size_t layer = 0; layer < layers; ++layer) {
      for (std::size_t column = 0; column < width; ++column) {
        if (cache.keys(layer, slot, 1).data[column] != mark(numbers[slot], 2 * layer, column) ||
            cache.values(layer, slot, 1).data[column] !=
                mark(numbers[slot], 2 * layer + 1, column)) {
          return false;
        }
      }
    }
  }
  return true;
}

struct Pair {
  td::model::KvCache cache{layers, width};
  std::vector<float> numbers;
};

}  // namespace

TEST_CASE("KvCache forks behave like separate copies under random operations") {
  std::mt19937 random{3};
  float next = 0;
  std::vector<Pair> family(1);
  for (int step = 0; step < 3000; ++step) {
    INFO("seed 3, step " << step);
    const std::size_t chosen = random() % family.size();
    Pair& pair               = family[chosen];
    switch (random() % 6) {
      case 0:
      case 1: {  // append
        const std::size_t count = random() % 40;
        pair.cache.open(count);
        for (std::size_t i = 0; i < count; ++i) {
          write(pair.cache, pair.cache.length() + i, next);
          pair.numbers.push_back(next++);
        }
        pair.cache.close(count);
        break;
      }
      case 2: {  // add nodes; commit a path or let the next step drop them
        const std::size_t count = 1 + random() % 64;
        std::vector<float> nodes;
        pair.cache.open(count);
        for (std::size_t i = 0; i < count; ++i) {
          write(pair.cache, pair.cache.length() + i, next);
          nodes.push_back(next++);
        }
        pair.cache.close_nodes(count);
        CHECK(pair.cache.nodes() == count);
        if (random() % 3 != 0) {
          std::vector<std::size_t> path;
          for (std::size_t i = 0; i < count; ++i) {
            if (random() % 4 == 0) path.push_back(i);
          }
          pair.cache.commit(path);
          for (const std::size_t i : path) pair.numbers.push_back(nodes[i]);
          CHECK(pair.cache.nodes() == 0);
        }
        break;
      }
      case 3:
      case 4: {  // truncate
        const std::size_t length = pair.numbers.size() - random() % (1 + pair.numbers.size() / 2);
        pair.cache.truncate(length);
        pair.numbers.resize(length);
        break;
      }
      default: {  // fork, and replace a member if the family is full
        Pair child{pair.cache.fork(), pair.numbers};
        if (family.size() < 8) {
          family.push_back(std::move(child));
        } else {
          family[random() % family.size()] = std::move(child);
        }
      }
    }
    if (step % 10 == 0) {
      for (const Pair& member : family) CHECK(holds(member.cache, member.numbers));
    } else {
      CHECK(holds(family[chosen].cache, family[chosen].numbers));
    }
  }
  for (const Pair& member : family) CHECK(holds(member.cache, member.numbers));
}

TEST_CASE("KvCache::fork shares full blocks and copies the last one") {
  constexpr std::size_t block = td::model::KvCache::block_size;
  td::model::KvCache cache(layers, width);
  const std::size_t length = 2 * block + 5;
  cache.open(length);
  for (std::size_t i = 0; i < length; ++i) write(cache, i, static_cast<float>(i));
  cache.close(length);
  const td::model::KvCache fork = cache.fork();
  for (std::size_t slot = 0; slot < length; ++slot) {
    const bool shared = cache.keys(0, slot, 1).data == fork.keys(0, slot, 1).data;
    CHECK(shared == (slot < 2 * block));
  }
  // truncate copies a shared block, and the fork keeps the original.
  cache.truncate(block + 1);
  CHECK(cache.keys(0, block, 1).data != fork.keys(0, block, 1).data);
  CHECK(cache.keys(0, 0, 1).data == fork.keys(0, 0, 1).data);
}
