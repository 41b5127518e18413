/// \file
/// Timeline: spans of time on tracks, as Chrome's trace events.
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

struct TimelineSpan {
  using Clock = std::chrono::steady_clock;

  std::string track;
  std::string name;
  std::string category;  ///< the viewer's colour depends on it
  Clock::time_point begin;
  Clock::time_point end;
  Json args = Json::object();
};

/// Converts to microseconds, the unit of trace events.
inline double microseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

/// The spans as trace events for Perfetto and Chrome. Each track is a thread, or several if its
/// spans overlap without nesting. The first span begins at 0.
///
/// \par Complexity  O(n log n + n x threads of a track)
inline Json trace_events(const std::string& process, std::vector<TimelineSpan> spans) {
  struct Thread {
    std::string track;
    std::size_t lane;                                        // index among the track's threads
    std::vector<TimelineSpan::Clock::time_point> open = {};  // ends, innermost last
  };
  std::vector<std::string> tracks;  // in order of appearance
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
