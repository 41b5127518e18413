#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <program/fair_places.hpp>

namespace program {

FairPlaces::Ticket::Ticket(FairPlaces& places, std::string client, std::size_t held,
                           std::size_t parts)
    : places_(&places), client_(std::move(client)), held_(held), parts_(parts) {}

FairPlaces::Ticket::~Ticket() {
  places_->release(client_, held_, parts_);
}

void FairPlaces::Ticket::end_part() {
  const std::lock_guard lock(mutex_);
  if (parts_ == 0) return;
  --parts_;
  const std::size_t spare = held_ - std::min(held_, parts_);
  held_ -= spare;
  places_->release(client_, spare, 1);
}

FairPlaces::FairPlaces(std::size_t places, std::size_t waiting)
    : places_(places), waiting_(waiting), free_(places) {}

std::shared_ptr<FairPlaces::Ticket> FairPlaces::take(const std::string& client, std::size_t parts,
                                                     const std::function<void()>& watch) {
  std::unique_lock lock(mutex_);
  const std::size_t most = places_ + waiting_;
  const auto present     = present_.find(client);
  const std::size_t own  = present == present_.end() ? 0 : present->second;
  if (parts_ + parts > most || own + parts > (parts == 1 ? most - most / 16 : share_of(most))) {
    return nullptr;
  }
  parts_ += parts;
  parts_waiting_ += parts;
  present_[client] += parts;
  const auto waiter = waiters_.insert(waiters_.end(), {.client = &client,
                                                       .parts  = parts,
                                                       .places = std::min(parts, share_of(places_)),
                                                       .turn   = turn_ + parts});
  grant();
  const auto leave = [&] {
    waiters_.erase(waiter);
    parts_waiting_ -= parts;
  };
  try {
    while (!waiter->granted) {
      if (freed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return waiter->granted; })) {
        break;
      }
      lock.unlock();
      watch();
      lock.lock();
    }
  } catch (...) {
    lock.lock();
    const std::size_t places = waiter->granted ? waiter->places : 0;
    leave();
    lock.unlock();
    release(client, places, parts);
    throw;
  }
  const std::size_t places = waiter->places;
  leave();
  return std::make_shared<Ticket>(*this, client, places, parts);
}

std::size_t FairPlaces::waiting() const {
  const std::lock_guard lock(mutex_);
  return parts_waiting_;
}

void FairPlaces::subtract(std::map<std::string, std::size_t>& counts, const std::string& client,
                          std::size_t count) {
  const auto found = counts.find(client);
  if (found == counts.end()) return;
  found->second -= count;
  if (found->second == 0) counts.erase(found);
}

bool FairPlaces::fits(const Waiter& waiter) const {
  const auto held = held_.find(*waiter.client);
  return (held == held_.end() ? 0 : held->second) + waiter.places <= share_of(places_);
}

// Never skips the next waiter because few places are free: large requests would wait forever.
void FairPlaces::grant() {
  const auto rank = [this](const Waiter& waiter) {
    const auto held = held_.find(*waiter.client);
    return std::pair(held == held_.end() ? std::size_t{0} : held->second, waiter.turn);
  };
  for (;;) {
    auto next = waiters_.end();
    for (auto one = waiters_.begin(); one != waiters_.end(); ++one) {
      if (one->granted || !fits(*one)) continue;
      if (next == waiters_.end() || rank(*one) < rank(*next)) next = one;
    }
    if (next == waiters_.end() || next->places > free_) return;
    next->granted = true;
    free_ -= next->places;
    held_[*next->client] += next->places;
    turn_ = std::max(turn_, next->turn);
    freed_.notify_all();
  }
}

void FairPlaces::release(const std::string& client, std::size_t places, std::size_t parts) {
  const std::lock_guard lock(mutex_);
  free_ += places;
  parts_ -= parts;
  subtract(held_, client, places);
  subtract(present_, client, parts);
  grant();
}

}  // namespace program
