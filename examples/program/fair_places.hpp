/// \file
/// FairPlaces: shares a limited number of places fairly between clients.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace program {

/// Gives places first to the client that holds the fewest. Of one client's requests, small ones
/// come before large ones, unless the large ones arrived much earlier.
///
/// An eighth of the places is reserved for clients other than the one that holds all others, so
/// that an occasional client does not wait for a busy one. The waiting room has the same rule; half
/// of its reserved eighth is for requests with one part, so that they are not turned away when
/// another client at the same address asks for many answers at once.
///
/// \par Complexity  O(waiting requests) per request
/// \par Threads     thread-safe
class FairPlaces {
 public:
  /// Places that a request holds until its end.
  class Ticket {
   public:
    Ticket(FairPlaces& places, std::string client, std::size_t held, std::size_t parts);
    ~Ticket();
    Ticket(const Ticket&)            = delete;
    Ticket& operator=(const Ticket&) = delete;
    void end_part();

   private:
    FairPlaces* places_;
    std::string client_;
    std::size_t held_, parts_;
    std::mutex mutex_;
  };

  /// \param places   available at the same time
  /// \param waiting  most waiting parts of requests
  FairPlaces(std::size_t places, std::size_t waiting);

  /// Waits until a request has a place for each of its parts, or all places that one client may
  /// hold; null if too many wait, or for more parts than `most_parts`.
  /// \param watch  called repeatedly during the wait; an exception ends it
  [[nodiscard]] std::shared_ptr<Ticket> take(const std::string& client, std::size_t parts,
                                             const std::function<void()>& watch);

  [[nodiscard]] std::size_t waiting() const;
  /// The most parts that a request may have: one with more is refused however few wait.
  [[nodiscard]] std::size_t most_parts() const noexcept { return share_of(places_ + waiting_); }

 private:
  struct Waiter {
    const std::string* client;
    std::size_t parts, places;
    std::uint64_t turn;  // the least is next
    bool granted = false;
  };

  static std::size_t share_of(std::size_t count) { return count - count / 8; }
  static void subtract(std::map<std::string, std::size_t>& counts, const std::string& client,
                       std::size_t count);
  [[nodiscard]] bool fits(const Waiter& waiter) const;
  void grant();
  void release(const std::string& client, std::size_t places, std::size_t parts);

  const std::size_t places_, waiting_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable freed_;
  std::list<Waiter> waiters_;
  std::map<std::string, std::size_t> held_;     // places per client
  std::map<std::string, std::size_t> present_;  // unfinished parts per client
  std::size_t free_, parts_ = 0, parts_waiting_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace program
