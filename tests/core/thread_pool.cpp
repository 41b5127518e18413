#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <tooldecode/core/thread_pool.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("ThreadPool runs each index of a job once for any number of threads and indices") {
  for (const std::size_t threads : {0U, 1U, 3U}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const std::size_t count : {0U, 1U, 2U, 7U, 1000U}) {
      std::vector<std::atomic<int>> runs(count);
      pool(count, [&](std::size_t i) { ++runs[i]; });
      CHECK(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }));
    }
  }
  CHECK(ThreadPool::usual_threads() > 0);
}

TEST_CASE("ThreadPool runs a job on the calling thread and on its own threads") {
  ThreadPool pool(1);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived{0};
  pool(2, [&](std::size_t) {  // neither index ends before the other has started
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    for (++arrived; arrived < 2;) std::this_thread::yield();
  });
  CHECK(seen.size() == 2);
  CHECK(seen.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("ThreadPool rethrows the exception of a task to the caller and runs later jobs") {
  for (const std::size_t threads : {0U, 2U}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> begun{0};
      const auto task = [&](std::size_t i) {
        ++begun;
        if (i == 3) throw std::runtime_error("three");
      };
      REQUIRE_THROWS_WITH(pool(1'000'000, task), "three");
      CHECK(begun < 1'000'000);
    }
    std::atomic<int> runs{0};
    pool(10, [&](std::size_t) { ++runs; });
    CHECK(runs == 10);
  }
}

TEST_CASE("ThreadPool runs nested jobs and jobs from several threads at once") {
  ThreadPool pool(2);
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool(4, [&](std::size_t) { pool(5, [&](std::size_t) { ++runs; }); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(runs == 4 * 50 * 4 * 5);
}

TEST_CASE(
    "ThreadPool finishes a job while its threads are busy and runs submitted tasks in order") {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    std::atomic<bool> may_end = false;
    pool.submit([&] {
      while (!may_end) std::this_thread::yield();
    });
    for (int i = 0; i < 5; ++i) pool.submit([&order, i] { order.push_back(i); });
    std::atomic<int> runs{0};
    pool(8, [&](std::size_t) { ++runs; });
    CHECK(runs == 8);
    may_end = true;
  }  // the destructor runs tasks that have not started
  CHECK(order == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("ThreadPool without threads runs a submitted task on the calling thread") {
  ThreadPool pool(0);
  std::thread::id ran{};
  pool.submit([&] { ran = std::this_thread::get_id(); });
  CHECK(ran == std::this_thread::get_id());
}
