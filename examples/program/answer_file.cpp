#include <algorithm>
#include <cstddef>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/value_reader.hpp>

#include <program/answer_file.hpp>

namespace program {

AnswerFile::AnswerFile(const std::string& path, const Json& settings,
                       std::vector<std::string> methods, bool resumes)
    : methods_(std::move(methods)) {
  if (path.empty()) return;
  std::string kept = settings.text() + '\n';
  if (resumes && std::ifstream(path).good()) kept += read(path, settings);
  file_.open(path, std::ios::binary);
  if (!(file_ << kept << std::flush)) {
    throw tooldecode::Error(tooldecode::Errc::file_unreadable, path, "cannot be written");
  }
}

std::optional<std::vector<Result>> AnswerFile::find(const std::string& row) const {
  const auto known = known_.find(row);
  return known == known_.end() ? std::nullopt : std::optional(known->second.results);
}

void AnswerFile::add(const std::string& row, std::span<const std::string> texts,
                     std::span<const tooldecode::Verdict> verdicts,
                     std::span<const Result> results) {
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
                    {"tokens", results[i].tokens},
                    {"prompt_seconds", results[i].prompt_seconds}};
    lines += line.text() + '\n';
  }
  const std::lock_guard lock(mutex_);
  file_ << lines << std::flush;
}

tooldecode::ErrorClass AnswerFile::class_named(const std::string& name) {
  using enum tooldecode::ErrorClass;
  for (const auto error : {correct, awareness, selection, format, key, value}) {
    if (tooldecode::name(error) == name) return error;
  }
  throw tooldecode::Error(tooldecode::Errc::malformed_document, name, "is no class of errors");
}

std::string AnswerFile::read(const std::string& path, const Json& settings) {
  std::istringstream lines(read_file(path));
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    try {
      const Json entry = tooldecode::text::parse_json(line);
      if (++number > 1) {
        take(entry, line);
      } else if (entry != settings) {
        throw tooldecode::Error(tooldecode::Errc::invalid_option, "--resume",
                                path + " was written with other settings, " + line);
      }
    } catch (const tooldecode::Error& error) {
      if (error.code() != tooldecode::Errc::malformed_json) throw;
      throw tooldecode::Error(tooldecode::Errc::malformed_json, path + ':' + std::to_string(number),
                              error.what());
    }
  }
  std::erase_if(known_, [&](const auto& row) { return row.second.answers != methods_.size(); });
  std::string kept;
  for (const auto& [row, known] : known_) kept += known.lines;
  return kept;
}

void AnswerFile::take(const Json& entry, const std::string& line) {
  const auto number = [&](const char* key) { return entry.at(key).get<double>(); };
  const auto count  = [&](const char* key) { return entry.at(key).get<std::size_t>(); };
  const Result result{class_named(entry.at("class").string()), number("seconds"), count("passes"),
                      count("tokens"), entry.value("prompt_seconds", 0.0)};
  const auto method = std::ranges::find(methods_, entry.at("method").get<std::string>());
  if (method == methods_.end()) return;
  Known& known = known_[entry.at("id").string()];
  known.results.resize(methods_.size());
  known.results[static_cast<std::size_t>(method - methods_.begin())] = result;
  known.lines += line + '\n';
  ++known.answers;
}

}  // namespace program
