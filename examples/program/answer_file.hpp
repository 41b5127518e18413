/// \file
/// AnswerFile: each method's answer to each row, for external judges and for resumed runs.
#pragma once

#include <cstddef>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/classify.hpp>

#include <program/files.hpp>
#include <program/json.hpp>
#include <program/scores.hpp>

namespace program {

/// A JSONL file: one line with the settings of the run, then one for each row and method. Without a
/// path it stores nothing.
///
/// \par Threads     any number
/// \par Errors      Error{file_unreadable} if it cannot be written; when resuming,
///                  Error{invalid_option} if it was written with other settings, and
///                  Error{malformed_json} with the line
class AnswerFile {
 public:
  /// \param resumes  keeps rows that all methods have answered; otherwise starts a new file
  AnswerFile(const std::string& path, const Json& settings, std::vector<std::string> methods,
             bool resumes);

  /// The results of a row, [methods], if they were in the file.
  [[nodiscard]] std::optional<std::vector<Result>> find(const std::string& row) const;

  void add(const std::string& row, std::span<const std::string> texts,
           std::span<const tooldecode::Verdict> verdicts, std::span<const Result> results);

 private:
  static tooldecode::ErrorClass class_named(const std::string& name);

  struct Known {
    std::size_t answers = 0;
    std::vector<Result> results{};  // [methods]
    std::string lines{};
  };

  // Reads a file up to a line that was cut short, and returns the lines to keep.
  std::string read(const std::string& path, const Json& settings);
  void take(const Json& entry, const std::string& line);

  std::vector<std::string> methods_;
  std::map<std::string, Known> known_;  // from the resumed file
  std::ofstream file_;
  std::mutex mutex_;
};

}  // namespace program
