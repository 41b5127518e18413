#pragma once

#include <exception>

#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/tools/call_key.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE void ToolTask::finish(ToolResult value) {
  is_done = true;
  if (begin) time = Clock::now() - *begin;
  promise.set_value(std::move(value));
}

TOOLDECODE_INLINE ToolPool::Task ToolPool::start(ToolCall call, std::string key, Mode mode) {
  auto task = std::make_shared<ToolTask>(ToolTask{std::move(call), std::move(key)});
  const std::lock_guard lock(mutex_);
  if (mode == Mode::concurrent) {  // with a key that no other call has
    task->key += '\n' + std::to_string(++concurrent_);
    mode = Mode::unshared;
  }
  if (mode != Mode::unshared) {
    if (const auto equal = joinable_.find(task->key); equal != joinable_.end()) {
      ++equal->second->holders;
      return equal->second;
    }
  }
  const std::size_t taken = queue_.size() + inside_.size();
  if (mode == Mode::speculative && (taken + 1 >= options_.threads || inside_.contains(task->key))) {
    return nullptr;
  }
  if (taken >= options_.threads + options_.queue_limit) {
    task->finish({ToolStatus::failed, "too many tool calls are waiting"});
    return task;
  }
  const auto own = options_.tool_timeouts.find(task->call.name);
  task->timeout  = own == options_.tool_timeouts.end() ? options_.timeout : own->second;
  task->deadline = deadline(*task);
  if (mode != Mode::unshared) joinable_.emplace(task->key, task);
  queue_.push_back(task);
  live_.push_back(task);
  work_.notify_one();
  timer_.notify_one();
  return task;
}

TOOLDECODE_INLINE void ToolPool::release(const Task& task) {
  std::unique_lock lock(mutex_);
  if (--task->holders > 0) return;
  if (!settle(task, {ToolStatus::cancelled, "the call was cancelled"})) return;
  lock.unlock();
  task->stop.request_stop();
  tell(task);
}

TOOLDECODE_INLINE void ToolPool::listen(const Task& task,
                                        std::function<void(const ToolResult&)> listener) {
  {
    const std::lock_guard lock(mutex_);
    if (!task->is_done) return task->listeners.push_back(std::move(listener));
  }
  listener(task->result.get());
}

TOOLDECODE_INLINE bool ToolPool::wait(const Task& task, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  return done_.wait(lock, std::move(stop), [&] { return task->is_done; });
}

TOOLDECODE_INLINE void ToolPool::work() {
  for (std::unique_lock lock(mutex_);;) {
    work_.wait(lock, [&] { return closing_ || next() != queue_.end(); });
    if (closing_) return;
    const auto place = next();
    const Task task  = *place;
    queue_.erase(place);
    inside_.insert(task->key);
    task->begin    = Clock::now();
    task->deadline = deadline(*task);
    lock.unlock();
    run(task);
    lock.lock();
  }
}

TOOLDECODE_INLINE void ToolPool::watch() {
  for (std::unique_lock lock(mutex_); !closing_;) {
    const auto now = Clock::now();
    auto next      = Clock::time_point::max();
    std::vector<Task> late;
    for (const Task& task : live_) {
      if (task->deadline <= now) {
        late.push_back(task);
      } else {
        next = std::min(next, task->deadline);
      }
    }
    for (const Task& task : late) {
      settle(task, {ToolStatus::timed_out,
                    "no result within " + std::to_string(task->timeout.count()) + " ms"});
    }
    if (!late.empty()) {
      lock.unlock();
      for (const Task& task : late) task->stop.request_stop(), tell(task);
      lock.lock();
    } else if (next == Clock::time_point::max()) {
      timer_.wait(lock);
    } else {
      timer_.wait_until(lock, next);
    }
  }
}

TOOLDECODE_INLINE void ToolPool::close() {
  std::unique_lock lock(mutex_);
  closing_        = true;
  const auto live = live_;
  for (const Task& task : live) {
    settle(task, {ToolStatus::cancelled, "the executor was closed"});
  }
  work_.notify_all();
  timer_.notify_all();
  lock.unlock();
  for (const Task& task : live) task->stop.request_stop(), tell(task);
}

TOOLDECODE_INLINE ToolPool::Ticket::~Ticket() {
  leave({ToolStatus::failed, "the tool gave no result"});
}

TOOLDECODE_INLINE void ToolPool::Ticket::leave(ToolResult result) const {
  if (const auto alive = pool.lock()) alive->leave(task, std::move(result));
}

TOOLDECODE_INLINE ToolPool::Clock::time_point ToolPool::deadline(const ToolTask& task) {
  const auto now = Clock::now();
  const auto max =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now);
  return task.timeout < max ? now + task.timeout : Clock::time_point::max();
}

TOOLDECODE_INLINE std::deque<ToolPool::Task>::iterator ToolPool::next() {
  if (inside_.size() >= options_.threads) return queue_.end();
  return std::find_if(queue_.begin(), queue_.end(),
                      [&](const Task& task) { return !inside_.contains(task->key); });
}

TOOLDECODE_INLINE void ToolPool::run(const Task& task) {
  const auto ticket = std::make_shared<Ticket>(weak_from_this(), task);
  const auto done   = [ticket](ToolResult result) { ticket->leave(std::move(result)); };
  try {
    runtime_(task->call, task->stop.get_token(), done);
  } catch (const std::exception& error) {
    done({ToolStatus::failed, error.what()});
  } catch (...) {
    done({ToolStatus::failed, "the tool threw what is no std::exception"});
  }
}

TOOLDECODE_INLINE void ToolPool::leave(const Task& task, ToolResult result) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(task->has_left, true)) return;
    settle(task, std::move(result));
    inside_.erase(task->key);
    work_.notify_all();
  }
  tell(task);
}

TOOLDECODE_INLINE void ToolPool::tell(const Task& task) {
  std::vector<std::function<void(const ToolResult&)>> listeners;
  {
    const std::lock_guard lock(mutex_);
    listeners.swap(task->listeners);
  }
  for (const auto& listener : listeners) listener(task->result.get());
}

TOOLDECODE_INLINE bool ToolPool::settle(const Task& task, ToolResult result) {
  if (task->is_done) return false;
  std::erase(live_, task);
  std::erase(queue_, task);
  const auto shared = joinable_.find(task->key);
  if (shared != joinable_.end() && shared->second == task) joinable_.erase(shared);
  task->finish(std::move(result));
  done_.notify_all();
  return true;
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE Execution& Execution::operator=(Execution&& other) noexcept {
  if (this != &other) {
    release();
    task_ = std::move(other.task_);
    pool_ = std::move(other.pool_);
  }
  return *this;
}

TOOLDECODE_INLINE Execution::~Execution() {
  release();
}

TOOLDECODE_INLINE bool Execution::is_done() const {
  return task_->result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

TOOLDECODE_INLINE std::chrono::steady_clock::duration Execution::time() const {
  return is_done() ? task_->time : std::chrono::steady_clock::duration::zero();
}

TOOLDECODE_INLINE std::optional<std::chrono::steady_clock::time_point> Execution::begin() const {
  return is_done() ? task_->begin : std::nullopt;
}

TOOLDECODE_INLINE void Execution::on_result(std::function<void(const ToolResult&)> listener) const {
  if (const auto pool = pool_.lock()) return pool->listen(task_, std::move(listener));
  if (is_done()) listener(task_->result.get());
}

TOOLDECODE_INLINE ToolResult Execution::get(std::stop_token stop) {
  const auto pool = pool_.lock();
  if (pool ? !pool->wait(task_, std::move(stop)) : !is_done()) {
    release();
    return {ToolStatus::cancelled, "the call was not waited for"};
  }
  return task_->result.get();
}

TOOLDECODE_INLINE void Execution::release() noexcept {
  if (const auto pool = pool_.lock()) pool->release(task_);
  pool_.reset();
}

TOOLDECODE_INLINE Execution ToolExecutor::start(const ToolCall& call) {
  return *begin(call, detail::ToolPool::Mode::shared);
}

TOOLDECODE_INLINE Execution ToolExecutor::start_unshared(const ToolCall& call) {
  return *begin(call, detail::ToolPool::Mode::unshared);
}

TOOLDECODE_INLINE Execution ToolExecutor::start_concurrent(const ToolCall& call) {
  return *begin(call, detail::ToolPool::Mode::concurrent);
}

TOOLDECODE_INLINE std::optional<Execution> ToolExecutor::try_start(const ToolCall& call) {
  return begin(call, detail::ToolPool::Mode::speculative);
}

TOOLDECODE_INLINE std::string ToolExecutor::key(const ToolCall& call) const {
  const auto found = tools_.find(call.name);
  return call_key(call, found ? &tools_[*found] : nullptr);
}

TOOLDECODE_INLINE ToolExecutor::Closer::~Closer() {
  pool.close();
}

TOOLDECODE_INLINE std::optional<Execution> ToolExecutor::begin(const ToolCall& call,
                                                               detail::ToolPool::Mode mode) {
  detail::ToolPool::Task task;
  try {
    task = pool_->start(call, key(call), mode);
  } catch (const Error& error) {
    task = std::make_shared<detail::ToolTask>(detail::ToolTask{call});
    task->finish({ToolStatus::failed, error.what()});
  }
  if (!task) return std::nullopt;
  return Execution(std::move(task), pool_);
}

}  // namespace tooldecode
