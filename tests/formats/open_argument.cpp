#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/open_argument.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using formats::OpenArgument;
using Language = text::ValueReader::Language;

namespace {

// What each byte of a literal gives.
std::vector<std::string> pieces(std::string_view literal, Language language) {
  std::vector<std::string> all;
  OpenArgument open;
  for (std::size_t size = 1; size <= literal.size(); ++size) {
    all.push_back(open.quoted(literal.substr(0, size), language));
  }
  return all;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

}  // namespace

TEST_CASE("OpenArgument::held_back finds the longest beginning of a delimiter at the end") {
  const std::string ends[] = {"</p>", "\n</p>"};
  CHECK(OpenArgument::held_back("a", ends) == 0);
  CHECK(OpenArgument::held_back("a<", ends) == 1);
  CHECK(OpenArgument::held_back("a\n</", ends) == 3);
  CHECK(OpenArgument::held_back("a\n\n", ends) == 1);
  CHECK(OpenArgument::held_back("</p", ends) == 3);
}

TEST_CASE("OpenArgument::plain gives whole characters and holds delimiters back") {
  const std::string ends[] = {"</p>"};
  OpenArgument open;
  CHECK(open.plain("=", 1, ends).empty());
  CHECK(open.plain("=O", 1, ends) == "\"O");
  CHECK(open.plain("=O\"\n", 1, ends) == "\\\"\\n");
  CHECK(open.plain("=O\"\n\xe2\x82", 1, ends).empty());
  CHECK(open.plain("=O\"\n\xe2\x82\xac</", 1, ends) == "\xe2\x82\xac");
  CHECK(open.plain("=O\"\n\xe2\x82\xac</b", 1, ends) == "</b");
}

TEST_CASE("OpenArgument::quoted joins to the beginning of the value's JSON text") {
  for (const std::string_view literal :
       {R"('Oslo')", R"("it's")", R"('it\'s \\ \x41\u20ac\U0001F600\n\101\1')", "'\xe2\x82\xac'",
        R"('')", R"('"')", R"('\u00e9')"}) {
    const std::string all = text::write_json(
        text::ValueReader(literal, Language::python, Errc::malformed_call).value());
    const std::string given = joined(pieces(literal, Language::python));
    INFO(literal);
    CHECK(all.starts_with(given));
    CHECK(given.size() + 1 >= all.size() - (literal.ends_with(R"(\1')") ? 6 : 0));
  }
  for (const std::string_view literal : {R"("a\"b\/\ud83d\ude00 \u00e9")", R"("")", R"("\\")"}) {
    const std::string all = text::write_json(text::parse_json(literal));
    CHECK(joined(pieces(literal, Language::json)) + '"' == all);
  }
}

TEST_CASE("OpenArgument::quoted gives each character when it is complete, and other values never") {
  CHECK(pieces(R"('a\nb')", Language::python) ==
        std::vector<std::string>{"\"", "a", "", "\\n", "b", ""});
  for (const std::string_view literal : {"12", "true", "[\"a\"]", "{'a': 'b'}", "'a'"}) {
    CHECK(joined(pieces(literal, Language::json)).empty());
  }
}
