/// \file
/// AnswerFile: what each method wrote to each row, for other judges, and for a run that goes on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/classify.hpp>

#include <program/files.hpp>
#include <program/json.hpp>
#include <program/scores.hpp>

namespace program {

/// A JSONL file: a line for the settings of the run, then one for each row and method. Without a
/// path it keeps nothing.
///
/// \par Threads  any number
/// \par Errors   Error{file_unreadable} where it cannot be written; to go on, Error{invalid_option}
///               where it was written with other settings, Error{malformed_json} with the line
class AnswerFile {
 public:
  /// \param resumes  keep what is there of rows that all methods have answered; else begin anew
  AnswerFile(const std::string& path, const Json& settings, std::vector<std::string> methods,
             bool resumes);

  /// What all methods made of a row, [methods], where that was in the file.
  [[nodiscard]] std::optional<std::vector<Result>> find(const std::string& row) const;

  /// One row's answers, [methods].
  void add(const std::string& row, std::span<const std::string> texts,
           std::span<const tooldecode::Verdict> verdicts, std::span<const Result> results);

 private:
  static tooldecode::ErrorClass class_named(const std::string& name);

  // One row as the file has it.
  struct Known {
    std::size_t answers = 0;
    std::vector<Result> results{};  // [methods]
    std::string lines{};
  };

  // Takes in what a file has, up to a line that was cut short, and returns the lines that stay.
  std::string read(const std::string& path, const Json& settings);
  void take(const Json& entry, const std::string& line);

  std::vector<std::string> methods_;
  std::map<std::string, Known> known_;  // of the file that is gone on with
  std::ofstream file_;
  std::mutex mutex_;
};

}  // namespace program
