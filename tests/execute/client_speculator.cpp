#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace std::chrono_literals;
using Json = tooldecode::JsonValue;

namespace {

// `get`, `look`, `fail` and `hang` are marked read-only; `put` and `abort` are not.
const ToolSet& documents() {
  static const ToolSet set = [] {
    Json documents = Json::array();
    for (const char* name : {"get", "look", "fail", "hang", "put", "abort"}) {
      const bool reads = std::string(name) != "put" && std::string(name) != "abort";
      documents.push_back({{"name", name}, {"inputSchema", {{"type", "object"}}}});
      if (reads) documents.back()["annotations"] = {{"readOnlyHint", true}};
    }
    return ToolSet::from_json(documents);
  }();
  return set;
}

ToolCall call(const std::string& tool, int key, int session = 0) {
  return {tool, Json{{"session", session}, {"key", key}}};
}
int key_of(const ToolCall& c) {
  return c.arguments.at("key").get<int>();
}

void block_until(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

void yield(unsigned times) {
  for (unsigned i = 0; i < times; ++i) std::this_thread::yield();
}

// A flag that one thread raises and others wait for.
class Flag {
 public:
  void raise() { is_up_ = true, is_up_.notify_all(); }
  void wait() const { is_up_.wait(false); }

 private:
  std::atomic<bool> is_up_ = false;
};

using Speculator = ClientSpeculator<int>;

ClientModel<int> says(std::vector<ToolCall> calls) {
  return [calls](const int&, std::stop_token) { return Reply{"", calls}; };
}

std::vector<std::string> outputs(const ClientTurn& turn) {
  std::vector<std::string> result;
  for (const ToolResult& r : turn.results) {
    result.push_back(r.status == ToolStatus::ok ? r.output : std::string(name(r.status)));
  }
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("ClientSpeculator runs a correctly guessed call once, before it is made") {
  Flag begun;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token) {
        begun.raise();
        ++runs;
        return std::to_string(key_of(c));
      },
      documents());
  const auto main = [&](const int& context, std::stop_token) {
    begun.wait();
    return Reply{"text", {call("get", context)}};
  };
  Speculator speculator({main, {says({call("get", 7)}), says({call("get", 7)})}}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(7);
  CHECK(turn.reply.text == "text");
  CHECK(outputs(turn) == Texts{"7"});
  CHECK(turn.counts.proposed == 1);
  CHECK(turn.counts.started == 1);
  CHECK(turn.counts.hits == 1);
  CHECK(turn.counts.misses == 0);
  CHECK(turn.counts.wasted == 0);
  CHECK(runs == 1);
}

TEST_CASE("ClientSpeculator stops a wrongly guessed call and does not wait for it") {
  Flag begun, stopped;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token stop) {
        if (key_of(c) == 2) {
          begun.raise();
          block_until(stop);
          stopped.raise();
        }
        return std::to_string(key_of(c));
      },
      documents());
  const auto main = [&](const int&, std::stop_token) {
    begun.wait();
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {says({call("get", 2)})}}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(outputs(turn) == Texts{"1"});
  CHECK(turn.counts.hits == 0);
  CHECK(turn.counts.wasted == 1);
  CHECK(turn.counts.cancelled == 1);
  stopped.wait();
}

TEST_CASE(
    "ClientSpeculator runs calls with effects when they are made, as often as they are made") {
  Flag begun;
  std::atomic<int> written = 0;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token) {
        if (c.name == "put") return "put " + std::to_string(++written);
        const std::string seen = "get " + std::to_string(written);
        begun.raise();
        return seen;
      },
      documents());
  int before      = -1;
  const auto main = [&](const int&, std::stop_token) {
    begun.wait();
    before = written;
    return Reply{"",
                 {call("get", 1), call("put", 1), call("get", 1), call("put", 1), call("put", 1),
                  call("get", 1), call("get", 1)}};
  };
  // The effects come first, so that they have been proposed when the other call begins.
  Speculator speculator({main, {says({call("put", 1), call("get", 1)})}}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(before == 0);
  CHECK(outputs(turn) == Texts{"get 0", "put 1", "get 1", "put 2", "put 3", "get 3", "get 3"});
  CHECK(turn.counts.proposed == 2);
  CHECK(turn.counts.started == 1);
  CHECK(turn.counts.hits == 1);
}

TEST_CASE("ClientSpeculator does not use a result from before an effect after it") {
  Flag begun;
  std::atomic<int> written = 0;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token) {
        if (c.name == "put") ++written;
        const std::string seen = std::to_string(written);
        begun.raise();
        return seen;
      },
      documents());
  const auto main = [&](const int&, std::stop_token) {
    begun.wait();
    return Reply{"", {call("put", 1), call("get", 1)}};
  };
  Speculator speculator({main, {says({call("get", 1)})}}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(outputs(turn) == Texts{"1", "1"});
  CHECK(turn.counts.hits == 0);
  CHECK(turn.counts.wasted == 1);
}

TEST_CASE("ClientSpeculator runs the same effect twice when two sessions call it at once") {
  Flag first_inside, second_calls;
  std::atomic<int> written = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        first_inside.raise();
        second_calls.wait();
        yield(50);  // the second call comes while this one is inside, or later
        return std::to_string(++written);
      },
      documents());
  Speculator first({says({call("put", 1)})}, executor);
  const auto main = [&](const int&, std::stop_token) {
    first_inside.wait();
    second_calls.raise();
    return Reply{"", {call("put", 1)}};
  };
  Speculator second({main}, executor);
  Texts of_first;
  std::jthread other([&] { of_first = outputs(first(0)); });
  CHECK(outputs(second(0)) == Texts{"2"});
  other.join();
  CHECK(of_first == Texts{"1"});
}

TEST_CASE(
    "ClientSpeculator starts only what gate and budget allow, and observes every proposed call") {
  Flag asked;
  Texts gate;
  std::map<std::string, Observation> seen;
  ToolExecutor executor([](const ToolCall& c, std::stop_token) { return c.name; }, documents());
  const auto main = [&](const int&, std::stop_token) {
    asked.wait();
    return Reply{"", {call("get", 2), call("put", 1)}};
  };
  const auto guess =
      says({call("put", 3), call("look", 1), call("get", 1), call("get", 2), call("fail", 1)});
  ClientOptions options{
      .policy = SpeculationPolicy(documents(), {.max_calls = 1}),
      .expects_gain =
          [&](std::string_view tool) {
            gate.emplace_back(tool);
            if (tool == "fail") asked.raise();
            return tool != "look";
          },
      .observe = [&](std::string_view tool, const Observation& o) { seen[std::string(tool)] = o; }};
  Speculator speculator({main, {guess}}, executor, options);
  const ClientTurn turn = speculator(0);
  CHECK(gate == Texts{"look", "get", "get", "fail"});
  CHECK(turn.counts.proposed == 5);
  CHECK(turn.counts.started == 1);
  CHECK(turn.counts.wasted == 1);
  CHECK(outputs(turn) == Texts{"get", "put"});

  CHECK(seen.size() == 4);
  CHECK(seen["get"].predicted_right == true);
  CHECK(seen["put"].predicted_right == false);
  CHECK(seen["look"].predicted_right == false);
  CHECK(seen["put"].speculation == turn.generation);
  CHECK(seen["get"].tool > Seconds::zero());
  CHECK_FALSE(seen["look"].tool);
  for (const auto& [tool, o] : seen) {
    CHECK(o.generation == turn.generation);
    CHECK(o.speculation <= o.generation);
  }
  SpeculationGate learns;
  for (const auto& [tool, o] : seen) learns.observe(tool, o);
  CHECK(learns.estimate("get")->has_times);
}

TEST_CASE("ClientSpeculator passes on the main model's exception and stops what has begun") {
  Flag begun, stopped;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token stop) {
        begun.raise();
        block_until(stop);
        stopped.raise();
        return ToolResult{};
      },
      documents());
  const auto main = [&](const int& context, std::stop_token) -> Reply {
    begun.wait();
    if (context == 1) return {"fine", {}};
    throw std::runtime_error("main");
  };
  Speculator speculator({main, {says({call("get", 1)})}}, executor,
                        {SpeculationPolicy(documents())});
  CHECK_THROWS_WITH(speculator(0), "main");
  stopped.wait();
  CHECK(speculator(1).reply.text == "fine");
}

TEST_CASE("ClientSpeculator counts speculators that throw and keeps the first error's text") {
  ToolExecutor executor([](const ToolCall&, std::stop_token) { return ""; }, documents());
  const auto main = [&](const int&, std::stop_token) {
    yield(10);
    return Reply{"", {call("get", 1)}};
  };
  // A turn in which no speculator was late.
  const auto in_time = [](Speculator& speculator) {
    for (;;) {
      ClientTurn turn = speculator(0);
      if (turn.counts.late == 0) return turn;
      REQUIRE(turn.counts.errors + turn.counts.late <= 3);
    }
  };
  SECTION("throwing a standard exception or anything else") {
    for (const bool has_text : {true, false}) {
      ClientModel<int> throws = [&](const int&, std::stop_token) -> Reply {
        if (has_text) throw std::runtime_error("the body has no model");
        throw 1;
      };
      Speculator speculator({main, {throws, says({}), says({})}}, executor,
                            {SpeculationPolicy(documents())});
      const ClientTurn turn = in_time(speculator);
      CHECK(turn.counts.errors == 1);
      CHECK(turn.counts.late == 0);
      CHECK(turn.counts.misses == 1);
      CHECK(turn.counts.first_error ==
            (has_text ? "the body has no model" : "it threw what is no std::exception"));
      CHECK(turn.results.size() == 1);
    }
  }
  SECTION("proposing a call that cannot be written") {
    Speculator speculator({main, {says({{"get", Json{{"a", "\xff"}}}}), says({}), says({})}},
                          executor, {SpeculationPolicy(documents())});
    const ClientTurn turn = in_time(speculator);
    CHECK(turn.counts.errors == 1);
    CHECK_FALSE(turn.counts.first_error.empty());
  }
  SECTION("a gate that throws") {
    Speculator speculator(
        {main, {says({call("get", 1)}), says({}), says({})}}, executor,
        {.policy       = SpeculationPolicy(documents()),
         .expects_gain = [](std::string_view) -> bool { throw std::runtime_error("no gate"); }});
    const ClientTurn turn = in_time(speculator);
    CHECK(turn.counts.errors == 1);
    CHECK(turn.counts.first_error == "no gate");
  }
}

TEST_CASE("ClientSpeculator does not wait for a slow speculator and asks it to stop") {
  Flag entered, asked, open;
  std::atomic<int> guesses = 0;
  ToolExecutor executor([](const ToolCall& c, std::stop_token) { return c.name; }, documents());
  const auto main = [&](const int&, std::stop_token) {
    entered.wait();
    return Reply{"", {call("get", 1)}};
  };
  const auto slow = [&](const int& context, std::stop_token stop) {
    const std::stop_callback callback(stop, [&] { asked.raise(); });
    if (++guesses == 1) {
      entered.raise();
      open.wait();  // regardless of the stop token
    }
    return Reply{"", {call("get", context)}};
  };
  Speculator speculator({main, {slow}}, executor, {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(5);
  CHECK(outputs(turn) == Texts{"get"});
  CHECK(turn.counts.proposed == 0);
  CHECK(turn.counts.late == 1);
  CHECK(turn.counts.errors == 0);
  asked.wait();
  CHECK(speculator(6).counts.proposed == 0);
  CHECK(guesses == 1);
  open.raise();
}

TEST_CASE("ClientSpeculator in a turn that is asked to stop starts no tool") {
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall&, std::stop_token) {
        ++runs;
        return "";
      },
      documents());
  std::stop_source source;
  const auto main = [&](const int&, std::stop_token) {
    source.request_stop();
    return Reply{"", {call("put", 1), call("get", 1)}};
  };
  Speculator speculator({main}, executor);
  CHECK(outputs(speculator(0, source.get_token())) == Texts{"cancelled", "cancelled"});
  CHECK(runs == 0);
}

namespace {

// A cache as an engine has it, and what came into it.
struct EngineCache {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::vector<std::pair<int, std::string>> entries{};  // the request; the call and its result

  void put(int request, const ToolCall& c, const ToolResult& result) {
    const std::lock_guard lock(mutex);
    entries.emplace_back(request, c.name + std::to_string(key_of(c)) + "=" + result.output);
    changed.notify_all();
  }
  void wait_for(const std::string& entry) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
      return std::any_of(entries.begin(), entries.end(),
                         [&](const auto& known) { return known.second == entry; });
    });
  }
};

ToolSubmission<int> submission(EngineCache& cache) {
  return
      [&cache](const int& request, const ToolCall& c, const ToolResult& result, std::stop_token) {
        cache.put(request, c, result);
        return true;
      };
}

ToolResult answer(const ToolCall& c, std::stop_token) {
  if (c.name == "fail") return {ToolStatus::failed, "failure"};
  return {ToolStatus::ok, std::to_string(key_of(c))};
}

}  // namespace

TEST_CASE(
    "ClientSpeculator with an engine that continues over guessed calls counts each of its turns") {
  EngineCache cache;
  ToolExecutor executor(answer, documents());
  // A speculator that guesses correctly: for context n, call n.
  const auto guess = [](const int& context, std::stop_token) {
    return Reply{"", {call("fail", context), call("get", context)}};
  };
  const auto main = [&](const int& context, std::stop_token,
                        const EngineCallbacks<int>& callbacks) {
    for (int turn = context; turn < context + 3; ++turn) {
      cache.wait_for("get" + std::to_string(turn) + "=" + std::to_string(turn));
      callbacks.on_continue(turn + 1, {call("get", turn)});
    }
    return Reply{"done", {call("get", 5), call("put", 9)}};
  };
  Speculator speculator({main, {guess}, submission(cache)}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(5);
  CHECK(turn.reply.text == "done");
  CHECK(outputs(turn) == Texts{"5", "9"});
  CHECK(turn.counts.residents == 3);
  CHECK(turn.counts.hits == 1);  // the reply's call that an earlier turn's speculators had guessed
  CHECK(turn.counts.misses == 1);
  CHECK(turn.counts.proposed >= 6);
  for (const auto& [request, entry] : cache.entries) {
    CHECK(request == 5);            // they are all of one request
    CHECK(entry.find("get") == 0);  // and none is a guess that failed, or has effects
  }
  const SubmissionCounts told = speculator.submissions();
  CHECK(told.told == cache.entries.size());
  CHECK(told.errors == 0);
  std::map<RunFate, int> fates;
  for (const ToolRun& run : turn.runs) ++fates[run.fate];
  CHECK(fates[RunFate::resident] == 2);
  CHECK(fates[RunFate::hit] == 1);
  CHECK(fates[RunFate::miss] == 1);
  CHECK(fates[RunFate::wasted] >= 3);
  CHECK(turn.counts.wasted == static_cast<std::size_t>(fates[RunFate::wasted]));
}

TEST_CASE("ClientSpeculator with an engine that waits gives it the results of its calls") {
  EngineCache cache;
  Flag guessed;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token stop) {
        if (c.name == "fail" && key_of(c) == 1) guessed.raise();
        return answer(c, stop);
      },
      documents());
  bool waits = false, has_effects_waits = true, cannot_be_written_waits = true;
  const auto main = [&](const int&, std::stop_token, const EngineCallbacks<int>& callbacks) {
    guessed.wait();
    const std::vector<ToolCall> calls{call("fail", 1), call("get", 2), call("get", 2)};
    waits                   = callbacks.on_wait(calls);
    has_effects_waits       = callbacks.on_wait({call("get", 3), call("put", 1)});
    cannot_be_written_waits = callbacks.on_wait({{"get", Json{{"a", "\xff"}}}});
    cache.wait_for("fail1=failure");
    cache.wait_for("get2=2");
    callbacks.on_continue(1, calls);
    return Reply{"", {}};
  };
  std::map<std::string, Observation> seen;
  Speculator speculator({main, {says({call("fail", 1)})}, submission(cache)}, executor,
                        {.policy  = SpeculationPolicy(documents()),
                         .observe = [&](std::string_view tool, const Observation& o) {
                           seen[std::string(tool)] = o;
                         }});
  const ClientTurn turn = speculator(0);
  CHECK(waits);
  CHECK_FALSE(has_effects_waits);
  CHECK_FALSE(cannot_be_written_waits);
  CHECK(turn.counts.hits == 1);
  CHECK(turn.counts.misses == 2);
  CHECK(turn.counts.residents == 0);
  CHECK(turn.counts.wasted == 0);
  CHECK(cache.entries.size() == 2);
  CHECK(speculator.submissions().told == 2);
  CHECK(turn.runs.size() == 2);
  CHECK(seen["fail"].predicted_right == true);
  CHECK(seen["get"].predicted_right == false);
  CHECK(seen["get"].tool.has_value());
}

TEST_CASE("ClientSpeculator counts a reply that starts again once, and reuses its guessed calls") {
  EngineCache cache;
  std::atomic<int> runs = 0;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token stop) {
        ++runs;
        return answer(c, stop);
      },
      documents());
  const auto guess = [](const int& context, std::stop_token) {
    return Reply{"", {call("get", context)}};
  };
  const auto main = [&](const int&, std::stop_token, const EngineCallbacks<int>& callbacks) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      callbacks.on_restart();
      for (int turn = 0; turn < 2; ++turn) {
        cache.wait_for("get" + std::to_string(turn) + "=" + std::to_string(turn));
        callbacks.on_continue(turn + 1, {call("get", turn)});
      }
    }
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {guess}, submission(cache)}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(outputs(turn) == Texts{"1"});
  CHECK(turn.counts.residents == 2);
  CHECK(turn.counts.hits == 1);
  CHECK(turn.counts.misses == 0);
  CHECK(runs <= 3);  // the call of context 2 may be running
}

TEST_CASE("ClientSpeculator after a restart counts a call that was waited for as resident") {
  EngineCache cache;
  ToolExecutor executor(answer, documents());
  const auto main = [&](const int&, std::stop_token, const EngineCallbacks<int>& callbacks) {
    REQUIRE(callbacks.on_wait({call("get", 0)}));
    cache.wait_for("get0=0");
    callbacks.on_restart();  // another engine, which finds the result in its cache
    callbacks.on_continue(1, {call("get", 0)});
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {}, submission(cache)}, executor, {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(outputs(turn) == Texts{"1"});
  CHECK(turn.counts.residents == 1);
  CHECK(turn.counts.misses == 1);  // the last call
  CHECK(turn.counts.hits == 0);
}

TEST_CASE("ClientSpeculator runs the calls of a guess behind one that has no key") {
  Flag started;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token stop) {
        started.raise();
        return answer(c, stop);
      },
      documents());
  const auto guess = [](const int&, std::stop_token) {
    ToolCall unwritable         = call("get", 0);
    unwritable.arguments["key"] = std::numeric_limits<double>::quiet_NaN();
    return Reply{"", {unwritable, call("get", 1)}};
  };
  const auto main = [&](const int&, std::stop_token) {
    started.wait();
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {guess}}, executor, {SpeculationPolicy(documents())});
  const ClientTurn turn = speculator(0);
  CHECK(outputs(turn) == Texts{"1"});
  CHECK(turn.counts.hits == 1);
  CHECK(turn.counts.errors == 1);
  CHECK(turn.counts.proposed == 1);
}

TEST_CASE("ClientSpeculator without submission says that no engine has a cache") {
  ToolExecutor executor(answer, documents());
  bool waits      = true;
  const auto main = [&](const int&, std::stop_token, const EngineCallbacks<int>& callbacks) {
    waits = callbacks.on_wait({call("get", 1)});
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main}, executor, {SpeculationPolicy(documents())});
  CHECK(outputs(speculator(0)) == Texts{"1"});
  CHECK_FALSE(waits);
  CHECK(speculator.submissions().told == 0);
}

TEST_CASE("ClientSpeculator counts a submission that fails and does not change the answer") {
  Flag failed;
  ToolExecutor executor(answer, documents());
  const auto refuses = [&](const int&, const ToolCall&, const ToolResult&,
                           std::stop_token) -> bool {
    failed.raise();
    throw std::runtime_error("status 404");
  };
  const auto main = [&](const int&, std::stop_token) {
    failed.wait();
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {says({call("get", 1)})}, refuses}, executor,
                        {SpeculationPolicy(documents())});
  CHECK(outputs(speculator(0)) == Texts{"1"});
  const SubmissionCounts counts = speculator.submissions();
  CHECK(counts.told == 0);
  CHECK(counts.errors == 1);
  CHECK(counts.first_error == "status 404");
}

TEST_CASE(
    "ClientSpeculator does not wait for a slow submission, and its destructor asks it to stop") {
  Flag entered, stopped;
  ToolExecutor executor(answer, documents());
  const auto slow = [&](const int&, const ToolCall&, const ToolResult&, std::stop_token stop) {
    entered.raise();
    block_until(stop);
    stopped.raise();
    return false;
  };
  const auto main = [&](const int&, std::stop_token) {
    entered.wait();
    return Reply{"", {call("get", 1)}};
  };
  {
    Speculator speculator({main, {says({call("get", 1)})}, slow}, executor,
                          {SpeculationPolicy(documents())});
    CHECK(outputs(speculator(0)) == Texts{"1"});
  }
  stopped.wait();
}

TEST_CASE("ClientSpeculator in a stopped turn stops the speculators of the engine's later turns") {
  ToolExecutor executor(answer, documents());
  std::stop_source source;
  Flag second;
  const auto guess = [&](const int& context, std::stop_token stop) {
    if (context == 1) {
      second.raise();
      block_until(stop);
    }
    return Reply{};
  };
  const auto main = [&](const int&, std::stop_token, const EngineCallbacks<int>& callbacks) {
    callbacks.on_continue(1, {});
    second.wait();
    source.request_stop();
    return Reply{"", {call("get", 1)}};
  };
  Speculator speculator({main, {guess}}, executor);
  CHECK(outputs(speculator(0, source.get_token())) == Texts{"cancelled"});
}

TEST_CASE("ClientSpeculator records a run's times, and as saved what had run when it was called") {
  Flag begun;
  ToolExecutor executor(
      [&](const ToolCall& c, std::stop_token) {
        begun.raise();
        std::this_thread::sleep_for(20ms);
        return std::to_string(key_of(c));
      },
      documents());
  const auto main = [&](const int& context, std::stop_token) {
    begun.wait();
    std::this_thread::sleep_for(10ms);
    return Reply{"", {call("get", context)}};
  };
  Speculator speculator({main, {says({call("get", 1)})}}, executor,
                        {SpeculationPolicy(documents())});
  const ClientTurn hit = speculator(1);
  REQUIRE(hit.runs.size() == 1);
  const ToolRun& run = hit.runs[0];
  CHECK(run.fate == RunFate::hit);
  CHECK(run.status == ToolStatus::ok);
  CHECK(run.call == call("get", 1));
  REQUIRE(run.begin);
  REQUIRE(run.asked);
  CHECK(*run.begin < *run.asked);
  CHECK(run.time >= Seconds(0.02));
  CHECK(hit.saved >= Seconds(0.01));
  CHECK(hit.saved <= run.time);
  const ClientTurn miss = speculator(2);
  CHECK(miss.saved == Seconds::zero());
  CHECK(miss.runs.size() >= 1);
}

TEST_CASE("ClientSpeculator refuses empty models") {
  ToolExecutor executor([](const ToolCall&, std::stop_token) { return ""; }, documents());
  CHECK_THROWS_WITH(Speculator({}, executor), "main: must not be empty");
  CHECK_THROWS_WITH(Speculator({says({}), {ClientModel<int>()}}, executor),
                    "speculators: none must be empty");
}

namespace {

// A turn that is fixed in advance: what each model says, and which one waits.
struct Script {
  std::vector<ToolCall> calls{};
  std::vector<std::vector<ToolCall>> guesses{};
  std::vector<unsigned> delays{};       // of the speculators; the last is that of the main model
  std::size_t wait_for            = 0;  // speculators that have spoken before the main model does
  std::atomic<std::size_t> spoken = 0;
  std::atomic<bool> is_committed  = false;
};

// The runs of a session, by tool and key.
struct Ledger {
  std::mutex mutex{};
  std::map<std::pair<std::string, int>, int> runs{};
  std::shared_ptr<Script> script{};
  int early = 0;  // runs of calls with effects before they were made
};

}  // namespace

TEST_CASE(
    "ClientSpeculator over 10,000 sessions runs no uncalled effect and uses each result once") {
  constexpr std::size_t sessions = 10'000, speculators = 2;
  std::vector<Ledger> ledgers(sessions);
  std::size_t hits = 0, wasted = 0, started = 0, repeated = 0;
  {
    ToolExecutor executor(
        [&](const ToolCall& c, std::stop_token stop) -> ToolResult {
          Ledger& ledger = ledgers[c.arguments.at("session").get<std::size_t>()];
          const int key  = key_of(c);
          for (int i = 0; i < 4 * key && !stop.stop_requested(); ++i) std::this_thread::yield();
          const std::lock_guard lock(ledger.mutex);
          const auto& calls = ledger.script->calls;
          const bool called = ledger.script->is_committed &&
                              std::find(calls.begin(), calls.end(), c) != calls.end();
          if (c.name == "put" && !called) ++ledger.early;
          const int run = ++ledger.runs[{c.name, key}];
          return {ToolStatus::ok, c.name + std::to_string(key) + "#" + std::to_string(run)};
        },
        documents(), {.threads = 4, .timeout = 1h});
    using Context   = std::shared_ptr<Script>;
    const auto main = [](const Context& script, std::stop_token) {
      while (script->spoken < script->wait_for) std::this_thread::yield();
      yield(script->delays.back());
      script->is_committed = true;
      return Reply{"", script->calls};
    };
    const auto guess = [](std::size_t number) {
      return [number](const Context& script, std::stop_token) {
        yield(script->delays[number]);
        ++script->spoken;
        return Reply{"", script->guesses[number]};
      };
    };
    ClientSpeculator speculator(ClientModels<Context>{main, {guess(0), guess(1)}}, executor,
                                {SpeculationPolicy(documents(), {.max_calls = 3})});
    for (std::size_t session = 0; session < sessions; ++session) {
      std::mt19937 random(static_cast<unsigned>(session));
      const auto below  = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
      const auto script = std::make_shared<Script>();
      const auto some   = [&] {
        std::vector<ToolCall> calls;
        for (unsigned i = below(4); i > 0; --i) {
          calls.push_back(call(below(3) == 0   ? "put"
                                 : below(2) == 0 ? "get"
                                                 : "look",
                                 static_cast<int>(below(2)), static_cast<int>(session)));
        }
        return calls;
      };
      script->calls = some();
      for (std::size_t i = 0; i < speculators; ++i) {
        script->guesses.push_back(below(2) == 0 ? script->calls : some());
        script->delays.push_back(below(5));
      }
      script->delays.push_back(below(8));
      script->wait_for        = below(speculators + 1);
      ledgers[session].script = script;

      const ClientTurn turn = speculator(script);
      INFO("session " << session);
      REQUIRE(turn.results.size() == script->calls.size());
      REQUIRE(turn.counts.started <= 3);
      std::map<int, int> written;
      std::size_t used = 0;
      for (std::size_t i = 0; i < turn.results.size(); ++i) {
        const ToolCall& c      = script->calls[i];
        const std::string stem = c.name + std::to_string(key_of(c)) + "#";
        const std::string text = turn.results[i].output;
        if (c.name == "put") {
          // The n-th call has the n-th result.
          const int run = ++written[key_of(c)];
          repeated += run > 1 ? 1 : 0;
          if (text != stem + std::to_string(run)) FAIL(text << " for run " << run);
        } else if (text.find(stem) != 0) {
          FAIL(text << " for " << stem);
        }
        ++used;
      }
      REQUIRE(used == script->calls.size());
      hits += turn.counts.hits;
      wasted += turn.counts.wasted;
      started += turn.counts.started;
    }
  }
  for (std::size_t session = 0; session < sessions; ++session) {
    INFO("session " << session);
    const Ledger& ledger = ledgers[session];
    std::map<int, int> called;
    for (const ToolCall& c : ledger.script->calls) called[key_of(c)] += c.name == "put" ? 1 : 0;
    if (ledger.early > 0) FAIL("a call with effects ran before it was called");
    for (const auto& [what, runs] : ledger.runs) {
      if (what.first == "put" && runs != called[what.second]) FAIL(runs << " runs of a call");
    }
  }
  CHECK(hits > 500);
  CHECK(wasted > 500);
  CHECK(started > wasted);
  CHECK(repeated > 100);
}

namespace {

// What the tools of a session act on.
struct World {
  std::mutex mutex{};
  std::map<int, int> values{};
  std::stop_source stop{};
};

// What a model sees.
struct Talk {
  unsigned seed = 0;
  int session   = 0;
  std::string text{};
};

std::mt19937 random_for(const Talk& talk, unsigned who) {
  const std::size_t hash = std::hash<std::string>()(talk.text);
  std::seed_seq seeds{talk.seed, who, static_cast<unsigned>(hash),
                      static_cast<unsigned>(hash >> 32)};
  return std::mt19937(seeds);
}

std::vector<ToolCall> random_calls(const Talk& talk, std::mt19937& random) {
  // Most calls read; every kind of failure occurs.
  const char* const names[] = {"get", "get",  "get",  "look", "look",  "look", "put",
                               "put", "fail", "fail", "hang", "abort", "none"};
  std::vector<ToolCall> calls;
  for (unsigned i = static_cast<unsigned>(random() % 4); i > 0; --i) {
    calls.push_back(call(names[random() % 13], static_cast<int>(random() % 3), talk.session));
  }
  return calls;
}

// The main model's reply is a function of what it sees; its timing is not.
Reply reply_to(const Talk& talk) {
  std::mt19937 random = random_for(talk, 0);
  if (random() % 40 == 0) throw std::runtime_error("main");
  return {std::to_string(random()), random_calls(talk, random)};
}

// One way to run 1,000 sessions.
class Universe {
 public:
  explicit Universe(std::size_t speculators) : speculators_(speculators), worlds_(1000) {}

  std::vector<std::string> transcripts() {
    ToolExecutor executor([this](const ToolCall& c, std::stop_token stop) { return run(c, stop); },
                          documents(),
                          {.threads       = 6,
                           .timeout       = std::chrono::hours(1),
                           .tool_timeouts = {{"hang", std::chrono::milliseconds(1)}}});
    std::vector<std::string> all(worlds_.size());
    // Two clients share the executor.
    const auto serve = [&](std::size_t first) {
      ClientModels<Talk> generators{[this](const Talk& talk, std::stop_token) {
        wait();
        return reply_to(talk);
      }};
      for (std::size_t i = 1; i <= speculators_; ++i) {
        generators.speculators.push_back([this, i](const Talk& talk, std::stop_token stop) {
          return guess(talk, static_cast<unsigned>(i), stop);
        });
      }
      ClientSpeculator speculator(std::move(generators), executor,
                                  {SpeculationPolicy(documents())});
      for (std::size_t s = first; s < all.size(); s += 2) all[s] = session(s, speculator);
    };
    std::jthread other(serve, 1);
    serve(0);
    return all;
  }

  SpeculationCounts total{};
  std::map<ToolStatus, std::size_t> statuses{};

 private:
  std::string session(std::size_t number, ClientSpeculator<Talk>& speculator) {
    Talk talk{static_cast<unsigned>(number), static_cast<int>(number)};
    World& world = worlds_[number];
    for (int turns = 0; turns < 4 && !world.stop.stop_requested(); ++turns) {
      try {
        const ClientTurn turn = speculator(talk, world.stop.get_token());
        talk.text += turn.reply.text;
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < turn.results.size(); ++i) {
          const ToolResult& result = turn.results[i];
          talk.text += "\n" + turn.reply.calls[i].canonical_text() + " -> ";
          talk.text += std::string(name(result.status)) + " " + result.output;
          ++statuses[result.status];
        }
        const SpeculationCounts& counts = turn.counts;
        total += counts;
        if (counts.hits + counts.misses > turn.reply.calls.size()) talk.text += "counts too much";
        if (counts.hits + counts.wasted < counts.started) talk.text += "counts too little";
        if (counts.errors + counts.late > speculators_) talk.text += "counts too many speculators";
      } catch (const std::runtime_error& error) {
        talk.text += error.what();
      }
      talk.text += "\n";
    }
    return talk.text;
  }

  ToolResult run(const ToolCall& c, const std::stop_token& stop) {
    World& world  = worlds_[c.arguments.at("session").get<std::size_t>()];
    const int key = key_of(c);
    wait();
    if (c.name == "none") return {ToolStatus::failed, "no such tool"};
    if (c.name == "fail" && key == 0) throw std::runtime_error("failure");
    if (c.name == "fail") return {ToolStatus::failed, "failure " + std::to_string(key)};
    if (c.name == "abort") world.stop.request_stop();
    if (c.name == "abort" || c.name == "hang") block_until(stop);
    const std::lock_guard lock(world.mutex);
    if (c.name == "put") ++world.values[key];
    return {ToolStatus::ok, std::to_string(world.values[key])};
  }

  Reply guess(const Talk& talk, unsigned who, const std::stop_token& stop) {
    std::mt19937 random = random_for(talk, who);
    wait();
    switch (random() % 8) {
      case 0:
        throw std::runtime_error("speculator");
      case 1:
        block_until(stop);
        return {};
      case 2:
      case 3:
        return {"", random_calls(talk, random)};
      default:
        return reply_to(talk);
    }
  }

  // Waits a random time, on which no outcome may depend.
  void wait() { yield(static_cast<unsigned>(waits_.fetch_add(0x9e3779b9u) >> 27)); }

  std::size_t speculators_;
  std::vector<World> worlds_;
  std::atomic<std::uint32_t> waits_ = 1;
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("ClientSpeculator over 1,000 sessions gives the outcomes without speculation") {
  Universe without(0), with(3);
  const auto expected = without.transcripts();
  const auto got      = with.transcripts();
  REQUIRE(got.size() == 1000);
  for (std::size_t seed = 0; seed < got.size(); ++seed) {
    INFO("session " << seed);
    if (got[seed] != expected[seed]) CHECK(got[seed] == expected[seed]);
  }
  CHECK(with.statuses == without.statuses);
  CHECK(with.total.hits > 200);
  CHECK(with.total.wasted > 100);
  CHECK(with.total.cancelled > 10);
  CHECK(with.total.errors > 10);
  CHECK(with.total.first_error == "speculator");
  CHECK(with.total.late > 10);
  CHECK(with.total.misses > 200);
  CHECK(without.total.hits + without.total.wasted == 0);
  for (const ToolStatus status :
       {ToolStatus::ok, ToolStatus::failed, ToolStatus::timed_out, ToolStatus::cancelled}) {
    INFO(name(status));
    CHECK(with.statuses[status] > 50);
  }
}
