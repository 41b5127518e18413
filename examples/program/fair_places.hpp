/// \file
/// FairPlaces: places that clients wait for, each its fair share.
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

/// Gives out places: to the client that holds the fewest first, and of one client's requests to
/// those that ask for few before those that ask for many at once, unless these came much earlier.
///
/// An eighth of the places is kept for clients other than the one that holds all others, so that a
/// client that asks seldom need not wait for one that asks always. It is the same with those that
/// wait, where half of that eighth is for requests of one part: who shares an address with one that
/// asks for many answers at once is not told to come again.
///
/// \par Complexity  O(requests that wait) per request
/// \par Threads     safe
class FairPlaces {
 public:
  /// Places that a request holds until its end.
  class Ticket {
   public:
    Ticket(FairPlaces& places, std::string client, std::size_t held, std::size_t parts);
    ~Ticket();
    Ticket(const Ticket&)            = delete;
    Ticket& operator=(const Ticket&) = delete;
    /// One of the request's parts needs no place any more.
    void end_part();

   private:
    FairPlaces* places_;
    std::string client_;
    std::size_t held_, parts_;
    std::mutex mutex_;
  };

  /// \param places   that are held at once
  /// \param waiting  parts of requests that wait at most
  FairPlaces(std::size_t places, std::size_t waiting);

  /// Waits until a request of so many parts has a place for each, or all that one client may hold;
  /// null where too many wait.
  /// \param watch  called again and again while it waits; what it throws ends the wait
  [[nodiscard]] std::shared_ptr<Ticket> take(const std::string& client, std::size_t parts,
                                             const std::function<void()>& watch);

  /// Parts of requests that wait.
  [[nodiscard]] std::size_t waiting() const;

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
  mutable std::mutex mutex_;  // of what is below
  std::condition_variable freed_;
  std::list<Waiter> waiters_;
  std::map<std::string, std::size_t> held_;     // places, by each client
  std::map<std::string, std::size_t> present_;  // parts of each that have not ended
  std::size_t free_, parts_ = 0, parts_waiting_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace program
