#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <latch>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/execute/tool_cache.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace std::chrono_literals;

namespace {

std::shared_future<ToolResult> done(std::string output) {
  std::promise<ToolResult> promise;
  promise.set_value({ToolStatus::ok, std::move(output)});
  return promise.get_future().share();
}

CachedCall cached(const std::string& tool, const std::string& key,
                  std::shared_future<ToolResult> result) {
  return {ToolCall{tool}, key, std::move(result)};
}

std::vector<std::string> outputs(const std::vector<CachedCall>& calls) {
  std::vector<std::string> result;
  for (const CachedCall& call : calls) result.push_back(call.result.get().output);
  return result;
}

// The cache as a list that is searched from end to end. Entries stand in the order of insertion.
struct NaiveCache {
  struct Entry {
    std::string response, tool, key;
    std::size_t id;
    ToolCache::Clock::time_point deadline;
    std::size_t used;
    std::optional<std::size_t> output;  // nothing: pending
  };
  std::size_t max_bytes = 0;
  std::vector<Entry> entries{};
  ToolCacheStatistics seen{};
  std::size_t ticks = 0;

  static std::size_t bytes(const Entry& entry) {
    return ToolCache::entry_bytes + entry.response.size() + 2 * entry.key.size() +
           entry.output.value_or(0);
  }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const Entry& entry : entries) sum += bytes(entry);
    return sum;
  }
  void shrink() {
    seen.evicted += std::erase_if(entries, [&](const Entry& e) { return bytes(e) > max_bytes; });
    while (total() > max_bytes) {
      entries.erase(std::min_element(entries.begin(), entries.end(),
                                     [](auto& a, auto& b) { return a.used < b.used; }));
      ++seen.evicted;
    }
  }
  void expire(ToolCache::Clock::time_point now) {
    seen.expired += std::erase_if(entries, [&](const Entry& e) { return e.deadline <= now; });
  }
};

}  // namespace

TEST_CASE("ToolCache finds an entry by its key and by its tool, under its response only") {
  ToolCache cache;
  CHECK(cache.insert("r1", cached("f", "f1", done("one"))) == 1);
  CHECK(cache.insert("r1", cached("g", "g1", done("other"))) == 1);
  CHECK(cache.insert("r1", cached("f", "f2", done("two"))) == 1);
  REQUIRE(cache.find("r1", "f1"));
  CHECK(cache.find("r1", "f1")->result.get().output == "one");
  CHECK_FALSE(cache.find("r2", "f1"));
  CHECK_FALSE(cache.find("r1", "f3"));
  CHECK(outputs(cache.find_tool("r1", "f")) == std::vector<std::string>{"two", "one"});
  CHECK(outputs(cache.find_tool("r1", "f", 1)) == std::vector<std::string>{"two"});
  CHECK(cache.find_tool("r1", "f", 0).empty());
  CHECK(cache.find_tool("r2", "f").empty());
  CHECK(cache.find_tool("r1", "h").empty());

  CHECK(cache.insert("r1", cached("f", "f1", done("again"))) == 1);
  CHECK(cache.find("r1", "f1")->result.get().output == "again");
  CHECK(outputs(cache.find_tool("r1", "f")) == std::vector<std::string>{"again", "two"});

  const ToolCacheStatistics statistics = cache.statistics();
  CHECK(statistics.hits == 3);
  CHECK(statistics.misses == 2);
  CHECK(statistics.inserted == 4);
  CHECK(statistics.entries == 3);
  CHECK(cache.erase("r1") == 3);
  CHECK(cache.erase("r1") == 0);
  CHECK(cache.statistics().bytes == 0);
}

TEST_CASE("ToolCache answers calls without their own entry from one for any arguments") {
  ToolCache cache;
  CachedCall any    = cached("f", "", done("any"));
  any.any_arguments = true;
  CHECK(cache.insert("r", any) == 1);
  CHECK(cache.insert("r", cached("f", "f\n{\"a\":1}", done("one"))) == 1);
  CHECK(cache.find("r", "f\n{\"a\":1}")->result.get().output == "one");
  CHECK(cache.find("r", "f\n{\"a\":2}")->result.get().output == "any");
  CHECK(cache.find("r", "f\n{}")->any_arguments);
  CHECK(cache.peek("r", "f\n{}")->result.get().output == "any");
  for (const char* key : {"g\n{}", "ff\n{}", "f", "", "\n", "f\nf\n{}"}) {
    INFO(key);
    CHECK_FALSE(cache.peek("r", key));
  }
  CHECK_FALSE(cache.find("s", "f\n{}"));
  CHECK(cache.statistics().hits == 3);
  CHECK(cache.statistics().misses == 1);
  CHECK(outputs(cache.find_tool("r", "f")) == std::vector<std::string>{"one", "any"});

  any.result = done("another");  // a tool has one of them
  CHECK(cache.insert("r", any) == 1);
  CHECK(cache.statistics().entries == 2);
  CHECK(cache.find("r", "f\n{}")->result.get().output == "another");
  CHECK(cache.statistics().bytes == 2 * ToolCache::entry_bytes + 2 + 2 * (2 + 9) + 3 + 7);
  CHECK(cache.insert("r", any, 0s) == 0);
  CHECK_FALSE(cache.find("r", "f\n{}"));
  CHECK(cache.find("r", "f\n{\"a\":1}"));
}

TEST_CASE("ToolCache counts a pending entry's output once it is there") {
  ToolCache cache({.max_bytes = 2 * ToolCache::entry_bytes + 100});
  std::promise<ToolResult> small, large;
  cache.insert("r", cached("f", "a", small.get_future().share()));
  cache.insert("r", cached("f", "b", large.get_future().share()));
  const std::size_t bare = cache.statistics().bytes;
  CHECK(bare == 2 * (ToolCache::entry_bytes + 1 + 2 * 1));
  CHECK(cache.find("r", "a")->result.wait_for(0s) == std::future_status::timeout);

  small.set_value({ToolStatus::ok, std::string(10, 'x')});
  CHECK(cache.find("r", "a")->result.get().output.size() == 10);
  CHECK(cache.statistics().bytes == bare + 10);

  large.set_value({ToolStatus::ok, std::string(10'000, 'x')});
  CHECK_FALSE(cache.find("r", "b"));
  CHECK(cache.find("r", "a"));
  CHECK(cache.statistics().evicted == 1);
}

TEST_CASE("ToolCache removes entries when their time has passed on the given clock") {
  auto now = ToolCache::Clock::time_point{};
  ToolCache cache({.keep_alive = 10s, .now = [&] { return now; }});
  cache.insert("r", cached("f", "short", done("")), 3s);
  cache.insert("r", cached("f", "usual", done("")));
  cache.insert("r", cached("f", "always", done("")), ToolCache::Clock::duration::max());
  CHECK(cache.insert("r", cached("f", "usual", done("x")), 0s) == 0);  // replaced, and gone
  cache.insert("r", cached("f", "usual", done("")));
  now += 3s - 1ns;
  CHECK(cache.find("r", "short"));
  now += 1ns;
  CHECK_FALSE(cache.find("r", "short"));
  CHECK(cache.find("r", "usual"));
  now += 7s;
  CHECK_FALSE(cache.find("r", "usual"));
  now += std::chrono::hours(100'000);
  CHECK(cache.find_tool("r", "f").size() == 1);
  CHECK(cache.statistics().expired == 2);
}

TEST_CASE("ToolCache does not keep an entry that is too large, and refuses one without a future") {
  ToolCache cache({.max_bytes = ToolCache::entry_bytes});
  CHECK(cache.insert("r", cached("f", "a", done(""))) == 0);
  CHECK_THROWS_WITH(cache.insert("r", CachedCall{}),
                    "a cached call must have the future of its result");
  std::promise<ToolResult> broken;
  broken.set_exception(std::make_exception_ptr(std::runtime_error("x")));
  ToolCache large;
  CHECK(large.insert("r", cached("f", "a", broken.get_future().share())) == 1);
  CHECK(large.statistics().bytes == ToolCache::entry_bytes + 3);
}

TEST_CASE("ToolCache under random operations behaves as a list that is searched in full") {
  std::size_t evicted = 0, expired = 0, hits = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return random() % n; };
    NaiveCache naive{.max_bytes = ToolCache::entry_bytes * (1 + below(8))};
    auto now = ToolCache::Clock::time_point{};
    ToolCache cache({.max_bytes = naive.max_bytes, .keep_alive = 8s, .now = [&] { return now; }});
    std::vector<std::promise<ToolResult>> promises;
    std::vector<std::size_t> open;  // promises that are still to be kept
    const auto keep = [&](std::size_t id) {
      const std::size_t bytes = below(20) == 0 ? 10'000 : below(700);
      promises[id].set_value({ToolStatus::ok, std::string(bytes, 'x')});
      return bytes;
    };
    for (int step = 0; step < 400; ++step) {
      const std::string response = "r" + std::to_string(below(3));
      const std::string tool     = "t" + std::to_string(below(2));
      const bool any             = below(5) == 0;
      const std::string key      = tool + '\n' + (any ? "" : std::string(1 + below(4), 'k'));
      naive.expire(now);
      switch (below(7)) {
        case 0:
        case 1: {
          const std::size_t id = promises.size();
          promises.emplace_back();
          std::optional<std::size_t> output;
          if (below(2) == 0) {
            output = keep(id);
          } else {
            open.push_back(id);
          }
          const auto life = std::chrono::seconds(below(12));
          std::erase_if(naive.entries,
                        [&](const auto& e) { return e.response == response && e.key == key; });
          const NaiveCache::Entry entry{response, tool, key, id, now + life, ++naive.ticks, output};
          std::size_t expected   = 0;
          NaiveCache::Entry bare = entry;
          bare.output.reset();
          if (NaiveCache::bytes(bare) <= naive.max_bytes && life > 0s) {
            naive.entries.push_back(entry);
            ++naive.seen.inserted;
            expected = NaiveCache::bytes(entry) <= naive.max_bytes ? 1 : 0;
          }
          CachedCall call    = cached(tool, any ? "?" : key, promises[id].get_future().share());
          call.any_arguments = any;
          CHECK(cache.insert(response, call, life) == expected);
          break;
        }
        case 2:
        case 3: {
          const auto entry = [&](const std::string& of) {
            return std::find_if(naive.entries.begin(), naive.entries.end(), [&](const auto& e) {
              return e.response == response && e.key == of;
            });
          };
          auto found = entry(key);
          if (found == naive.entries.end()) found = entry(tool + '\n');
          const bool counts = below(3) > 0;
          const auto got    = counts ? cache.find(response, key) : cache.peek(response, key);
          CHECK(got.has_value() == (found != naive.entries.end()));
          if (counts) ++(got ? naive.seen.hits : naive.seen.misses);
          if (found != naive.entries.end()) found->used = ++naive.ticks;
          if (got) CHECK(got->key == found->key);
          if (got) CHECK(got->call.name == tool);
          break;
        }
        case 4: {
          std::vector<std::string> expected, got;
          for (auto& e : naive.entries) {
            if (e.response != response || e.tool != tool) continue;
            e.used = ++naive.ticks;
            expected.insert(expected.begin(), e.key);
          }
          for (const CachedCall& call : cache.find_tool(response, tool)) got.push_back(call.key);
          CHECK(got == expected);
          break;
        }
        case 5:
          now += std::chrono::seconds(below(3));
          naive.expire(now);
          break;
        case 6:
          if (below(8) == 0) {
            CHECK(cache.erase(response) ==
                  std::erase_if(naive.entries, [&](auto& e) { return e.response == response; }));
          } else if (!open.empty()) {
            const std::size_t id    = open[below(open.size())];
            const std::size_t bytes = keep(id);
            std::erase(open, id);
            for (auto& e : naive.entries) {
              if (e.id == id) e.output = bytes;
            }
          }
          break;
      }
      naive.shrink();
      const ToolCacheStatistics got = cache.statistics();
      REQUIRE(got.entries == naive.entries.size());
      REQUIRE(got.bytes == naive.total());
      CHECK(got.hits == naive.seen.hits);
      CHECK(got.misses == naive.seen.misses);
      CHECK(got.inserted == naive.seen.inserted);
      CHECK(got.expired == naive.seen.expired);
      CHECK(got.evicted == naive.seen.evicted);
    }
    evicted += naive.seen.evicted;
    expired += naive.seen.expired;
    hits += naive.seen.hits;
  }
  CHECK(evicted > 500);
  CHECK(expired > 500);
  CHECK(hits > 300);
}

TEST_CASE("ToolCache counts correctly from several threads") {
  constexpr std::size_t threads = 4, steps = 500;
  ToolCache cache({.max_bytes = 20 * ToolCache::entry_bytes});
  std::latch start(threads);
  std::vector<std::size_t> wrong(threads), asked(threads), inserted(threads);
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      start.arrive_and_wait();
      for (std::size_t i = 0; i < steps; ++i) {
        const std::string response = "r" + std::to_string(random() % 3);
        const std::string key      = "k" + std::to_string(random() % 9);
        if (random() % 2 == 0) {
          std::promise<ToolResult> promise;
          inserted[t] += cache.insert(response, cached("f", key, promise.get_future().share()));
          promise.set_value({ToolStatus::ok, response + key});
        } else {
          const auto found = cache.find(response, key);
          ++asked[t];
          if (found && found->result.get().output != response + key) ++wrong[t];
        }
        if (random() % 50 == 0) cache.erase(response);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  const ToolCacheStatistics statistics = cache.statistics();
  const auto sum                       = [](const std::vector<std::size_t>& counts) {
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    return total;
  };
  CHECK(sum(wrong) == 0);
  CHECK(statistics.hits + statistics.misses == sum(asked));
  CHECK(statistics.inserted == sum(inserted));
  CHECK(statistics.bytes <= 20 * ToolCache::entry_bytes);
}
