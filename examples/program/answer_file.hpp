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
#include <tooldecode/tools/classify.hpp>

#include <nlohmann/json.hpp>
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
             bool resumes)
      : methods_(std::move(methods)) {
    if (path.empty()) return;
    std::string kept = settings.dump() + '\n';
    if (resumes && std::ifstream(path).good()) kept += read(path, settings);
    file_.open(path, std::ios::binary);
    if (!(file_ << kept << std::flush)) {
      throw tooldecode::Error(tooldecode::Errc::file_unreadable, path, "cannot be written");
    }
  }

  /// What all methods made of a row, [methods], where that was in the file.
  [[nodiscard]] std::optional<std::vector<Result>> find(const std::string& row) const {
    const auto known = known_.find(row);
    return known == known_.end() ? std::nullopt : std::optional(known->second.results);
  }

  /// One row's answers, [methods].
  void add(const std::string& row, std::span<const std::string> texts,
           std::span<const tooldecode::Verdict> verdicts, std::span<const Result> results) {
    if (!file_.is_open()) return;
    std::string lines;
    for (std::size_t i = 0; i < methods_.size(); ++i) {
      const Json line{{"id", row},
                      {"method", methods_[i]},
                      {"text", texts[i]},
                      {"class", tooldecode::name(verdicts[i].error)},
                      {"difference", verdicts[i].difference},
                      {"seconds", results[i].seconds},
                      {"passes", results[i].passes},
                      {"tokens", results[i].tokens}};
      lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
    }
    const std::lock_guard lock(mutex_);
    file_ << lines << std::flush;
  }

 private:
  static tooldecode::ErrorClass class_named(const std::string& name) {
    using enum tooldecode::ErrorClass;
    for (const auto error : {correct, awareness, selection, format, key, value}) {
      if (tooldecode::name(error) == name) return error;
    }
    throw tooldecode::Error(tooldecode::Errc::malformed_document, name, "is no class of errors");
  }

  // One row as the file has it.
  struct Known {
    std::size_t answers = 0;
    std::vector<Result> results{};  // [methods]
    std::string lines{};
  };

  // Takes in what a file has, up to a line that was cut short, and returns the lines that stay.
  std::string read(const std::string& path, const Json& settings) {
    std::istringstream lines(read_file(path));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      try {
        const Json entry = Json::parse(line);
        if (++number > 1) {
          take(entry, line);
        } else if (entry != settings) {
          throw tooldecode::Error(tooldecode::Errc::invalid_option, "--resume",
                                  path + " was written with other settings, " + line);
        }
      } catch (const nlohmann::json::exception& error) {
        throw tooldecode::Error(tooldecode::Errc::malformed_json,
                                path + ':' + std::to_string(number), error.what());
      }
    }
    std::erase_if(known_, [&](const auto& row) { return row.second.answers != methods_.size(); });
    std::string kept;
    for (const auto& [row, known] : known_) kept += known.lines;
    return kept;
  }
  void take(const Json& entry, const std::string& line) {
    const Result result{class_named(entry.at("class")), entry.at("seconds"), entry.at("passes"),
                        entry.at("tokens")};
    const auto method = std::ranges::find(methods_, entry.at("method").get<std::string>());
    if (method == methods_.end()) return;
    Known& known = known_[entry.at("id")];
    known.results.resize(methods_.size());
    known.results[static_cast<std::size_t>(method - methods_.begin())] = result;
    known.lines += line + '\n';
    ++known.answers;
  }

  std::vector<std::string> methods_;
  std::map<std::string, Known> known_;  // of the file that is gone on with
  std::ofstream file_;
  std::mutex mutex_;
};

}  // namespace program
