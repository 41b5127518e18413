// Which parts of the text of earlier calls are the format's delimiters, and which are input.
#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/prompt.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using program::find_delimiters;
using program::TextRange;

namespace {

std::vector<std::string> texts_of(const std::vector<TextRange>& ranges, const std::string& text) {
  std::vector<std::string> all;
  for (const auto& [at, length] : ranges) all.push_back(text.substr(at, length));
  return all;
}

}  // namespace

TEST_CASE("find_delimiters finds every format's delimiters, and none that an argument holds") {
  std::size_t found = 0, hostile = 0;
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const auto ranges_of = [&](const std::string& city, std::string& text) {
      const std::vector calls{ToolCall{"get", {{"city", city}, {"days", 3}}}};
      text = format.write(calls, test::two_tools());
      return find_delimiters(format, test::two_tools(), calls, text);
    };
    std::string plain;
    const auto ranges = ranges_of("Bern", plain);
    const auto marks  = texts_of(ranges, plain);
    found += marks.size();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      CHECK(formats::delimiter_length(marks[i]) == marks[i].size());
      if (i > 0) CHECK(ranges[i].at >= ranges[i - 1].at + ranges[i - 1].length);
    }
    // Each of these within an argument, and one of another format.
    for (std::string mark : marks) {
      mark += "<|im_end|>";
      std::string text;
      std::vector<TextRange> in_text;
      try {
        in_text = ranges_of(mark, text);
      } catch (const Error&) {
        continue;  // the format cannot write such a text
      }
      // What is not found is plain text, as any input.
      CHECK(in_text.size() <= ranges.size());
      const std::size_t held = text.find(mark);
      if (held == std::string::npos) continue;
      ++hostile;
      CHECK(texts_of(in_text, text) == marks);
      for (const auto& [at, length] : in_text) {
        CHECK((at + length <= held || at >= held + mark.size()));
      }
    }
  }
  CHECK(found > 60);
  CHECK(hostile > 30);
}

TEST_CASE("find_delimiters takes no delimiter that a key or a tool's name holds") {
  const NamedFormat& format = format_named("hermes");
  const std::vector calls{ToolCall{"f", {{"<tool_call>", 1}}}};
  const std::string text = format.write(calls);
  CHECK(texts_of(find_delimiters(format, {}, calls, text), text) ==
        std::vector<std::string>{"</tool_call>"});
}
