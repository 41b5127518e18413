/// \file
/// Event simulation of agents that call tools and share one engine: without speculation, with
/// predictions at the client, and with a tool cache in the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <numbers>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/research/performance_model.hpp>

namespace tool_latency {

/// Where calls are predicted.
enum class Policy { none, client, engine };

[[nodiscard]] constexpr std::string_view name(Policy policy) noexcept {
  return policy == Policy::none ? "none" : policy == Policy::client ? "client" : "engine";
}

/// An engine with continuous batching; times in seconds. A step writes one token of each sequence.
struct Engine {
  double step              = 0.006;  ///< a step with an empty batch, as if reading the weights only
  double step_per_sequence = 6e-5;   ///< what each sequence in the batch adds
  double step_per_draft    = 5e-5;   ///< what each running prediction adds: it shares the GPU
  double prefill_rate      = 10'000;  ///< tokens per second
  double chunk_tokens      = 512;     ///< maximum prefill in one step
  double round_trip        = 0.03;    ///< a response to the client and a request back
  double eviction          = 0.005;   ///< leaving the batch and waiting for a place
  double cached_share      = 1;       ///< the share of a context that the prefix cache still holds
};

/// What agents do: sessions of turns; each turn is reasoning, a call and its result.
struct Workload {
  std::size_t agents      = 1;
  std::size_t sessions    = 8;  ///< per agent, one after the other
  std::size_t turns       = 10;
  double prompt_tokens    = 1500;  ///< tool documents and question
  double reasoning_tokens = 160;
  double call_tokens      = 24;
  double result_tokens    = 80;
  double tool             = 1;     ///< seconds
  double spread           = 0.25;  ///< of reasoning and prediction, evenly around their means
  double tool_deviation   = 0.25;  ///< of the tool's normal time, as a share of its mean
};

struct Speculation {
  Policy policy           = Policy::none;
  std::size_t speculators = 1;
  double acceptance       = 0.8;   ///< of each speculator, independently
  double prediction       = 0.25;  ///< seconds until a predicted call is available
  bool is_gated           = false;
};

struct Setup {
  Engine engine{};
  Workload workload{};
  Speculation speculation{};
  std::uint64_t seed = 1;
};

struct Outcome {
  double seconds         = 0;  ///< an agent's time for its sessions, the mean over agents
  double makespan        = 0;  ///< until the last agent finished
  double tokens          = 0;  ///< written by the main model
  std::size_t turns      = 0;
  std::size_t speculated = 0;  ///< turns on which the client speculated
  std::size_t started    = 0;  ///< calls that were predicted and run; equal ones run once
  std::size_t hits       = 0;  ///< turns answered by a predicted call
  std::size_t resident   = 0;  ///< hits without leaving the batch

  [[nodiscard]] double throughput() const { return tokens / makespan; }
  [[nodiscard]] double hit_rate() const {
    return speculated == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(speculated);
  }
  [[nodiscard]] std::size_t wasted() const { return started - hits; }
};

/// The same point in the terms of the performance model, which has one agent and mean times.
[[nodiscard]] inline tooldecode::EngineTimes model_times(const Setup& setup) {
  using tooldecode::Seconds;
  const Workload& work = setup.workload;
  const double written = work.reasoning_tokens + work.call_tokens;
  const double step    = setup.engine.step + setup.engine.step_per_sequence;
  const double growth  = written + work.result_tokens;
  return {
      .turn = {Seconds(written * step), Seconds(setup.speculation.prediction), Seconds(work.tool)},
      .round_trip     = Seconds(setup.engine.round_trip),
      .eviction       = Seconds(setup.engine.eviction),
      .call           = Seconds((work.call_tokens - 1) * step),
      .context_tokens = work.prompt_tokens + growth * static_cast<double>(work.turns - 1) / 2,
      .result_tokens  = work.result_tokens,
      .cached_share   = setup.engine.cached_share,
      .prefill_rate   = setup.engine.prefill_rate};
}

/// The model's expectation for an agent's sessions. It holds under the model's assumptions: one
/// agent, constant times, predictions that do not slow the engine, and a context whose growth has
/// no effect.
[[nodiscard]] inline double expected_seconds(const Setup& setup) {
  const tooldecode::EngineTimes times = model_times(setup);
  const Speculation& speculation      = setup.speculation;
  const std::size_t turns             = setup.workload.turns;
  const double acceptance = tooldecode::any_right(speculation.acceptance, speculation.speculators);
  const tooldecode::Seconds session =
      speculation.policy == Policy::none     ? time_without(turns, client_times(times))
      : speculation.policy == Policy::client ? time_with(turns, client_times(times), acceptance)
                                             : time_with_cache(turns, times, acceptance);
  return session.count() * static_cast<double>(setup.workload.sessions);
}

/// Runs a point. Random draws of a turn depend only on seed, agent and turn. So all policies have
/// the same turns, and equal setups have equal outcomes.
class Simulation {
 public:
  explicit Simulation(const Setup& setup) : setup_(setup), agents_(setup.workload.agents) {}

  [[nodiscard]] Outcome operator()() {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      // Staggered: otherwise they would stay in step for a long time.
      agents_[i].began = draw(i, 0, 0);
      push(agents_[i].began, Kind::start, i);
    }
    while (running_ > 0) step();
    const auto count = static_cast<double>(agents_.size());
    for (const Agent& agent : agents_) {
      outcome_.seconds += (agent.ended - agent.began) / count;
      outcome_.makespan = std::max(outcome_.makespan, agent.ended);
    }
    return outcome_;
  }

 private:
  static constexpr double never           = std::numeric_limits<double>::infinity();
  static constexpr auto tool              = "tool";
  static constexpr std::size_t tool_angle = 64;  // after the draws of the speculators

  enum class Kind {
    start,    // the client sends a turn's request
    arrive,   // the engine receives it
    hear,     // the client learns of the turn, and decides whether to predict its call
    predict,  // the predicted call is available
    cache,    // its result is in the engine's cache
    call      // the main model's call is at the client
  };
  struct Event {
    double time;
    std::uint64_t order;
    Kind kind;
    std::size_t agent, turn;
    bool operator<(const Event& other) const {  // the earliest is on top
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Agent {
    std::size_t turn = 0;  // over all sessions
    double began = 0, ended = 0;
    double context   = 0;  // tokens, without those of this turn
    double prefill   = 0;  // tokens left before the first is written
    double remaining = 0;  // tokens left to write
    double written   = 0;  // tokens of this turn, in total
    double started   = 0;
    double tool = 0, prediction = 0;
    double result      = never;  // when the predicted call's result is at the client
    bool is_predicting = false, is_right = false, is_cached = false;
    tooldecode::Observation seen{};
  };

  [[nodiscard]] double draw(std::size_t agent, std::size_t turn, std::size_t what) const {
    return tooldecode::core::uniform(setup_.seed, agent * 1'000'000 + turn,
                                     static_cast<tooldecode::TokenId>(what));
  }
  [[nodiscard]] double around(double mean, double uniform) const {
    return mean * (1 + setup_.workload.spread * (2 * uniform - 1));
  }
  // A tool's time: normal, as in the paper, and never negative.
  [[nodiscard]] double tool_time(std::size_t agent) const {
    const double radius  = std::sqrt(-2 * std::log(draw(agent, agents_[agent].turn, 2)));
    const double angle   = 2 * std::numbers::pi * draw(agent, agents_[agent].turn, tool_angle);
    const Workload& work = setup_.workload;
    return std::max(0.0, work.tool * (1 + work.tool_deviation * radius * std::cos(angle)));
  }
  void push(double time, Kind kind, std::size_t agent) {
    events_.push({time, order_++, kind, agent, agents_[agent].turn});
  }

  // One step of the engine, or as many equal ones as nothing interrupts, and all events up to its
  // end.
  void step() {
    const Engine& engine = setup_.engine;
    if (decoding_.empty() && prefilling_.empty()) {
      now_ = events_.top().time;
    } else {
      double tokens  = engine.chunk_tokens;
      double seconds = 0;
      double steps   = 1;
      std::vector<std::size_t> joining;
      while (tokens > 0 && !prefilling_.empty()) {
        Agent& agent     = agents_[prefilling_.front()];
        const double now = std::min(tokens, agent.prefill);
        tokens -= now, agent.prefill -= now;
        seconds += now / engine.prefill_rate;
        if (agent.prefill > 0) break;
        joining.push_back(prefilling_.front());
        prefilling_.pop_front();
      }
      if (!decoding_.empty()) {
        const double one = step_time();
        if (seconds == 0 && joining.empty()) {
          steps = never;
          for (const std::size_t i : decoding_) {
            const double left = agents_[i].remaining, call = setup_.workload.call_tokens;
            steps = std::min(steps, left > call ? left - call : left);
          }
          if (!events_.empty()) {
            const double until = std::ceil((events_.top().time - now_) / one);
            steps              = std::min(steps, std::max(1.0, until));
          }
        }
        seconds += steps * one;
        for (const std::size_t i : decoding_) agents_[i].remaining -= steps;
      }
      now_ += seconds;
      decoding_.insert(decoding_.end(), joining.begin(), joining.end());
    }
    while (!events_.empty() && events_.top().time <= now_) {
      const Event event = events_.top();
      events_.pop();
      if (event.turn == agents_[event.agent].turn) handle(event);
    }
    const std::vector<std::size_t> batch = decoding_;
    for (const std::size_t i : batch) look_at(i);
  }

  [[nodiscard]] double step_time() const {
    return setup_.engine.step +
           setup_.engine.step_per_sequence * static_cast<double>(decoding_.size()) +
           setup_.engine.step_per_draft * static_cast<double>(predicting_);
  }

  // A sequence between two steps: at the start of its call, at its end, or neither.
  void look_at(std::size_t i) {
    Agent& agent = agents_[i];
    if (agent.is_cached && agent.remaining == setup_.workload.call_tokens) {
      agent.remaining = 1;  // the cached call is verified as a draft
    }
    if (agent.remaining > 0) return;
    std::erase(decoding_, i);
    outcome_.tokens += agent.written;
    if (!agent.is_cached) return push(now_ + setup_.engine.round_trip / 2, Kind::call, i);
    agent.seen.generation = tooldecode::Seconds(now_ - agent.started);
    ++outcome_.hits, ++outcome_.resident;
    end_turn(i, now_, true);
  }

  void handle(const Event& event) {
    const std::size_t i = event.agent;
    Agent& agent        = agents_[i];
    switch (event.kind) {
      case Kind::start:
        return start_turn(i, event.time, false);
      case Kind::arrive:
        return prefilling_.push_back(i);
      case Kind::hear:
        return decide(i, event.time);
      case Kind::predict:
        return predict(i, event.time);
      case Kind::cache:
        agent.is_cached = true;
        return;
      case Kind::call:
        agent.seen.generation = tooldecode::Seconds(event.time - agent.started);
        if (agent.is_predicting) stop_predicting(agent, event.time);
        outcome_.hits += agent.result < never;
        return end_turn(
            i, agent.result < never ? std::max(event.time, agent.result) : event.time + agent.tool,
            false);
    }
  }

  void start_turn(std::size_t i, double time, bool is_in_batch) {
    const Workload& work = setup_.workload;
    Agent& agent         = agents_[i];
    if (agent.turn % work.turns == 0) agent.context = work.prompt_tokens;
    agent.written =
        std::round(around(work.reasoning_tokens, draw(i, agent.turn, 1))) + work.call_tokens;
    agent.remaining     = agent.written;
    agent.tool          = tool_time(i);
    agent.prediction    = around(setup_.speculation.prediction, draw(i, agent.turn, 3));
    agent.started       = time;
    agent.result        = never;
    agent.is_predicting = agent.is_right = agent.is_cached = false;
    agent.seen                                             = {};
    agent.prefill                                          = work.result_tokens;
    const double way                                       = setup_.engine.round_trip / 2;
    if (is_in_batch) {
      prefilling_.push_back(i);
    } else {
      agent.prefill += (1 - setup_.engine.cached_share) * agent.context;
      push(time + way + setup_.engine.eviction, Kind::arrive, i);
    }
    push(is_in_batch ? time + way : time, Kind::hear, i);
  }

  void decide(std::size_t i, double time) {
    Agent& agent                   = agents_[i];
    const Speculation& speculation = setup_.speculation;
    if (speculation.policy == Policy::none) return;
    if (speculation.is_gated && !gate_.expects_gain(tool)) return;
    ++outcome_.speculated;
    agent.is_predicting = true;
    predicting_ += speculation.speculators;
    agent.seen.overhead = tooldecode::Seconds(delay_of(agent));
    push(time + agent.prediction, Kind::predict, i);
  }

  // The cost of an agent's predictions for all sequences together: each step that they share is
  // longer for each sequence. All agents count, because nearly all are in the batch once their
  // tools are hidden.
  [[nodiscard]] double delay_of(const Agent& agent) const {
    return agent.prediction / step_time() * setup_.engine.step_per_draft *
           static_cast<double>(setup_.speculation.speculators * agents_.size());
  }

  void stop_predicting(Agent& agent, double time) {
    agent.is_predicting = false;
    predicting_ -= setup_.speculation.speculators;
    agent.seen.speculation     = tooldecode::Seconds(time - agent.started);
    agent.seen.predicted_right = agent.is_right;
  }

  void predict(std::size_t i, double time) {
    Agent& agent      = agents_[i];
    std::size_t wrong = 0;
    for (std::size_t s = 0; s < setup_.speculation.speculators; ++s) {
      const bool is_right = draw(i, agent.turn, 4 + s) < setup_.speculation.acceptance;
      agent.is_right |= is_right;
      wrong += !is_right;
    }
    stop_predicting(agent, time);
    outcome_.started += wrong + agent.is_right;
    if (!agent.is_right) return;
    agent.result = time + agent.tool;
    if (setup_.speculation.policy == Policy::engine) {
      push(agent.result + setup_.engine.round_trip / 2, Kind::cache, i);
    }
  }

  void end_turn(std::size_t i, double time, bool is_in_batch) {
    Agent& agent         = agents_[i];
    const Workload& work = setup_.workload;
    if (setup_.speculation.is_gated) {
      agent.seen.tool        = tooldecode::Seconds(agent.tool);
      agent.seen.readmission = saved_in_batch(agent);
      gate_.observe(tool, agent.seen);
    }
    ++outcome_.turns;
    agent.context += agent.written + work.result_tokens;
    ++agent.turn;
    if (agent.turn == work.turns * work.sessions) {
      agent.ended = time;
      --running_;
    } else if (is_in_batch && agent.turn % work.turns == 0) {
      push(time + setup_.engine.round_trip / 2, Kind::start, i);
    } else if (is_in_batch) {
      start_turn(i, time, true);
    } else {
      push(time, Kind::start, i);
    }
  }

  // What the turn would save if a result is in the engine's cache when its call ends.
  [[nodiscard]] std::optional<tooldecode::Seconds> saved_in_batch(const Agent& agent) const {
    const Engine& engine = setup_.engine;
    if (setup_.speculation.policy != Policy::engine) return std::nullopt;
    return tooldecode::Seconds(engine.round_trip + engine.eviction +
                               (1 - engine.cached_share) * agent.context / engine.prefill_rate +
                               (setup_.workload.call_tokens - 1) * step_time());
  }

  Setup setup_;
  tooldecode::SpeculationGate gate_{};
  std::vector<Agent> agents_;
  std::size_t running_ = agents_.size();
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  double now_          = 0;
  std::vector<std::size_t> decoding_;
  std::deque<std::size_t> prefilling_;
  std::size_t predicting_ = 0;
  Outcome outcome_{};
};

[[nodiscard]] inline Outcome simulate(const Setup& setup) {
  return Simulation(setup)();
}

}  // namespace tool_latency
