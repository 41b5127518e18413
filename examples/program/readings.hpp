/// \file
/// Reports tool documents that were read differently from JSON Schema.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <tooldecode/tools/tool_set.hpp>

namespace program {

/// One line for each note of a tool set, with a heading; empty if there are none.
std::string readings_text(const tooldecode::ToolSet& tools);

/// Counts the notes of many tool sets by text.
class ReadingCounts {
 public:
  void add(const tooldecode::ToolSet& tools);
  /// The most frequent notes, one per line, with a heading; empty if there are none.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t shown = 8;

  std::map<std::string, std::size_t> counts_;
};

/// Places in documents that were not read as JSON Schema says, except closed objects, as a JSON
/// array in ASCII; empty if there are none.
std::string unexpected_readings(const tooldecode::ToolSet& tools);

}  // namespace program
