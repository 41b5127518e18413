#include <string>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/token_spelling.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;
using nlohmann::json;
using td::vocabulary::TokenSpelling;

namespace {

json sequence(std::vector<json> parts) {
  return {{"type", "Sequence"}, {"decoders", parts}};
}
json part(const char* type) {
  return {{"type", type}};
}
json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}
json strip(unsigned start, unsigned stop) {
  return {{"type", "Strip"}, {"content", " "}, {"start", start}, {"stop", stop}};
}
json words(bool cleanup) {
  return {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", cleanup}};
}

std::string write(const json& decoder, const char* token) {
  return TokenSpelling::of_decoder(decoder, "#/decoder").write(token);
}

std::string where(const json& decoder) {
  try {
    static_cast<void>(TokenSpelling::of_decoder(decoder, "#/decoder"));
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::malformed_vocabulary);
    return error.where();
  }
  return "accepted";
}

}  // namespace

// Expected values are from the Python package `tokenizers` 0.23.3, within a text.
TEST_CASE("TokenSpelling writes tokens as decoders of marks and bytes do") {
  const json gemma = sequence({replace("\u2581", " "), part("ByteFallback"), part("Fuse")});
  CHECK(write(gemma, "\u2581\u2581") == "  ");
  CHECK(write(gemma, "\u2581a\u2581") == " a ");
  CHECK(write(gemma, "<0xC3>") == "\xC3");
  CHECK(write(gemma, "<0xc3>") == "\xC3");
  CHECK(write(gemma, "<0xG3>") == "<0xG3>");
  CHECK(write(gemma, "\u0109") == "\u0109");
  const json alphabet = sequence({part("ByteLevel"), strip(1, 0)});
  CHECK(write(alphabet, "\u0120a\u00C3") == " a\xC3");
  CHECK(write(alphabet, "hello world") == "hello world");
  CHECK(write(alphabet, "<\uFF5Cx\u2581>") == "<\uFF5Cx\u2581>");
  CHECK(write({{"type", "Metaspace"}, {"replacement", "_"}}, "_a_\u2581") == " a \u2581");
  CHECK(TokenSpelling::in_alphabet().write("\u010A") == "\n");
  CHECK(TokenSpelling::marked("_", true).write("_<0x0A>") == " <0x0A>");
  CHECK(TokenSpelling::marked("_", true).write("<0x0A>") == "\n");
  CHECK(TokenSpelling::marked("_", false).write("<0x0A>") == "<0x0A>");
}

TEST_CASE("TokenSpelling joins word pieces and puts a space before words") {
  CHECK(write(words(false), "word") == " word");
  CHECK(write(words(false), "##ing") == "ing");
  CHECK(write(words(false), ".") == " .");
  CHECK(write(words(true), ".") == ".");
  CHECK(write(words(true), "##.") == ".");
  CHECK(write(words(true), "...") == "...");
  CHECK(write(words(true), "'s") == "'s");
  CHECK(write(words(true), "'") == " '");
  CHECK(write(words(true), "do not") == " don't");
  CHECK(write(words(true), "a .") == " a.");
  CHECK(write({{"type", "WordPiece"}}, ",") == ",");  // cleanup is the default
}

TEST_CASE("TokenSpelling strips each token before Fuse and the ends of the text after it") {
  CHECK(write(sequence({replace("_", " "), strip(1, 1)}), "__a_") == " a");
  CHECK(write(sequence({replace("_", " "), strip(1, 1)}), "_").empty());
  CHECK(write(sequence({replace("_", " "), part("Fuse"), strip(1, 1)}), "__a_") == "  a ");
  // After Fuse, Metaspace sees the whole text as its first token and drops the leading mark.
  const json always = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "always"}};
  const json never  = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "never"}};
  CHECK(write(sequence({part("Fuse"), always}), "_a") == "a");
  CHECK(write(sequence({part("Fuse"), never}), "_a") == " a");
  CHECK(write(sequence({part("Fuse"), words(false)}), "##a") == "##a");
  CHECK(write(sequence({}), "a") == "a");
}

TEST_CASE("TokenSpelling rejects decoders whose output depends on neighbouring tokens") {
  CHECK(where(part("BPEDecoder")) == "#/decoder/type");
  CHECK(where(part("CTC")) == "#/decoder/type");
  CHECK(where(json::array()) == "#/decoder");
  CHECK(where({{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", ""}}) ==
        "#/decoder/pattern");
  CHECK(where(replace("", "a")) == "#/decoder/pattern/String");
  CHECK(where(sequence({part("Fuse"), replace("ab", "a")})) ==
        "#/decoder/decoders/1/pattern/String");
  CHECK(where(sequence({part("Fuse"), replace("a", "b")})) == "accepted");
  CHECK(where(sequence({part("Fuse"), part("ByteFallback")})) == "#/decoder/decoders/1");
  CHECK(where(sequence({part("ByteFallback"), strip(1, 0)})) == "#/decoder/decoders/1");
  CHECK(where(sequence({part("Fuse"), words(true)})) == "#/decoder/decoders/1");
  CHECK(where({{"type", "Strip"}, {"content", "ab"}}) == "#/decoder/content");
  CHECK(where({{"type", "Metaspace"}, {"replacement", "ab"}}) == "#/decoder/replacement");
  json nested = part("Fuse");
  for (int i = 0; i < 12; ++i) nested = sequence({nested});
  CHECK_THAT(where(nested), td::test::contains("#/decoder/decoders/0"));
  // Bytes that are decoded twice.
  const auto both =
      TokenSpelling::of_decoder(sequence({part("ByteFallback"), part("ByteLevel")}), "#/decoder");
  CHECK(both.write("\u0120a") == " a");
  CHECK_THROWS_WITH(both.write("<0x41>"), td::test::contains("#/decoder/decoders/1"));
}
