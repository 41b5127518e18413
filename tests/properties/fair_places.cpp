// Places that clients share: which one is next, and which one is refused.
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <program/fair_places.hpp>
#include <support/catch.hpp>

using program::FairPlaces;
using Ticket = std::shared_ptr<FairPlaces::Ticket>;

namespace {

void until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("FairPlaces reserves an eighth of the places for other clients") {
  FairPlaces places(16, 16);
  std::vector<Ticket> held;
  for (int i = 0; i < 14; ++i) held.push_back(places.take("a", 1, [] {}));
  std::atomic<bool> served = false;
  std::jthread waits([&] {
    static_cast<void>(places.take("a", 1, [] {}));
    served = true;
  });
  until([&] { return places.waiting() == 1; });
  CHECK(places.take("b", 1, [] {}) != nullptr);
  CHECK(places.take("c", 2, [] {}) != nullptr);
  CHECK_FALSE(served);
  held.pop_back();
  waits.join();
  CHECK(places.waiting() == 0);
}

TEST_CASE("FairPlaces refuses a client whose share is already waiting, and no other") {
  FairPlaces places(4, 4);
  const Ticket held = places.take("a", 4, [] {});
  REQUIRE(held != nullptr);
  CHECK(places.take("a", 4, [] {}) == nullptr);
  CHECK(places.take("b", 5, [] {}) == nullptr);
  FairPlaces one(1, 0);
  const Ticket only = one.take("a", 1, [] {});
  REQUIRE(only != nullptr);
  CHECK(one.take("a", 1, [] {}) == nullptr);
  CHECK(one.take("b", 1, [] {}) == nullptr);
}

TEST_CASE("FairPlaces says how many parts a request may have at most") {
  for (std::size_t waiting = 0; waiting < 40; ++waiting) {
    FairPlaces places(3, waiting);
    const std::size_t most = places.most_parts();
    CHECK(places.take("a", most + 1, [] {}) == nullptr);
    CHECK(places.take("a", most, [] {}) != nullptr);
  }
}

TEST_CASE("FairPlaces lets a request of one part wait where its client's larger ones are refused") {
  FairPlaces places(32, 96);
  std::vector<Ticket> held;
  std::atomic<bool> ended = false;
  std::vector<std::jthread> threads;
  const auto ask = [&](std::size_t parts) {
    threads.emplace_back([&, parts] {
      try {
        static_cast<void>(places.take("a", parts, [&] {
          if (ended) throw std::runtime_error("gone");
        }));
      } catch (const std::runtime_error&) {}
    });
  };
  for (int i = 0; i < 28; ++i) held.push_back(places.take("a", 1, [] {}));
  for (std::size_t i = 1; i <= 14; ++i) {
    ask(6);
    until([&] { return places.waiting() == 6 * i; });
  }
  CHECK(places.take("a", 6, [] {}) == nullptr);
  for (std::size_t i = 1; i <= 8; ++i) {
    ask(1);
    until([&] { return places.waiting() == 84 + i; });
  }
  CHECK(places.take("a", 1, [] {}) == nullptr);
  CHECK(places.take("b", 4, [] {}) != nullptr);
  ended = true;
  threads.clear();
  CHECK(places.waiting() == 0);
}

TEST_CASE("FairPlaces serves the client that holds least, and small requests before large ones") {
  FairPlaces places(4, 64);
  Ticket first = places.take("a", 4, [] {});
  std::mutex mutex;
  std::string order;
  std::vector<std::jthread> threads;
  const auto ask = [&](const std::string& client, std::size_t parts, char name) {
    const std::size_t before = places.waiting();
    threads.emplace_back([&, client, parts, name] {
      const Ticket ticket = places.take(client, parts, [] {});
      const std::lock_guard lock(mutex);
      order += name;
    });
    until([&] { return places.waiting() == before + parts; });
  };
  ask("a", 4, 'L');
  ask("a", 4, 'M');
  ask("a", 1, 's');
  first.reset();
  threads.clear();
  CHECK(order == "sLM");
}

TEST_CASE("FairPlaces frees the place of a part that ends") {
  FairPlaces places(2, 8);
  const Ticket ticket      = places.take("a", 4, [] {});  // of two places
  std::atomic<bool> served = false;
  std::jthread waits([&] {
    static_cast<void>(places.take("b", 1, [] {}));
    served = true;
  });
  until([&] { return places.waiting() == 1; });
  ticket->end_part();
  ticket->end_part();  // the other two need both
  CHECK_FALSE(served);
  ticket->end_part();
  waits.join();
  CHECK(served);
}

TEST_CASE("FairPlaces keeps nothing of a client that stops waiting") {
  FairPlaces places(1, 4);
  Ticket held = places.take("a", 1, [] {});
  CHECK_THROWS_AS(places.take("b", 1, [] { throw std::runtime_error("gone"); }),
                  std::runtime_error);
  CHECK(places.waiting() == 0);
  held.reset();
  CHECK(places.take("b", 1, [] {}) != nullptr);
}

TEST_CASE("FairPlaces under many threads never exceeds its places and serves all") {
  FairPlaces places(8, 1000);
  std::atomic<int> held = 0, most = 0, served = 0, refused = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 200; ++i) {
        const auto parts = 1 + random() % 3;
        const Ticket taken =
            places.take(std::string(1, static_cast<char>('a' + t % 3)), parts, [] {});
        refused += taken == nullptr;
        const int now = held += static_cast<int>(parts);
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
        std::this_thread::yield();
        held -= static_cast<int>(parts);
        ++served;
      }
    });
  }
  threads.clear();
  CHECK(refused == 0);
  CHECK(served == 16 * 200);
  CHECK(most <= 8);
  CHECK(places.waiting() == 0);
}
