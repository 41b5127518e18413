#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/unicode_properties.hpp>

#include <support/catch.hpp>

using tooldecode::text::CodePointSet;
using tooldecode::text::unicode_property;

TEST_CASE("unicode_property categories are disjoint and cover all code points") {
  CodePointSet all;
  for (const char* name :
       {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn"}) {
    const CodePointSet one = *unicode_property(name);
    INFO(name);
    CHECK_FALSE(one.empty());
    CHECK((all & one).empty());
    all = all | one;
  }
  CHECK(all == CodePointSet::all());
  CHECK(unicode_property("Cs")->empty());  // surrogates are in no text
  CHECK((*unicode_property("L") & *unicode_property("M")).empty());
  CHECK(*unicode_property("Any") == all);
  CHECK(*unicode_property("Assigned") == ~*unicode_property("Cn"));
}

TEST_CASE("unicode_property accepts each name of a property and no other") {
  CHECK(*unicode_property("Lu") == *unicode_property("General_Category=Uppercase_Letter"));
  CHECK(*unicode_property("gc=L") == *unicode_property("Letter"));
  CHECK(*unicode_property("Script=Cyrillic") == *unicode_property("sc=Cyrl"));
  CHECK(*unicode_property("LC") ==
        (*unicode_property("Lu") | *unicode_property("Ll") | *unicode_property("Lt")));
  for (const char* other :
       {"", "X", "lu", "Latin", "sc=Nope", "Emoji", "gc=", "Script_Extensions=Latin"})
    CHECK_FALSE(unicode_property(other));
}

TEST_CASE("is_property_name accepts the names of ECMA-262 and rejects others") {
  for (const char* name :
       {"L", "gc=Lu", "General_Category=Letter", "Script=Greek", "sc=Thaa", "scx=Greek", "Any",
        "Script_Extensions=Thaana", "Emoji", "ID_Start", "IDS", "AHex", "XIDS", "Zs", "sc=Zzzz"}) {
    INFO(name);
    CHECK(tooldecode::text::is_property_name(name));
  }
  for (const char* other : {"", " ", "Emo", "Greek", "Thaana", "gc=Greek", "sc=", "sc=Nope", "=L",
                            "Emoji ID_Start", "Emoji=Yes", "emoji", "sc=Thaa Adlm", "scx=Emoji"}) {
    INFO(other);
    CHECK_FALSE(tooldecode::text::is_property_name(other));
  }
}

TEST_CASE("unicode_property contains the samples from UnicodeData.txt and Scripts.txt") {
  const std::vector<std::pair<const char*, std::u32string>> samples{
      {"Lu", U"AZ\u00C9\u0410\U00010400"},
      {"Ll", U"az\u00DF\u03C9\U0001D44E"},
      {"Lt", U"\u01C5"},
      {"Lo", U"\u00AA\u4E2D\uAC00\u05D0"},
      {"Nd", U"09\u0669\u0967\U0001D7FF"},
      {"Nl", U"\u2160\u3007"},
      {"No", U"\u00B2\u00BD"},
      {"P", U"!-_(\u00AB\u3001"},
      {"Sc", U"$\u20AC\u00A5"},
      {"Sm", U"+<\u2211"},
      {"So", U"\u00A9\U0001F600"},
      {"Zs", U" \u00A0\u3000\u2003"},
      {"Mn", U"\u0301\uFE0F"},
      {"Cc", std::u32string(U"\0\n\u007F\u009F", 4)},
      {"Cf", U"\u00AD\u200B\uFEFF"},
      {"Co", U"\uE000\U0010FFFD"},
      {"Cn", U"\u0378\uFFFF\U0010FFFF"},
      {"sc=Latn", U"aZ\u00E9\uFF21"},
      {"sc=Grek", U"\u03B1\u1F00"},
      {"sc=Cyrl", U"\u0436\u0500"},
      {"sc=Hani", U"\u4E2D\u3007\U00020000"},
      {"sc=Hira", U"\u3042"},
      {"sc=Kana", U"\u30A2\uFF71"},
      {"sc=Hang", U"\uAC00\u1100"},
      {"sc=Arab", U"\u0627"},
      {"sc=Hebr", U"\u05D0"},
      {"sc=Zyyy", U" 1!\u3001\U0001F600"},
  };
  for (const auto& [name, letters] : samples) {
    const CodePointSet set = *unicode_property(name);
    for (const char32_t c : letters) {
      INFO(name << ' ' << static_cast<unsigned>(c));
      CHECK(set.contains(c));
    }
    for (const auto& [other, others] : samples) {
      const bool is_script = std::string(other).find('=') != std::string::npos;
      if (name == other || is_script != (std::string(name).find('=') != std::string::npos))
        continue;
      for (const char32_t c : others) CHECK_FALSE(set.contains(c));
    }
  }
}
