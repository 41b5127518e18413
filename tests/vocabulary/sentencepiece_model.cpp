#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/sentencepiece_model.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}
std::string piece(const std::string& text, float score, std::uint64_t type = 1) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + varint(2 << 3 | 5) + bits + field(3, type));
}
const std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) +
                           piece("<0x21>", 0, 6) + piece("\u2581", -4) + piece("a", -3) +
                           piece("b", -3) + piece("\u2581a", -1) + piece("ab", -2) +
                           piece("<t>", 0, 4);
std::string model(std::uint64_t type, const std::string& normalizer = "") {
  return pieces + field(2, field(3, type)) + field(3, normalizer);
}

std::string what(const std::string& bytes) {
  try {
    static_cast<void>(td::vocabulary::parse_sentencepiece(bytes));
  } catch (const td::Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("parse_sentencepiece reads tokens, types, end tokens and both models") {
  const td::Tokenizer unigrams     = td::vocabulary::parse_sentencepiece(model(1));
  const td::Vocabulary& vocabulary = unigrams.vocabulary();
  CHECK(vocabulary.token_count() == 10);
  CHECK(vocabulary.bytes(7) == " a");
  CHECK(vocabulary.bytes(3) == "!");
  CHECK(vocabulary.type(9) == td::TokenType::user_defined);
  CHECK(Ids(vocabulary.end_tokens().begin(), vocabulary.end_tokens().end()) == Ids{2});
  CHECK(vocabulary.begin_token() == 1);
  // " a" "b" costs 4 and " " "ab" 6; pairs by score merge " a" first and then nothing.
  CHECK(unigrams.encode("ab!<t>", {.add_space_prefix = true}) == Ids{7, 6, 3, 9});
  const td::Tokenizer pairs = td::vocabulary::parse_sentencepiece(model(2));
  CHECK(pairs.encode("ab  ab", {.add_space_prefix = true}) == Ids{7, 6, 7, 6});
  CHECK(unigrams.encode("ab  ab", {.add_space_prefix = true}) == Ids{7, 6, 7, 6});
  CHECK(pairs.normalizes());
  const td::Tokenizer keeps = td::vocabulary::parse_sentencepiece(model(2, field(4, 0)));
  CHECK(keeps.encode("ab  ab", {.add_space_prefix = true}) == Ids{7, 6, 4, 7, 6});
  CHECK_FALSE(keeps.normalizes());
}

// Expected ids are as the Python package `sentencepiece` 0.2.3 encodes texts of these forms.
TEST_CASE("parse_sentencepiece removes spaces beside others across user-defined tokens") {
  for (const std::uint64_t type : {1U, 2U}) {
    INFO(type);
    const td::Tokenizer tokenizer = td::vocabulary::parse_sentencepiece(model(type));
    const auto encode             = [&](std::string_view text) {
      return tokenizer.encode(text, {.add_space_prefix = true});
    };
    CHECK(encode("<t> a <t>") == Ids{4, 9, 7, 4, 9});
    CHECK(encode("<t>a") == Ids{4, 9, 5});
    CHECK(encode("a  <t>  a  ") == Ids{7, 4, 9, 7});
    CHECK(encode("  a<t>  ") == Ids{7, 9});
    CHECK(encode("   ") == Ids{});
    // Without the prefix no space begins a new text.
    const td::Tokenizer bare = td::vocabulary::parse_sentencepiece(model(type, field(3, 0)));
    CHECK(bare.encode("  a a", {.add_space_prefix = true}) == Ids{5, 7});
    CHECK(bare.encode("  a a") == Ids{7, 7});  // the text goes on
  }
}

TEST_CASE(
    "parse_sentencepiece follows the normalizer and throws on encode if it is not supported") {
  const std::string keeps = field(3, 0) + field(4, 0);
  CHECK(td::vocabulary::parse_sentencepiece(model(1, keeps))
            .encode("a  a", {.add_space_prefix = true}) == Ids{5, 4, 7});
  // With a map that has no characters.
  const std::string map = field(2, std::string("\x04\0\0\0abcd", 8));
  CHECK(td::vocabulary::parse_sentencepiece(model(2, map)).encode("a a") == Ids{5, 7});
  const td::Tokenizer plain = td::vocabulary::parse_sentencepiece(model(2, field(5, 0)));
  CHECK(plain.vocabulary().bytes(7) == " a");
  CHECK_THROWS_WITH(plain.encode("a"), td::test::contains("normalizer_spec/escape_whitespaces"));
  const td::Tokenizer suffixed =
      td::vocabulary::parse_sentencepiece(pieces + field(2, field(3, 2) + field(24, 1)));
  CHECK(suffixed.vocabulary().bytes(7) == " a");
  CHECK_THROWS_WITH(suffixed.encode("a"),
                    td::test::contains("trainer_spec/treat_whitespace_as_suffix"));
}

TEST_CASE("parse_sentencepiece errors name the place and truncated files throw only Error") {
  CHECK(what("") == "pieces: must not be empty");
  CHECK(what(model(3)) == "trainer_spec/model_type 3: must be 1 (unigrams) or 2 (byte pairs)");
  CHECK(what(piece("a", 0, 7)) == "pieces/0 type 7: must be from 1 to 6");
  CHECK(what(piece("a", 0, 6)) == "pieces/0: must be a byte's token, as <0x0A> is");
  CHECK(what("\x0A\x7F") == "byte 2: the file is cut short");
  CHECK(what("\x0B") == "byte 1: wire type 3: must be 0, 1, 2 or 5");
  CHECK(what(std::string(11, '\xFF')) == "byte 10: a number must not be longer than ten bytes");
  const std::string good = model(1);
  for (std::size_t size = 0; size < good.size(); ++size)
    static_cast<void>(what(good.substr(0, size)));  // throws only Error
}
