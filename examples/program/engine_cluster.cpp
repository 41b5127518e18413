#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/engine_cluster.hpp>

namespace program {

EngineCluster::EngineCluster(std::vector<ChatClient> engines, std::string session,
                             const RetryOptions& options)
    : engines_(engines.begin(), engines.end()),
      session_(std::move(session)),
      options_(options),
      order_(engines_.size()) {
  if (engines_.empty()) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "engines", "must be one or more");
  }
  std::vector<std::uint64_t> weights;
  for (const Engine& engine : engines_) weights.push_back(weight(engine.client.url(), session_));
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
}

ChatReply EngineCluster::complete(const Json& request, const std::stop_token& stop) {
  return ask([&](const ChatClient& client,
                 std::size_t) { return client.complete(request, stop, session_); },
             stop);
}

ChatReply EngineCluster::follow(const Json& request, const StreamListener& listener,
                                const std::stop_token& stop) {
  const std::string& name = request.at("response_id").string();
  const Under under(*this, name);
  return ask(
      [&](const ChatClient& client, std::size_t attempt) {
        Json body = request;
        // A broken request may still be running there.
        if (attempt > 0) body["response_id"] = name + ".r" + std::to_string(attempt);
        StreamListener own = listener;
        own.on_id          = [&](const std::string& id) {
          begin_response(client, id, stop);
          if (listener.on_id) listener.on_id(id);
        };
        return client.follow(std::move(body), own, stop, session_);
      },
      stop);
}

bool EngineCluster::cache_output(const std::string& name, const tooldecode::ToolCall& call,
                                 const std::string& output, double keep_alive,
                                 const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (response_.name != name) return false;
  const std::size_t index = response_.outputs.size();
  response_.outputs.push_back({call, output, keep_alive});
  changed_.wait(lock, stop, [&] { return response_.name != name || response_.client; });
  if (response_.name != name || !response_.client) return false;
  const ChatClient& client         = *response_.client;
  const std::string id             = response_.id;
  response_.outputs[index].is_told = true;
  lock.unlock();
  tell(client, id, call, output, keep_alive, stop);
  return true;
}

ClusterCounts EngineCluster::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

EngineCluster::Under::Under(EngineCluster& in, std::string name) : cluster(in) {
  set({.name = std::move(name)});
}

EngineCluster::Under::~Under() {
  set({});
}

void EngineCluster::Under::set(Response response) const {
  const std::lock_guard lock(cluster.mutex_);
  cluster.response_ = std::move(response);
  cluster.changed_.notify_all();
}

std::uint64_t EngineCluster::weight(std::string_view url, std::string_view session) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add     = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const char c : url) add(static_cast<unsigned char>(c));
  add(0);
  for (const char c : session) add(static_cast<unsigned char>(c));
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

std::size_t EngineCluster::choose(const std::stop_token& stop) {
  for (;;) {
    const auto now = Clock::now();
    auto soonest   = Clock::time_point::max();
    for (const std::size_t number : order_) {
      if (engines_[number].until <= now || stop.stop_requested()) return number;
      soonest = std::min(soonest, engines_[number].until);
    }
    std::mutex alone;
    std::unique_lock lock(alone);
    std::condition_variable_any never;
    never.wait_until(lock, stop, soonest, [] { return false; });
  }
}

void EngineCluster::leave_alone(Engine& engine, const EngineError& error) {
  double seconds = options_.backoff;
  for (std::size_t i = 0; i < engine.failures && seconds < options_.max_backoff; ++i) {
    seconds *= 2;
  }
  ++engine.failures;
  seconds      = std::max(std::min(seconds, options_.max_backoff),
                          std::min(error.retry_after(), options_.max_retry_after));
  engine.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(seconds));
  const std::lock_guard lock(mutex_);
  response_.client = nullptr;
}

void EngineCluster::begin_response(const ChatClient& client, const std::string& id,
                                   const std::stop_token& stop) {
  std::vector<Output> again;
  {
    const std::lock_guard lock(mutex_);
    response_.client = &client;
    response_.id     = id;
    for (const Output& output : response_.outputs) {
      if (output.is_told) again.push_back(output);  // another thread sends the others
    }
    changed_.notify_all();
  }
  for (const Output& output : again) {
    try {
      tell(client, id, output.call, output.text, output.keep_alive, stop);
      count([](ClusterCounts& counts) { ++counts.retold; });
    } catch (const EngineError& error) {  // the engine asks for outputs that it does not have
      count([&](ClusterCounts& counts) {
        if (counts.first_failure.empty()) counts.first_failure = error.what();
      });
    }
  }
}

void EngineCluster::tell(const ChatClient& client, const std::string& id,
                         const tooldecode::ToolCall& call, const std::string& output,
                         double keep_alive, const std::stop_token& stop) {
  const auto engine = std::find_if(engines_.begin(), engines_.end(),
                                   [&](const Engine& known) { return &known.client == &client; });
  {
    const std::lock_guard lock(mutex_);
    if (!engine->has_cache) throw EngineError(client.url() + ": has no tool cache", 404);
  }
  try {
    client.cache_output(id, call, output, keep_alive, stop, session_);
  } catch (const EngineError& error) {
    if (error.status() == 404 || error.status() == 405 || error.status() == 501) {
      const std::lock_guard lock(mutex_);
      engine->has_cache = false;
    }
    throw;
  }
}

}  // namespace program
