#include <cstddef>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <program/trace_file.hpp>
#include <unistd.h>

namespace program {

void add_trace_option(Command& sub, std::vector<std::string>& paths, const std::string& what) {
  sub.option("--trace", paths,
             "write " + what +
                 " to this file: a page for a browser where it ends in .html, JSON that "
                 "Perfetto opens too where it ends in .json; once for each")
      .one_at_a_time();
}

TraceFile::TraceFile(std::vector<std::string> paths, std::string command, Json about,
                     std::size_t max_answers)
    : paths_(std::move(paths)),
      command_(std::move(command)),
      about_(std::move(about)),
      max_answers_(max_answers) {
  for (const std::string& path : paths_) {
    if (!path.ends_with(".html") && !path.ends_with(".json")) {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, "--trace",
                              path + ": must end in .html or .json");
    }
  }
  if (!paths_.empty()) write();  // fail before the work
}

void TraceFile::add(const AnswerTrace& answer) {
  const std::lock_guard lock(mutex_);
  answers_.emplace_back(answer.json(), answer.spans());
  if (max_answers_ != 0 && answers_.size() > max_answers_) answers_.pop_front();
}

void TraceFile::add(TimelineSpan span) {
  const std::lock_guard lock(mutex_);
  spans_.push_back(std::move(span));
}

void TraceFile::set(const std::string& key, Json value) {
  const std::lock_guard lock(mutex_);
  about_[key] = std::move(value);
}

void TraceFile::write() const {
  const std::lock_guard lock(mutex_);
  const Json trace = document();
  for (const std::string& path : paths_) {
    replace(path, path.ends_with(".html") ? page_of(trace) : text_of(trace, 1) + '\n');
  }
}

void TraceFile::replace(const std::string& path, const std::string& text) {
  std::error_code error, ignored;
  const auto place = std::filesystem::weakly_canonical(path, error);
  auto partial     = place;
  partial += ".partial-" + std::to_string(getpid());
  if (!error) {
    std::ofstream file(partial, std::ios::binary);
    file << text;
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(partial, place, error);
  if (error) {
    std::filesystem::remove(partial, ignored);
    throw tooldecode::Error(tooldecode::Errc::file_unreadable, path, "cannot be written");
  }
}

std::string TraceFile::text_of(const Json& trace, int indent) {
  return trace.text({.indent = indent});
}

std::string TraceFile::page_of(const Json& trace) {
  constexpr std::string_view begin = "<script type=\"application/json\" id=\"trace\">";
  const std::string_view page      = trace_page;
  const std::size_t place          = page.find(begin) + begin.size();
  std::string text(page.substr(0, place));
  for (const char c : text_of(trace, -1)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text.append(page.substr(page.find("</script>", place)));
}

Json TraceFile::document() const {
  Json result{
      {"version", 1}, {"command", command_}, {"tooldecode", std::string(tooldecode::version)}};
  result.update(about_);
  Json answers                    = Json::array();
  std::vector<TimelineSpan> spans = spans_;
  for (const auto& [answer, own] : answers_) {
    answers.push_back(answer);
    spans.insert(spans.end(), own.begin(), own.end());
  }
  result["answers"]         = std::move(answers);
  result["displayTimeUnit"] = "ms";
  result["traceEvents"]     = trace_events("tooldecode " + command_, std::move(spans));
  return result;
}

}  // namespace program
