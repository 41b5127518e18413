/// \file
/// Timeline: stretches of time on tracks, as Chrome's trace events have them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <program/json.hpp>

namespace program {

/// Something that took time.
struct TimelineSpan {
  using Clock = std::chrono::steady_clock;

  std::string track;     ///< whose
  std::string name;      ///< what
  std::string category;  ///< what kind of thing, by which a viewer colours it
  Clock::time_point begin;
  Clock::time_point end;
  Json args = Json::object();
};

/// Microseconds, as trace events count.
inline double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

/// The spans as trace events: a thread for each track, or several where spans of one track overlap
/// without one holding the other; the first span begins at 0. Perfetto and Chrome read them.
///
/// \par Complexity  O(n log n + n x threads of a track)
inline Json trace_events(const std::string& process, std::vector<TimelineSpan> spans) {
  struct Thread {
    std::string track;
    std::size_t lane;                                        // of the track's threads
    std::vector<TimelineSpan::Clock::time_point> open = {};  // ends, the innermost last
  };
  std::vector<std::string> tracks;  // as they come, not as they begin
  for (const TimelineSpan& span : spans) {
    if (std::ranges::find(tracks, span.track) == tracks.end()) tracks.push_back(span.track);
  }
  std::ranges::stable_sort(spans, [](const TimelineSpan& a, const TimelineSpan& b) {
    return std::tuple(a.begin, b.end) < std::tuple(b.begin, a.end);
  });
  std::vector<Thread> threads;
  Json events = Json::array();
  for (TimelineSpan& span : spans) {
    const auto fits = [&](Thread& thread) {
      if (thread.track != span.track) return false;
      auto& open = thread.open;
      while (!open.empty() && open.back() <= span.begin) open.pop_back();
      return open.empty() || span.end <= open.back();
    };
    auto thread = std::ranges::find_if(threads, fits);
    if (thread == threads.end()) {
      const auto lane =
          static_cast<std::size_t>(std::ranges::count(threads, span.track, &Thread::track));
      threads.push_back({span.track, lane});
      thread = std::prev(threads.end());
    }
    thread->open.push_back(span.end);
    events.push_back({{"ph", "X"},
                      {"name", std::move(span.name)},
                      {"cat", std::move(span.category)},
                      {"pid", 1},
                      {"tid", thread - threads.begin() + 1},
                      {"ts", microseconds(span.begin - spans.front().begin)},
                      {"dur", microseconds(span.end - span.begin)},
                      {"args", std::move(span.args)}});
  }
  const auto name = [&](const char* what, std::size_t thread, Json args) {
    events.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", thread}, {"args", std::move(args)}});
  };
  name("process_name", 0, {{"name", process}});
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const auto& [track, lane, open] = threads[i];
    const auto place                = std::ranges::find(tracks, track) - tracks.begin();
    name("thread_name", i + 1,
         {{"name", lane == 0 ? track : track + " (" + std::to_string(lane + 1) + ')'}});
    name("thread_sort_index", i + 1,
         {{"sort_index", 1000 * place + static_cast<std::ptrdiff_t>(lane)}});
  }
  return events;
}

}  // namespace program
