#include <mutex>
#include <thread>

#include <tooldecode/core/wanted_mutex.hpp>

#include <support/catch.hpp>

using namespace tooldecode::core;

TEST_CASE("WantedMutex tells its holder that another thread waits, until it has the lock") {
  Waiters waiters;
  WantedMutex one(waiters), other(waiters);
  CHECK_FALSE(waiters.are_there());
  for (WantedMutex* mutex : {&one, &other}) {
    bool was_counted = true;
    mutex->lock();
    std::thread waiting([&] {
      const std::lock_guard lock(*mutex);
      was_counted = waiters.are_there();
    });
    while (!waiters.are_there()) std::this_thread::yield();
    mutex->unlock();
    waiting.join();
    CHECK_FALSE(was_counted);
    CHECK_FALSE(waiters.are_there());
  }
}

TEST_CASE("WantedMutex has waiting threads as long as one of several still waits") {
  Waiters waiters;
  WantedMutex mutex(waiters);
  int inside       = 0;
  const auto enter = [&] {
    const std::lock_guard lock(mutex);
    ++inside;
    return waiters.are_there().load();
  };
  bool first = false, second = false;
  mutex.lock();
  std::thread one([&] { first = enter(); }), other([&] { second = enter(); });
  while (!waiters.are_there()) std::this_thread::yield();
  mutex.unlock();
  one.join();
  other.join();
  CHECK(inside == 2);
  CHECK_FALSE((first && second));  // the last one had none behind it
  CHECK_FALSE(waiters.are_there());
}

TEST_CASE("WantedMutex does not count a thread with Patience") {
  Waiters waiters;
  WantedMutex mutex(waiters);
  mutex.lock();
  std::thread patient([&] {
    const WantedMutex::Patience outer;
    { const WantedMutex::Patience inner; }
    const std::lock_guard lock(mutex);
  });
  bool was_counted = false;
  for (int i = 0; i < 1'000; ++i) {
    was_counted = was_counted || waiters.are_there();
    std::this_thread::yield();
  }
  std::thread hasty([&] { const std::lock_guard lock(mutex); });
  while (!waiters.are_there()) std::this_thread::yield();
  mutex.unlock();
  patient.join();
  hasty.join();
  CHECK_FALSE(was_counted);
  CHECK_FALSE(waiters.are_there());
}
