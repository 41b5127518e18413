/// \file
/// What of the tool documents was read otherwise than it is written, as lines.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <tooldecode/tools/tool_set.hpp>

namespace program {

/// A headed line for each note of a set of tools; nothing where there are none.
std::string readings_text(const tooldecode::ToolSet& tools);

/// Counts the notes of many sets of tools by what they say.
class ReadingCounts {
 public:
  void add(const tooldecode::ToolSet& tools);
  /// A headed line for each of the most frequent ones; nothing where there are none.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t shown = 8;

  std::map<std::string, std::size_t> counts_;
};

/// Places of documents, as a JSON array in ASCII, that were not read as JSON Schema has them, but for closed objects;
/// nothing where there are none.
std::string unexpected_readings(const tooldecode::ToolSet& tools);

}  // namespace program
