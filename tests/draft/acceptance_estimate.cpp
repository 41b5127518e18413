#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <tooldecode/draft/acceptance_estimate.hpp>

#include <support/catch.hpp>

using tooldecode::draft::AcceptanceEstimate;

TEST_CASE("AcceptanceEstimate of what was never tried is the drafter's own probability") {
  const AcceptanceEstimate estimate;
  CHECK(estimate.of_guess(0.25) == Approx(0.25));
  CHECK(estimate.of_guess(0) == 0);
  CHECK(estimate.of_guess(1) == 1);
  CHECK(estimate.of_level(1) == Approx(0.6));
  CHECK(estimate.of_level(100) == Approx(0.6));
}

TEST_CASE(
    "AcceptanceEstimate of what is often tried is its acceptance rate, by probability or level") {
  AcceptanceEstimate estimate;
  std::mt19937 random{1};
  for (int i = 0; i < 20'000; ++i) {
    estimate.count_guess(0.2, random() % 10 < 9);
    estimate.count_guess(0.9, random() % 10 < 1);
    estimate.count_level(1, random() % 4 != 0);
    estimate.count_level(3, false);
  }
  CHECK(estimate.of_guess(0.2) == Approx(0.9).margin(0.02));
  CHECK(estimate.of_guess(0.92) == Approx(0.1).margin(0.02));
  CHECK(estimate.of_guess(0.5) == Approx(0.5));
  CHECK(estimate.of_level(1) == Approx(0.75).margin(0.02));
  CHECK(estimate.of_level(2) == Approx(0.6));
  CHECK(estimate.of_level(3) < 0.01);
}

TEST_CASE("AcceptanceEstimate counts a value out of range as the nearest one") {
  AcceptanceEstimate estimate;
  for (int i = 0; i < 1000; ++i) {
    estimate.count_guess(1.5, true);
    estimate.count_guess(-3, false);
    estimate.count_level(0, false);
    estimate.count_level(99, true);
  }
  CHECK(estimate.of_guess(1) > 0.98);
  CHECK(estimate.of_guess(0) < 0.02);
  CHECK(estimate.of_level(1) < 0.02);
  CHECK(estimate.of_level(AcceptanceEstimate::levels) > 0.98);
}

TEST_CASE("AcceptanceEstimate::probability_of finds the least probability with enough acceptance") {
  AcceptanceEstimate estimate;
  CHECK(estimate.probability_of(0) == 0);
  CHECK(estimate.probability_of(0.5) == Approx(0.5));
  CHECK(estimate.probability_of(1) == 1);  // none are
  for (int i = 0; i < 10'000; ++i) {
    for (const double boastful : {0.55, 0.6, 0.65, 0.7}) estimate.count_guess(boastful, i % 4 == 0);
    estimate.count_guess(0.4, true);  // below worse ones: not searched
  }
  CHECK(estimate.probability_of(0.5) == Approx(0.75));
  CHECK(estimate.probability_of(0.2) <= 0.25);
}

TEST_CASE("AcceptanceEstimate::seconds_of_level is the average time of a level") {
  using namespace std::chrono_literals;
  AcceptanceEstimate estimate;
  CHECK(estimate.seconds_of_level() == 0);
  estimate.count_time(2, 6ms);
  estimate.count_time(4, 3ms);
  CHECK(estimate.seconds_of_level() == Approx(1.5e-3));
}

TEST_CASE("AcceptanceEstimate::seconds_of_level follows a machine whose speed changes") {
  using namespace std::chrono_literals;
  AcceptanceEstimate estimate;
  for (int i = 0; i < 10'000; ++i) estimate.count_time(4, 4ms);
  CHECK(estimate.seconds_of_level() == Approx(1e-3));
  for (int i = 0; i < 100; ++i) estimate.count_time(4, 20ms);
  CHECK(estimate.seconds_of_level() == Approx(5e-3).epsilon(0.05));
  estimate.count_time(1000, 1s);  // more levels than are remembered
  CHECK(estimate.seconds_of_level() == Approx(1e-3));
}

TEST_CASE("AcceptanceEstimate counts correctly from several threads") {
  AcceptanceEstimate estimate;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&estimate] {
      for (int i = 0; i < 2000; ++i) {
        estimate.count_guess(0.5, i % 2 == 0);
        static_cast<void>(estimate.of_level(2));
        estimate.count_level(2, true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(estimate.of_guess(0.5) == Approx((4000.0 + 4) / 8008));
  CHECK(estimate.of_level(2) == Approx((8000.0 + 4.8) / 8008));
}
