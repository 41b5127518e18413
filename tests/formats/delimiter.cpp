#include <algorithm>
#include <string>
#include <vector>

#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/grammar/automaton.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::formats;

namespace {

using test::accepts;

}  // namespace

TEST_CASE("delimiter_length measures text in angle brackets or capitals in square brackets") {
  for (const char* whole : {"<tool_call>", "</s>", "<|python_tag|>", "<｜tool▁calls▁begin｜>",
                            "[TOOL_CALLS]", "[ARGS]", "<T>", "[/THINK]"}) {
    CHECK(formats::delimiter_length(std::string(whole) + "><]") == std::string_view(whole).size());
  }
  for (const char* none : {"", "<", "<>", "</>", "[/]", "[]", "a<b>", "<a b>", "<<a>",
                           "<function=", "[", "[1]", "[f(a=1)]", "Action: ", "[TOOL"}) {
    CHECK(formats::delimiter_length(none) == 0);
  }
}

TEST_CASE("closing_delimiters gives each line once, without brackets and white space") {
  using Texts = std::vector<std::string>;
  CHECK(formats::closing_delimiters({"\n</parameter>\n", "", "</function>\n</tool_call>", "]"}) ==
        Texts{"</parameter>", "</function>", "</tool_call>"});
  CHECK(formats::closing_delimiters({"</a>", "</a>"}) == Texts{"</a>"});
  CHECK(formats::closing_delimiters({"}", "\n"}).empty());
}

TEST_CASE("delimiter_spellings lists a text with each mark as text and as a control token") {
  using Texts = std::vector<std::string>;
  CHECK(formats::delimiter_spellings("") == Texts{""});
  CHECK(formats::delimiter_spellings("\n```json\n") == Texts{"\n```json\n"});
  Texts spellings = formats::delimiter_spellings(" <a>x<b>\n");
  CHECK(spellings[0] == " <a>x<b>\n");
  std::sort(spellings.begin(), spellings.end());
  Texts expected{" <a>x<b>\n", " \xff<a>\xfex<b>\n", " <a>x\xff<b>\xfe\n",
                 " \xff<a>\xfex\xff<b>\xfe\n"};
  std::sort(expected.begin(), expected.end());
  CHECK(spellings == expected);
  for (const std::string text : {"", "x", " <a>x<b>\n", "<a>[B]", "<a"}) {
    Grammar grammar;
    const NodeId root = formats::delimiter(grammar, text);
    const Automaton machine(std::move(grammar), root);
    for (const std::string& spelling : formats::delimiter_spellings(text)) {
      CHECK(accepts(machine, spelling));
      CHECK_FALSE(accepts(machine, spelling + "x"));
    }
  }
}
