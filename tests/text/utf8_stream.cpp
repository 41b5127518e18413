#include <string>
#include <string_view>

#include <tooldecode/text/utf8_stream.hpp>

#include <support/catch.hpp>

using tooldecode::text::Utf8Stream;

namespace {

std::string in_pieces(std::string_view bytes, std::size_t size) {
  Utf8Stream stream;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += size) text += stream.push(bytes.substr(i, size));
  return text + stream.finish();
}

}  // namespace

TEST_CASE("Utf8Stream returns whole characters and replaces invalid bytes by U+FFFD") {
  const std::string replaced                        = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"aé€😀", "aé€😀"},
      {"a\xFF"
       "b",
       "a" + replaced + "b"},
      {"\xE2\x82", replaced + replaced},
      {"\xC0\x80", replaced + replaced},
      {"\xED\xA0\x80", replaced + replaced + replaced},
      {"\xF0\x9F\x98", replaced + replaced + replaced}};
  for (const auto& [bytes, text] : cases) {
    CAPTURE(bytes);
    for (std::size_t size = 1; size <= 5; ++size) CHECK(in_pieces(bytes, size) == text);
  }
  Utf8Stream stream;
  CHECK(stream.push("\xE2").empty());
  CHECK(stream.push("\x82").empty());
  CHECK(stream.push("\xAC") == "€");
}
