/// \file
/// ToolSubmitter: submits results to an engine's cache in the background.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// Puts a call's result into the tool cache of the engine that replies to a context; false if the
/// reply came first. It may throw, and should end early when the stop token asks for it.
template <class Context>
using ToolSubmission =
    std::function<bool(const Context&, const ToolCall&, const ToolResult&, std::stop_token)>;

/// Counts of results submitted to an engine's cache.
struct SubmissionCounts {
  std::size_t told   = 0;
  std::size_t errors = 0;
  std::string first_error{};
};

/// Submits results one after another on its own thread, so callers do not wait for the network. A
/// result whose reply has already come is not submitted.
///
/// \par Complexity  put O(1)
/// \par Threads     every member may run concurrently; the destructor stops the current submission,
///                  waits for it, and drops the others
/// \par Errors      none; exceptions of submissions are counted, with their text
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 4, SubmitToolCache
template <class Context>
class ToolSubmitter {
 public:
  struct Delivery {
    std::shared_ptr<const Context> context;
    ToolCall call;
    ToolResult result;
    std::shared_ptr<const std::atomic<bool>> is_over;  ///< the reply has come
  };
  /// The queue of results; its holders may outlive the submitter.
  class DeliveryQueue {
   public:
    void put(Delivery delivery) {
      const std::lock_guard lock(mutex_);
      deliveries_.push_back(std::move(delivery));
      changed_.notify_all();
    }

   private:
    friend class ToolSubmitter;
    std::mutex mutex_;  // guards the members below
    std::condition_variable_any changed_;
    std::deque<Delivery> deliveries_;
    bool is_busy_ = false;
    SubmissionCounts counts_;
  };

  explicit ToolSubmitter(ToolSubmission<Context> submit)
      : submit_(std::move(submit)),
        thread_([this](const std::stop_token& quit) { deliver(quit); }) {}

  [[nodiscard]] const std::shared_ptr<DeliveryQueue>& outbox() const noexcept { return outbox_; }
  /// Counts of submissions so far; waits for the one in progress.
  [[nodiscard]] SubmissionCounts counts() const {
    std::unique_lock lock(outbox_->mutex_);
    outbox_->changed_.wait(lock, [this] { return !outbox_->is_busy_; });
    return outbox_->counts_;
  }

 private:
  void deliver(const std::stop_token& quit) {
    DeliveryQueue& box = *outbox_;
    for (std::unique_lock lock(box.mutex_);;) {
      box.changed_.wait(lock, quit, [&] { return !box.deliveries_.empty(); });
      if (quit.stop_requested()) return;
      const Delivery delivery = std::move(box.deliveries_.front());
      box.deliveries_.pop_front();
      if (*delivery.is_over) continue;
      box.is_busy_ = true;
      lock.unlock();
      std::optional<std::string> error;
      const bool is_told = post(delivery, quit, error);
      lock.lock();
      box.is_busy_             = false;
      SubmissionCounts& counts = box.counts_;
      if (is_told) ++counts.told;
      if (error && counts.errors++ == 0) counts.first_error = *error;
      box.changed_.notify_all();
    }
  }
  bool post(const Delivery& delivery, const std::stop_token& quit,
            std::optional<std::string>& error) const {
    try {
      return submit_(*delivery.context, delivery.call, delivery.result, quit);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    } catch (...) {
      error = "it threw what is no std::exception";
    }
    return false;
  }

  ToolSubmission<Context> submit_;
  std::shared_ptr<DeliveryQueue> outbox_ = std::make_shared<DeliveryQueue>();
  std::jthread thread_;
};

}  // namespace tooldecode
