/// \file
/// TraceFile: what a command did, written as JSON and as a page that shows it.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
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

/// The option for files of a trace; `what` says what they hold.
void add_trace_option(Command& sub, std::vector<std::string>& paths, const std::string& what);

/// Collects answers and spans, and writes them into files of both kinds, each of which is at any time
/// a whole one; without a path it does nothing.
///
/// \par Threads  any number
/// \par Errors   Error{invalid_option} from the constructor for a name that ends in neither .html
///               nor .json, Error{file_unreadable} from it and from `write` for a file that cannot
///               be written
class TraceFile {
 public:
  /// \param max_answers  the latest are kept; 0: all
  TraceFile(std::vector<std::string> paths, std::string command, Json about,
            std::size_t max_answers = 0);

  [[nodiscard]] bool is_on() const noexcept { return !paths_.empty(); }

  void add(const AnswerTrace& answer);
  void add(TimelineSpan span);
  /// Something else that is known.
  void set(const std::string& key, Json value);

  void write() const;

 private:
  // Who reads a file while it is written anew finds the one before, whole. A link stays a link.
  static void replace(const std::string& path, const std::string& text);

  static std::string text_of(const Json& trace, int indent);

  // No text of a trace can end the element that it stands in.
  static std::string page_of(const Json& trace);

  [[nodiscard]] Json document() const;

  std::vector<std::string> paths_;
  std::string command_;
  mutable std::mutex mutex_;  // of what is below
  Json about_;
  std::size_t max_answers_;
  std::deque<std::pair<Json, std::vector<TimelineSpan>>> answers_;
  std::vector<TimelineSpan> spans_;
};

}  // namespace program
