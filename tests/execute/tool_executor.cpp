#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace std::chrono_literals;
using Json = tooldecode::JsonValue;

namespace {

ToolCall call(int number, const std::string& tool = "f") {
  return {tool, Json{{"a", number}}};
}

// Blocks the calls of a tool until the test opens it, and counts those inside.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_ > 0; });
    --open_;
    --inside_;
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == count; });
  }
  void open(int count = 1) {
    const std::lock_guard lock(mutex_);
    open_ += count;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0, open_ = 0;
};

void block_until(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

ToolStatus status_of(Execution execution) {
  return execution.get().status;
}

}  // namespace

TEST_CASE("ToolExecutor gives the runtime's result, exceptions included") {
  ToolExecutor executor(
      [](const ToolCall& c, std::stop_token) -> ToolResult {
        const int a = c.arguments.at("a").get<int>();
        if (a == 1) throw std::runtime_error("no luck");
        if (a == 2) throw 2;
        if (a == 3) return {ToolStatus::failed, "three"};
        return {ToolStatus::ok, std::to_string(a)};
      },
      ToolSet());
  CHECK(executor.start(call(0)).get() == ToolResult{ToolStatus::ok, "0"});
  CHECK(executor.start(call(1)).get() == ToolResult{ToolStatus::failed, "no luck"});
  CHECK(status_of(executor.start(call(2))) == ToolStatus::failed);
  CHECK(executor.start(call(3)).get() == ToolResult{ToolStatus::failed, "three"});
  // What cannot be written has no key.
  CHECK(status_of(executor.start({"f", Json{{"a", "\xff"}}})) == ToolStatus::failed);
  auto execution = executor.start(call(7));
  CHECK(execution.result().get().output == "7");
  CHECK(execution.is_done());
  execution.release();
  CHECK(execution.get().output == "7");
  CHECK(execution.key() == executor.key(call(7)));
}

TEST_CASE("ToolExecutor refuses options outside their range") {
  const auto runtime = [](const ToolCall&, std::stop_token) { return ToolResult{}; };
  CHECK_THROWS_WITH(ToolExecutor(runtime, ToolSet(), {.threads = 0}),
                    "threads 0: must be 1 or more");
  CHECK_THROWS_WITH(ToolExecutor(runtime, ToolSet(), {.timeout = 0ms}),
                    "timeout 0: must be 1 or more, in milliseconds");
  CHECK_THROWS_AS(ToolExecutor(runtime, ToolSet(), {.tool_timeouts = {{"f", -1ms}}}), Error);
  ToolExecutor patient(runtime, ToolSet(), {.timeout = std::chrono::milliseconds::max()});
  CHECK(status_of(patient.start(call(1))) == ToolStatus::ok);
}

TEST_CASE("ToolExecutor runs equal calls once, however they are written") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}}}])");
  Gate gate;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        gate.pass();
        return std::to_string(++runs);
      },
      tools);
  auto first = executor.start({"f", tooldecode::text::parse_json(R"({"a": 1, "b": 2})")});
  gate.wait_for(1);
  auto second = executor.start({"f", tooldecode::text::parse_json(R"({"b": 2.0, "a": 1})")});
  auto third  = executor.start({"f", tooldecode::text::parse_json(R"({"a": 1})")});
  auto other  = executor.start({"f", tooldecode::text::parse_json(R"({"a": 1, "b": 3})")});
  gate.wait_for(2);
  gate.open(2);
  CHECK(first.get() == second.get());
  CHECK(first.get() == third.get());
  CHECK(first.key() == third.key());
  CHECK(other.get().output != first.get().output);
  CHECK(runs == 2);
  // A finished call is not joined.
  gate.open();
  CHECK(executor.start({"f", tooldecode::text::parse_json(R"({"a": 1})")}).get().output == "3");
}

TEST_CASE("ToolExecutor::start_unshared runs each call separately, one after another") {
  std::atomic<int> inside = 0, max = 0, runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        max = std::max<int>(max, ++inside);
        std::this_thread::yield();
        --inside;
        return std::to_string(++runs);
      },
      ToolSet());
  std::vector<Execution> executions;
  for (int i = 0; i < 20; ++i) executions.push_back(executor.start_unshared(call(1)));
  for (int i = 0; i < 20; ++i) {
    CHECK(executions[static_cast<std::size_t>(i)].get().output == std::to_string(i + 1));
  }
  CHECK(max == 1);
}

TEST_CASE("ToolExecutor::start_concurrent runs equal calls at the same time") {
  std::latch all_inside(3);
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        all_inside.arrive_and_wait();  // does not return if one waits for another
        return std::to_string(++runs);
      },
      ToolSet(), {.threads = 3});
  std::vector<Execution> executions;
  executions.push_back(executor.start(call(1)));
  for (int i = 0; i < 2; ++i) executions.push_back(executor.start_concurrent(call(1)));
  std::set<std::string> outputs;
  for (Execution& execution : executions) outputs.insert(execution.get().output);
  CHECK(outputs == std::set<std::string>{"1", "2", "3"});
}

TEST_CASE("Execution::release by the last holder cancels the call") {
  std::promise<void> begun;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token stop) {
        ++runs;
        begun.set_value();
        block_until(stop);
        return ToolResult{};
      },
      ToolSet(), {.threads = 1});
  auto first  = executor.start(call(1));
  auto second = executor.start(call(1));
  begun.get_future().get();
  auto queued = executor.start(call(2));
  auto result = queued.result();
  queued      = executor.start(call(3));  // releases the one that waits
  CHECK(result.get().status == ToolStatus::cancelled);
  queued.release();
  first.release();
  CHECK_FALSE(second.is_done());
  result = second.result();
  second.release();
  CHECK(result.get().status == ToolStatus::cancelled);
  CHECK(runs == 1);
}

TEST_CASE("Execution::get ends where a stop is requested and releases the call") {
  std::promise<void> begun, stopped;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token stop) {
        begun.set_value();
        block_until(stop);
        stopped.set_value();
        return ToolResult{};
      },
      ToolSet());
  std::stop_source source;
  auto execution = executor.start(call(1));
  auto other     = executor.start(call(1));
  begun.get_future().get();  // a call that is released before it begins never runs
  std::jthread stopper([&] { source.request_stop(); });
  CHECK(execution.get(source.get_token()).status == ToolStatus::cancelled);
  CHECK(execution.get().status == ToolStatus::cancelled);
  CHECK_FALSE(other.is_done());
  other.release();
  stopped.get_future().get();
}

TEST_CASE("ToolExecutor times out a call that takes too long, whether its runtime ends or not") {
  Gate gate;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token stop) {
        if (c.name == "stubborn") {
          ++runs;
          gate.pass();
        } else if (c.name == "slow") {
          block_until(stop);
        }
        return ToolResult{};
      },
      ToolSet(),
      {.threads = 2, .timeout = 1h, .tool_timeouts = {{"slow", 1ms}, {"stubborn", 1ms}}});
  const ToolResult late{ToolStatus::timed_out, "no result within 1 ms"};
  CHECK(executor.start(call(1, "slow")).get() == late);
  // On a machine under load, its time may be over before it begins.
  while (runs == 0) CHECK(executor.start(call(1, "stubborn")).get() == late);
  gate.wait_for(1);
  // It is still inside: an equal call has to wait, and another one does not.
  CHECK(executor.start(call(1, "stubborn")).get() == late);
  CHECK(runs == 1);
  CHECK(status_of(executor.start(call(2))) == ToolStatus::ok);
  // Its thread comes back.
  gate.open(1000);
  while (runs == 1) static_cast<void>(executor.start(call(1, "stubborn")).get());
}

TEST_CASE("Execution::time is that between the call's begin and its result") {
  Gate gate;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        gate.pass();
        return ToolResult{};
      },
      ToolSet(), {.threads = 1});
  const auto before = std::chrono::steady_clock::now();
  auto execution    = executor.start(call(1));
  auto queued       = executor.start(call(2));
  gate.wait_for(1);
  const auto begun = std::chrono::steady_clock::now();
  CHECK(execution.time() == 0ns);
  const auto open = std::chrono::steady_clock::now();
  gate.open();
  static_cast<void>(execution.get());
  CHECK(execution.time() >= open - begun);
  CHECK(execution.time() <= std::chrono::steady_clock::now() - before);
  gate.wait_for(1);
  queued.release();
  CHECK(queued.is_done());
  gate.open();
}

TEST_CASE("Execution::on_result reports the result to each listener, whenever it is there") {
  Gate gate;
  std::mutex mutex;
  std::vector<std::string> told;
  const auto listener = [&](const std::string& who) {
    return [&, who](const ToolResult& result) {
      const std::lock_guard lock(mutex);
      told.push_back(who + " " + std::string(name(result.status)) + " " + result.output);
    };
  };
  {
    ToolExecutor executor(
        [&](const ToolCall& c, std::stop_token) {
          gate.pass();
          return c.name;
        },
        {}, {.threads = 2, .tool_timeouts = {{"slow", 1ms}}});
    {
      Execution first = executor.start(call(1)), second = executor.start(call(1));
      CHECK_FALSE(first.begin());
      first.on_result(listener("a"));
      second.on_result(listener("b"));
      gate.wait_for(1);
      gate.open();
      CHECK(first.get().output == "f");
      REQUIRE(first.begin());
      CHECK(*first.begin() <= std::chrono::steady_clock::now());
      gate.wait_for(0);
      second.on_result(listener("c"));
    }
    {
      Execution slow = executor.start(call(2, "slow"));
      slow.on_result(listener("d"));
      CHECK(slow.get().status == ToolStatus::timed_out);
    }
    {
      Execution dropped = executor.start(call(3));
      dropped.on_result(listener("e"));
    }
    gate.open(2);
  }
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<std::string>{"a ok f", "b ok f", "c ok f",
                                         "d timed_out no result within 1 ms",
                                         "e cancelled the call was cancelled"});
}

TEST_CASE("ToolExecutor with a full queue fails a call without running it") {
  Gate gate;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        gate.pass();
        ++runs;
        return ToolResult{};
      },
      ToolSet(), {.threads = 2, .queue_limit = 3});
  std::vector<Execution> executions;
  for (int i = 0; i < 8; ++i) executions.push_back(executor.start(call(i)));
  for (std::size_t i = 5; i < 8; ++i) {
    CHECK(executions[i].get().status == ToolStatus::failed);
    CHECK_THAT(executions[i].get().output, test::contains("too many"));
  }
  CHECK_FALSE(executions[4].is_done());
  CHECK(executor.start(call(4)).key() == executions[4].key());  // joining takes no room
  gate.open(5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(executions[i].get().status == ToolStatus::ok);
  CHECK(runs == 5);
}

TEST_CASE("ToolExecutor::try_start takes no thread from calls that are needed") {
  Gate gate;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        gate.pass();
        return ToolResult{};
      },
      ToolSet(), {.threads = 2});
  auto speculative = executor.try_start(call(1));
  REQUIRE(speculative);
  CHECK_FALSE(executor.try_start(call(2)));
  auto wanted = executor.start(call(2));
  gate.wait_for(2);
  CHECK_FALSE(executor.try_start(call(3)));
  auto joined = executor.try_start(call(2));
  REQUIRE(joined);
  // A call that was cancelled but has not returned cannot start again.
  auto cancelled = speculative->result();
  speculative.reset();
  CHECK(cancelled.get().status == ToolStatus::cancelled);
  CHECK_FALSE(executor.try_start(call(1)));
  auto again = executor.start(call(1));
  CHECK_FALSE(again.is_done());
  gate.open(3);
  CHECK(again.get().status == ToolStatus::ok);
  CHECK(wanted.get() == joined->get());

  ToolExecutor alone([](const ToolCall&, std::stop_token) { return "x"; }, ToolSet(),
                     {.threads = 1});
  CHECK_FALSE(alone.try_start(call(1)));
}

TEST_CASE("ToolExecutor's destructor cancels running and waiting calls") {
  std::optional<Execution> running, waiting;
  {
    std::promise<void> begun;
    ToolExecutor executor(
        [&](const ToolCall&, std::stop_token stop) {
          begun.set_value();
          block_until(stop);
          return ToolResult{};
        },
        ToolSet(), {.threads = 1});
    running = executor.start(call(1));
    begun.get_future().get();
    waiting = executor.start(call(2));
  }
  CHECK(running->get().status == ToolStatus::cancelled);
  CHECK(waiting->get().status == ToolStatus::cancelled);
  waiting.reset();
}

TEST_CASE("ToolExecutor with a callback runtime holds a place but no thread") {
  std::mutex mutex;
  std::map<int, ToolDone> open;
  std::condition_variable changed;
  const auto take = [&](int a) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open.contains(a); });
    return std::move(open.extract(a).mapped());
  };
  std::optional<ToolExecutor> executor;
  executor.emplace(
      [&](const ToolCall& c, std::stop_token, ToolDone done) {
        const int a = c.arguments.at("a").get<int>();
        if (a == 9) {
          done({ToolStatus::ok, "before"});
          throw std::runtime_error("after");
        }
        const std::lock_guard lock(mutex);
        open[a] = std::move(done);
        changed.notify_all();
      },
      ToolSet(), ExecutorOptions{.threads = 2, .timeout = 1h});
  auto one = executor->start(call(1)), two = executor->start(call(2)),
       three        = executor->start(call(3));
  ToolDone done_one = take(1), done_two = take(2);
  {
    const std::lock_guard lock(mutex);
    CHECK(open.empty());  // both places are taken
  }
  std::jthread([&] {
    done_two({ToolStatus::ok, "two"});
    done_two({ToolStatus::failed, "again"});
  }).join();
  CHECK(two.get() == ToolResult{ToolStatus::ok, "two"});
  take(3) = nullptr;  // this result can no longer be given
  CHECK(three.get().status == ToolStatus::failed);
  CHECK(executor->start(call(9)).get() == ToolResult{ToolStatus::ok, "before"});

  executor.reset();
  CHECK(one.get().status == ToolStatus::cancelled);
  done_one({ToolStatus::ok, "late"});
  CHECK(one.get().status == ToolStatus::cancelled);
}

TEST_CASE("ToolExecutor under many threads never runs equal calls at once and mixes no results") {
  constexpr int keys            = 6;
  constexpr std::size_t pool    = 3;
  std::atomic<int> inside[keys] = {};
  std::atomic<int> total = 0, met = 0, crowded = 0, wrong = 0, ok = 0, cancelled = 0;
  {
    ToolExecutor executor(
        [&](const ToolCall& c, std::stop_token stop) -> ToolResult {
          const int a = c.arguments.at("a").get<int>();
          if (++inside[a] > 1) ++met;
          if (++total > static_cast<int>(pool)) ++crowded;
          for (int i = 0; i < 20 * a && !stop.stop_requested(); ++i) std::this_thread::yield();
          --total;
          --inside[a];
          if (a == 5) throw std::runtime_error("5");
          return {ToolStatus::ok, std::to_string(a)};
        },
        ToolSet(), {.threads = pool, .queue_limit = 1000});
    std::vector<std::jthread> clients;
    for (unsigned seed = 0; seed < 4; ++seed) {
      clients.emplace_back([&, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 200; ++i) {
          const int a = static_cast<int>(random() % keys);
          std::optional<Execution> execution;
          switch (random() % 3) {
            case 0:
              execution = executor.start(call(a));
              break;
            case 1:
              execution = executor.start_unshared(call(a));
              break;
            default:
              execution = executor.try_start(call(a));
          }
          if (!execution) continue;
          if (random() % 3 == 0) {
            auto result = execution->result();
            execution.reset();
            if (random() % 2 == 0) continue;
            const ToolResult seen = result.get();
            ++(seen.status == ToolStatus::cancelled ? cancelled : ok);
            if (seen.status == ToolStatus::timed_out) ++wrong;
          } else {
            const ToolResult seen = execution->get();
            const ToolResult expected{a == 5 ? ToolStatus::failed : ToolStatus::ok,
                                      std::to_string(a)};
            ++ok;
            if (!(seen == expected)) ++wrong;
          }
        }
      });
    }
  }
  CHECK(met == 0);
  CHECK(crowded == 0);
  CHECK(wrong == 0);
  CHECK(ok > 200);
  CHECK(cancelled > 0);
}
