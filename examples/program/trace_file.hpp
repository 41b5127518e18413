/// \file
/// TraceFile: writes a trace as JSON and as an HTML page.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/version.hpp>

#include <program/answer_trace.hpp>
#include <program/command_line.hpp>
#include <program/json.hpp>
#include <program/timeline.hpp>
#include <program/trace_page.hpp>
#include <unistd.h>

namespace program {

/// Adds the option for trace files; `what` says what they contain.
void add_trace_option(Command& sub, std::vector<std::string>& paths, const std::string& what);

/// Collects answers and spans, and writes them into files of both kinds. A file is complete at any
/// time. Without a path it does nothing.
///
/// \par Threads     any number
/// \par Errors      constructor: Error{invalid_option} for a name that ends in neither .html nor
///                  .json; constructor and `write`: Error{file_unreadable} for a file that cannot
///                  be written
class TraceFile {
 public:
  /// \param max_answers  keeps the latest; 0: all
  TraceFile(std::vector<std::string> paths, std::string command, Json about,
            std::size_t max_answers = 0);

  [[nodiscard]] bool is_on() const noexcept { return !paths_.empty(); }

  void add(const AnswerTrace& answer);
  void add(TimelineSpan span);
  void set(const std::string& key, Json value);

  void write() const;

 private:
  // Replaces a file atomically: readers see the old or the new one. A link stays a link.
  static void replace(const std::string& path, const std::string& text);

  static std::string text_of(const Json& trace, int indent);

  // Escapes the text so that it cannot end its HTML element.
  static std::string page_of(const Json& trace);

  [[nodiscard]] Json document() const;

  std::vector<std::string> paths_;
  std::string command_;
  mutable std::mutex mutex_;  // guards the members below
  Json about_;
  std::size_t max_answers_;
  std::deque<std::pair<Json, std::vector<TimelineSpan>>> answers_;
  std::vector<TimelineSpan> spans_;
};

}  // namespace program
