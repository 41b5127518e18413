#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/performance_model.hpp>

#include "../../benchmarks/tool_latency/simulation.hpp"
#include <support/catch.hpp>

using namespace tooldecode;

namespace {

double draw(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

TurnTimes random_times(std::mt19937& random) {
  // Round numbers, so that ties and zeros occur.
  const auto time = [&] { return Seconds(static_cast<double>(random() % 9) / 4); };
  return {time(), time(), time(), Seconds(static_cast<double>(random() % 3) / 8)};
}

EngineTimes random_engine(std::mt19937& random) {
  EngineTimes times{.turn = random_times(random)};
  times.round_trip     = Seconds(static_cast<double>(random() % 3) / 8);
  times.eviction       = Seconds(static_cast<double>(random() % 3) / 16);
  times.call           = times.turn.generation * draw(random, 0, 1);
  times.context_tokens = draw(random, 0, 4000);
  times.result_tokens  = draw(random, 0, 100);
  times.cached_share   = random() % 2 == 0 ? 1 : draw(random, 0, 1);
  times.prefill_rate   = 8000;
  return times;
}

// One session on a clock; the bits say which predictions are right.
double client_session(const TurnTimes& t, std::size_t turns, unsigned right) {
  double clock = 0;
  for (std::size_t i = 0; i < turns; ++i) {
    const double call     = clock + t.generation.count();
    const double guessed  = clock + t.speculation.count();
    const double run_from = (right >> i & 1U) != 0 ? guessed : call;
    clock                 = std::max(call, run_from + t.tool.count()) + t.overhead.count();
  }
  return clock;
}

// The same with two parties, message by message: when the next turn can start, and with which.
double engine_session(const EngineTimes& e, std::size_t turns, unsigned right) {
  const TurnTimes& t = e.turn;
  const double way   = e.round_trip.count() / 2;
  const double refill =
      ((1 - e.cached_share) * e.context_tokens + e.result_tokens) / e.prefill_rate;
  double clock  = 0;
  bool in_batch = false;
  for (std::size_t i = 0; i < turns; ++i) {
    double client_starts = clock, decoding_starts = 0;
    if (in_batch) {
      client_starts   = clock + way;  // it receives the turn
      decoding_starts = clock + e.result_tokens / e.prefill_rate;
    } else {
      decoding_starts = clock + way + e.eviction.count() + refill;
    }
    const bool is_right      = (right >> i & 1U) != 0;
    const double result      = client_starts + t.speculation.count() + t.tool.count();
    const double call_starts = decoding_starts + t.generation.count() - e.call.count();
    const double call_ends   = decoding_starts + t.generation.count();
    if (is_right && result + way <= call_starts) {
      clock = call_starts, in_batch = true;
    } else if (is_right && result + way <= call_ends) {
      clock = call_ends, in_batch = true;
    } else {
      const double heard = call_ends + way;
      clock              = is_right ? std::max(heard, result) : heard + t.tool.count();
      in_batch           = false;
    }
    clock += t.overhead.count();
  }
  return clock;
}

// The mean over all outcomes of a session, by their probability.
template <class Session>
double enumerate(std::size_t turns, double acceptance, Session session) {
  double mean = 0;
  for (unsigned right = 0; right < 1U << turns; ++right) {
    double chance = 1;
    for (std::size_t i = 0; i < turns; ++i) {
      chance *= (right >> i & 1U) != 0 ? acceptance : 1 - acceptance;
    }
    mean += chance * session(right);
  }
  return mean;
}

}  // namespace

TEST_CASE("time_without, time_with and speedup equal a session computed by hand") {
  // Reasoning and tool 1 s each, the prediction after 0.25 s, right four times of five.
  const TurnTimes times{Seconds(1), Seconds(0.25), Seconds(1)};
  CHECK(time_without(10, times).count() == Approx(20));
  CHECK(time_with(10, times, 0.8).count() == Approx(0.8 * 12.5 + 0.2 * 20));
  CHECK(speedup(times, 0.8) == Approx(2 / 1.4));
  CHECK(time_saved(times, 0.8).count() == Approx(0.6));
  CHECK(time_saved(times, 0.5, 3).count() == Approx(0.875 * 0.75));
  CHECK(any_right(0.5, 3) == Approx(0.875));
}

TEST_CASE("time_with and time_with_cache are the mean over all outcomes of a session") {
  std::mt19937 random(21);
  for (int round = 0; round < 200; ++round) {
    const EngineTimes times      = random_engine(random);
    const double acceptance      = draw(random, 0, 1);
    const std::size_t turns      = 1 + random() % 7;
    const auto client_session_of = [&](const TurnTimes& turn) {
      return enumerate(turns, acceptance,
                       [&](unsigned right) { return client_session(turn, turns, right); });
    };
    INFO("round " << round);
    CHECK(time_with(turns, times.turn, acceptance).count() ==
          Approx(client_session_of(times.turn)).margin(1e-12));
    CHECK(time_with(turns, client_times(times), acceptance).count() ==
          Approx(client_session_of(client_times(times))).margin(1e-12));
    CHECK(time_with_cache(turns, times, acceptance).count() ==
          Approx(enumerate(turns, acceptance, [&](unsigned right) {
            return engine_session(times, turns, right);
          })).margin(1e-12));
  }
}

TEST_CASE("time_saved of several speculators is the mean over which of them are right") {
  std::mt19937 random(22);
  for (int round = 0; round < 200; ++round) {
    const TurnTimes times   = random_times(random);
    const double acceptance = draw(random, 0, 0.9);
    for (std::size_t count = 1; count <= 6; ++count) {
      TurnTimes all = times;
      all.overhead *= static_cast<double>(count);
      const double with = enumerate(count, acceptance, [&](unsigned right) {
        return client_session(all, 1, right != 0 ? 1 : 0);
      });
      INFO("round " << round << ", " << count << " speculators");
      CHECK((times.generation + times.tool - time_saved(times, acceptance, count)).count() ==
            Approx(with).margin(1e-12));
    }
    std::size_t best = 0;
    double max       = 0;
    for (std::size_t count = 1; count <= 9; ++count) {
      const double saved = time_saved(times, acceptance, count).count();
      if (saved > max + 1e-12) max = saved, best = count;
    }
    CHECK(best_speculators(times, acceptance, 9) == best);
  }
  CHECK(best_speculators({Seconds(1), Seconds(0), Seconds(1)}, 0.5, 9) == 9);  // free
  CHECK(best_speculators({Seconds(1), Seconds(0), Seconds(1)}, 1, 9) == 1);    // one is enough
  CHECK(best_speculators({Seconds(1), Seconds(0), Seconds(1)}, 0, 9) == 0);
  CHECK(best_speculators({Seconds(1), Seconds(2), Seconds(1)}, 0.9, 9) == 0);
}

TEST_CASE(
    "speedup without overhead exceeds 1 exactly where predictions can be right and are faster") {
  std::mt19937 random(23);
  std::size_t pays = 0;
  for (int round = 0; round < 1000; ++round) {
    TurnTimes times         = random_times(random);
    times.overhead          = Seconds(0);
    const double acceptance = random() % 4 == 0 ? 0 : draw(random, 0, 1);
    const bool should =
        acceptance > 0 && times.speculation < times.generation && times.tool.count() > 0;
    INFO("round " << round << ": G " << times.generation.count() << ", g "
                  << times.speculation.count() << ", T " << times.tool.count() << ", acceptance "
                  << acceptance);
    CHECK((speedup(times, acceptance) > 1 + 1e-12) == should);
    CHECK(speedup(times, acceptance) <= speedup_bound(acceptance) + 1e-12);
    CHECK(speedup_bound(acceptance) * (1 - acceptance) <= 1);
    CHECK((break_even_acceptance(times) < 1) ==
          (times.speculation < times.generation && times.tool.count() > 0));
    pays += should;
  }
  CHECK(pays > 100);
  CHECK(speedup({Seconds(3), Seconds(0), Seconds(3)}, 0.7) == Approx(speedup_bound(0.7)));
  CHECK(speedup_bound(1) == 2);
  CHECK(speedup_bound(0) == 1);
}

TEST_CASE("break_even_acceptance separates the acceptances that gain from those that lose") {
  std::mt19937 random(24);
  std::size_t within = 0;
  for (int round = 0; round < 500; ++round) {
    const TurnTimes times = random_times(random);
    const double even     = break_even_acceptance(times);
    INFO("round " << round << ", break-even " << even);
    if (even > 1) {
      CHECK(time_saved(times, 1).count() <= 0);
      continue;
    }
    ++within;
    CHECK(time_saved(times, even).count() == Approx(0).margin(1e-12));
    if (even < 0.99) CHECK(time_saved(times, even + 0.01).count() > 0);
    if (even > 0.01) CHECK(time_saved(times, even - 0.01).count() < 0);
  }
  CHECK(within > 50);
}

TEST_CASE("time_with grows with each time of a turn and falls with the acceptance") {
  std::mt19937 random(25);
  for (int round = 0; round < 300; ++round) {
    const EngineTimes times = random_engine(random);
    const double acceptance = draw(random, 0, 0.95);
    const double client     = time_with(20, times.turn, acceptance).count();
    INFO("round " << round);
    for (Seconds TurnTimes::*part : {&TurnTimes::generation, &TurnTimes::speculation,
                                     &TurnTimes::tool, &TurnTimes::overhead}) {
      TurnTimes more = times.turn;
      more.*part += Seconds(0.3);
      CHECK(time_with(20, more, acceptance).count() >= client - 1e-12);
    }
    if (times.turn.speculation <= times.turn.generation) {
      CHECK(time_with(20, times.turn, acceptance + 0.05).count() <= client + 1e-12);
    }
    CHECK(any_right(acceptance, 4) >= any_right(acceptance, 3));
  }
}

TEST_CASE("time_with_cache never exceeds the time of the client alone") {
  std::mt19937 random(26);
  for (int round = 0; round < 2000; ++round) {
    const EngineTimes times = random_engine(random);
    const double acceptance = draw(random, 0, 1);
    INFO("round " << round);
    CHECK(time_with_cache(12, times, acceptance) <=
          time_with(12, client_times(times), acceptance) + Seconds(1e-9));
  }
  // Without time for readmission, it equals the client alone.
  EngineTimes free{.turn = {Seconds(1), Seconds(0.5), Seconds(0.25)}};
  CHECK(time_with_cache(9, free, 0.7).count() == Approx(time_with(9, free.turn, 0.7).count()));
  CHECK(speedup_with_cache(9, free, 0.7) == Approx(speedup(free.turn, 0.7)));
  // Certain and fast predictions: each turn except the first is decoding without the call, and the
  // result.
  const EngineTimes sure{.turn           = {Seconds(1), Seconds(0.1), Seconds(0.1)},
                         .round_trip     = Seconds(0.02),
                         .eviction       = Seconds(0.01),
                         .call           = Seconds(0.2),
                         .context_tokens = 2000,
                         .result_tokens  = 100,
                         .cached_share   = 0.5,
                         .prefill_rate   = 10'000};
  CHECK(append_time(sure).count() == Approx(0.01));
  CHECK(readmission_time(sure).count() == Approx(0.02 + 0.01 + 0.11));
  CHECK(client_times(sure).generation.count() == Approx(1.14));
  CHECK(time_with_cache(3, sure, 1).count() == Approx(0.01 + 0.01 + 0.11 + 0.8 + 2 * 0.81));
}

// One agent, constant times, predictions that do not slow the engine.
static tool_latency::Setup plain_setup(double tool, tool_latency::Speculation speculation) {
  tool_latency::Setup setup{.speculation = speculation};
  setup.engine.step_per_draft   = 0;
  setup.workload.spread         = 0;
  setup.workload.tool_deviation = 0;
  setup.workload.tool           = tool;
  setup.workload.sessions       = 300;
  return setup;
}

TEST_CASE("time_with of simulated sessions is right within 1 %") {
  using tool_latency::Policy;
  for (const Policy policy : {Policy::none, Policy::client, Policy::engine}) {
    // In none of these does one decoding step decide whether a result is in time.
    for (const double tool : {0.0, 0.25, 0.6, 1.5, 3.0}) {
      for (const double acceptance : {0.0, 0.5, 0.8, 1.0}) {
        for (const std::size_t speculators : {1U, 3U}) {
          // Without a prefix cache the time to come back grows within a session, and which turns
          // come back would matter: that is left to the client, for which all do.
          for (const double cached : {1.0, 0.9, 0.0}) {
            if (cached == 0 && policy == Policy::engine) continue;
            auto setup = plain_setup(
                tool, {.policy = policy, .speculators = speculators, .acceptance = acceptance});
            setup.engine.cached_share = cached;
            INFO(name(policy) << ", tool " << tool << " s, acceptance " << acceptance << ", "
                              << speculators << " speculators, cached share " << cached);
            CHECK(tool_latency::simulate(setup).seconds ==
                  Approx(tool_latency::expected_seconds(setup)).epsilon(0.01));
          }
        }
      }
    }
  }
}

TEST_CASE("simulate gives the same result again and counts what happens") {
  using tool_latency::Policy;
  const auto setup = [](Policy policy, bool is_gated) {
    tool_latency::Setup result{.speculation = {.policy = policy, .speculators = 2}};
    result.workload.agents      = 5;
    result.workload.tool        = 0.4;
    result.speculation.is_gated = is_gated;
    return result;
  };
  const auto none = tool_latency::simulate(setup(Policy::none, false));
  CHECK(none.turns == 5 * 8 * 10);
  CHECK(none.speculated + none.started + none.hits + none.resident == 0);
  for (const Policy policy : {Policy::client, Policy::engine}) {
    for (const bool is_gated : {false, true}) {
      const auto first = tool_latency::simulate(setup(policy, is_gated));
      const auto again = tool_latency::simulate(setup(policy, is_gated));
      CHECK(first.seconds == again.seconds);
      CHECK(first.tokens == none.tokens);  // the same turns
      CHECK(first.turns == none.turns);
      CHECK(first.seconds < none.seconds);
      CHECK(first.speculated <= first.turns);
      CHECK(first.hits <= first.speculated);
      CHECK(first.hits <= first.started);
      CHECK((first.resident > 0) == (policy == Policy::engine));
      if (!is_gated) CHECK(first.speculated == first.turns);
    }
  }
  // Certain predictions of the same call run once, and none is wasted.
  const auto sure = tool_latency::simulate(
      plain_setup(0.5, {.policy = Policy::engine, .speculators = 9, .acceptance = 1}));
  CHECK(sure.started == sure.turns);
  CHECK(sure.hits == sure.turns);
  CHECK(sure.resident == sure.turns);
  CHECK(sure.wasted() == 0);
  // Predictions that come after the call are given up.
  const auto late = tool_latency::simulate(
      plain_setup(0.5, {.policy = Policy::client, .acceptance = 1, .prediction = 30}));
  CHECK(late.started == 0);
  CHECK(late.seconds == Approx(tool_latency::simulate(plain_setup(0.5, {})).seconds));
}

TEST_CASE("time_with_cache, speedup and the like are defined for sessions without time or turns") {
  CHECK(speedup({}, 0.5) == 1);
  CHECK(speedup_with_cache(5, {}, 0.5) == 1);
  CHECK(speedup({.overhead = Seconds(1)}, 0.5) == 0);
  CHECK(time_without(0, {Seconds(1)}).count() == 0);
  CHECK(time_with_cache(0, {.turn = {Seconds(1)}}, 0.5).count() == 0);
  CHECK(any_right(0.3, 0) == 0);
  CHECK(best_speculators({}, 1, 5) == 0);
  CHECK(std::isinf(break_even_acceptance({})));
}

TEST_CASE("time_with, append_time and the like refuse invalid times and probabilities") {
  const auto refuses = [](auto&& act) {
    try {
      static_cast<void>(act());
    } catch (const Error& error) {
      return error.code() == Errc::invalid_option;
    }
    return false;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const TurnTimes good{Seconds(1), Seconds(0.5), Seconds(1)};
  CHECK_THROWS_WITH(time_without(1, {.tool = Seconds(-1.5)}),
                    "tool -1.5: must be a time in seconds: 0 or more, and finite");
  CHECK_THROWS_WITH(readmission_time({.turn = good, .cached_share = 1.5}),
                    "cached_share 1.5: must be from 0 to 1");
  CHECK_THROWS_WITH(append_time({.turn = good, .prefill_rate = 0}),
                    "prefill_rate 0: must be above 0");
  for (const double bad : {-0.1, 1.1, nan, inf}) {
    CHECK(refuses([&] { return time_with(1, good, bad); }));
    CHECK(refuses([&] { return time_saved(good, bad, 2); }));
    CHECK(refuses([&] { return speedup(good, bad); }));
    CHECK(refuses([&] { return speedup_bound(bad); }));
    CHECK(refuses([&] { return any_right(bad, 2); }));
    CHECK(refuses([&] { return best_speculators(good, bad, 2); }));
    CHECK(refuses([&] { return time_with_cache(1, {.turn = good}, bad); }));
    CHECK(refuses([&] { return readmission_time({.turn = good, .cached_share = bad}); }));
  }
  for (const double bad : {-1.0, nan, inf}) {
    for (Seconds TurnTimes::*part : {&TurnTimes::generation, &TurnTimes::speculation,
                                     &TurnTimes::tool, &TurnTimes::overhead}) {
      TurnTimes times = good;
      times.*part     = Seconds(bad);
      CHECK(refuses([&] { return time_without(1, times); }));
      CHECK(refuses([&] { return break_even_acceptance(times); }));
      CHECK(refuses([&] { return append_time({.turn = times}); }));
    }
    CHECK(refuses([&] { return append_time({.turn = good, .round_trip = Seconds(bad)}); }));
    CHECK(refuses([&] { return append_time({.turn = good, .eviction = Seconds(bad)}); }));
    CHECK(refuses([&] { return append_time({.turn = good, .call = Seconds(bad)}); }));
    CHECK(refuses([&] { return append_time({.turn = good, .context_tokens = bad}); }));
    CHECK(refuses([&] { return append_time({.turn = good, .result_tokens = bad}); }));
  }
  CHECK(refuses([&] { return append_time({.turn = good, .call = Seconds(2)}); }));
  CHECK(refuses([&] { return append_time({.turn = good, .prefill_rate = 0}); }));
}

namespace {

struct AgentRun {
  EngineRates rates{};
  double prompt_tokens = 0;
  std::vector<AgentTurn> turns{};
};

AgentRun random_run(std::mt19937& random) {
  AgentRun run;
  run.rates         = {Seconds(draw(random, 0, 0.1)), Seconds(draw(random, 0, 0.001)),
                       Seconds(draw(random, 0, 0.05)), Seconds(draw(random, 0, 0.001))};
  run.prompt_tokens = static_cast<double>(random() % 2000);
  run.turns.resize(1 + random() % 8);
  for (AgentTurn& turn : run.turns) {
    turn = {static_cast<double>(random() % 200), static_cast<double>(1 + random() % 50),
            static_cast<double>(random() % 300), Seconds(draw(random, 0, 3)),
            Seconds(draw(random, 0, 1))};
  }
  return run;
}

// An engine that counts token by token what it reads and writes.
struct Engine {
  const EngineRates& rates;
  double clock = 0;

  void pass_on() { clock += rates.overhead.count(); }
  void read(double tokens) {
    for (double i = 0; i < tokens; ++i) clock += rates.prefill.count();
  }
  void write(double tokens) {
    for (double i = 0; i < tokens; ++i) clock += rates.decode.count();
  }
  void verify(double tokens) {
    for (double i = 0; i < tokens; ++i) clock += rates.verify.count();
  }
};

// The bits say which predictions were right; the engine keeps all that it has read.
double kept_session(const AgentRun& run, unsigned right) {
  Engine engine{run.rates};
  engine.read(run.prompt_tokens);
  for (std::size_t i = 0; i < run.turns.size(); ++i) {
    const AgentTurn& turn = run.turns[i];
    const bool is_right   = (right >> i & 1U) != 0;
    if (!is_right) engine.pass_on();
    engine.write(turn.reasoning_tokens);
    engine.write(is_right ? 1 : turn.call_tokens);
    if (is_right) {
      engine.verify(turn.call_tokens);
      engine.clock += turn.late.count();
    } else {
      engine.pass_on();
      engine.clock += turn.tool.count();
    }
    engine.read(turn.call_tokens + turn.output_tokens);
  }
  return engine.clock;
}

// Turns of an engine that forgets: each prompt is read whole.
double forgetful_session(const AgentRun& run) {
  Engine engine{run.rates};
  std::vector<double> history{run.prompt_tokens};
  for (const AgentTurn& turn : run.turns) {
    engine.pass_on();
    for (const double tokens : history) engine.read(tokens);
    engine.write(turn.reasoning_tokens);
    engine.write(turn.call_tokens);
    engine.pass_on();
    engine.clock += turn.tool.count();
    history.insert(history.end(), {turn.call_tokens, turn.output_tokens});
  }
  return engine.clock;
}

}  // namespace

TEST_CASE("engine_time_with, _without and _cached equal an engine that counts its tokens") {
  std::mt19937 random(46);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    const AgentRun run      = random_run(random);
    const double acceptance = draw(random, 0, 1);
    const auto kept         = [&](unsigned right) { return kept_session(run, right); };
    CHECK(engine_time_without(run.rates, run.prompt_tokens, run.turns).count() ==
          Approx(forgetful_session(run)));
    CHECK(engine_time_cached(run.rates, run.prompt_tokens, run.turns).count() ==
          Approx(kept_session(run, 0)));
    CHECK(engine_time_with(run.rates, run.prompt_tokens, run.turns, acceptance).count() ==
          Approx(enumerate(run.turns.size(), acceptance, kept)));
  }
}

TEST_CASE("engine_time_with has the properties that its paper states") {
  std::mt19937 random(6);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    AgentRun run     = random_run(random);
    run.rates.verify = {};  // the paper has neither
    for (AgentTurn& turn : run.turns) turn.late = {};
    const auto turns = static_cast<double>(run.turns.size());
    double calls = 0, tools = 0, saved_prefill = 0, prompt = run.prompt_tokens;
    for (std::size_t i = 0; i < run.turns.size(); ++i) {
      calls += run.turns[i].call_tokens;
      tools += run.turns[i].tool.count();
      if (i > 0) saved_prefill += prompt;
      prompt += run.turns[i].call_tokens + run.turns[i].output_tokens;
    }
    const double cached = engine_time_cached(run.rates, run.prompt_tokens, run.turns).count();
    CHECK(engine_time_with(run.rates, run.prompt_tokens, run.turns, 0).count() == cached);
    CHECK(cached - engine_time_with(run.rates, run.prompt_tokens, run.turns, 1).count() ==
          Approx(2 * turns * run.rates.overhead.count() +
                 run.rates.decode.count() * (calls - turns) + tools));
    // Equation 5 reads each token once, and what the last turn adds.
    CHECK(engine_time_without(run.rates, run.prompt_tokens, run.turns).count() - cached ==
          Approx(run.rates.prefill.count() * (saved_prefill - (prompt - run.prompt_tokens)))
              .margin(1e-9));
  }
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(round);
    TurnTimes times{Seconds(draw(random, 0.01, 3)), {}, Seconds(draw(random, 0.01, 3))};
    times.speculation = times.generation * draw(random, 0.001, 0.999);
    CHECK(max_speedup(times) == Approx(speedup(times, 1)));
    CHECK(max_speedup(times) <= max_speedup_bound(times) + 1e-12);
    CHECK(max_speedup_bound(times) < 2);
    const double acceptance = draw(random, 0.001, 0.998);
    CHECK(speedup(times, acceptance) > 1);
    CHECK(speedup(times, acceptance + 0.001) > speedup(times, acceptance));
    CHECK(speedup(times, acceptance) < max_speedup(times));
    times.tool = times.generation - times.speculation;
    CHECK(max_speedup(times) == Approx(max_speedup_bound(times)));
  }
  const TurnTimes close{Seconds(1), Seconds(1e-6), Seconds(1)};
  CHECK(max_speedup(close) == Approx(2).margin(1e-5));
}

TEST_CASE("engine_time functions refuse invalid turns and name the field") {
  const std::vector<AgentTurn> good{{10, 5, 20, Seconds(1)}};
  const EngineRates rates{Seconds(0.01), Seconds(0.001), Seconds(0.01)};
  const auto refused = [](const auto& body, const std::string& where) {
    try {
      (void)body();
    } catch (const Error& error) {
      return error.code() == Errc::invalid_option && error.where() == where;
    }
    return false;
  };
  CHECK(refused([&] { return engine_time_with(rates, 1, good, 1.5); }, "acceptance"));
  CHECK(refused([&] { return engine_time_cached(rates, -1, good); }, "prompt_tokens"));
  CHECK(refused([&] { return engine_time_without({Seconds(-1), {}, {}}, 1, good); }, "overhead"));
  std::vector<AgentTurn> bad = good;
  bad[0].call_tokens         = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused([&] { return engine_time_cached(rates, 1, bad); }, "turns/0/call_tokens"));
  bad         = good;
  bad[0].tool = Seconds(-1);
  CHECK(refused([&] { return engine_time_without(rates, 1, bad); }, "turns/0/tool"));
  bad         = good;
  bad[0].late = Seconds(-1);
  CHECK(refused([&] { return engine_time_with(rates, 1, bad, 0.5); }, "turns/0/late"));
  CHECK(refused([&] { return engine_time_with({.verify = Seconds(-1)}, 1, good, 0.5); }, "verify"));
}
