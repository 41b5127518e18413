/// \file
/// Rows of evaluation data from any collection: the question and the right answer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/classify.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/formats.hpp>
#include <program/prompt.hpp>

namespace program {

/// One task: a dialogue that ends with the user's turn, and the calls that answer it.
struct Row {
  std::string id;
  std::string group;  ///< part of its collection; results are also given per group
  tooldecode::ToolSet tools{};
  std::vector<Message> messages{};
  tooldecode::ChoiceOptions choice{};
  const Format* format = nullptr;
  std::vector<tooldecode::ExpectedCall> expected{};  ///< empty if no call is right
};

/// Rows that cannot be used, by reason; the first of each is named.
class LeftOut {
 public:
  void add(const std::string& reason, const std::string& id);
  void add(const tooldecode::Error& error, const std::string& id);
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::string report() const;

 private:
  struct Rows {
    std::size_t count = 0;
    std::string first;
  };
  std::map<std::string, Rows> reasons_;
};

/// Appends the rows of a JSONL file, at most `limit` (0: all).
void read_rows(const std::filesystem::path& path, std::size_t limit, std::vector<Row>& rows,
               LeftOut& left_out);

}  // namespace program
