#include <string>
#include <utility>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>

#include <support/data.hpp>

namespace td = tooldecode;
using nlohmann::json;
using Ids = std::vector<td::TokenId>;

namespace {

std::string tiny() {
  return td::test::read_text(td::test::example_data("tiny/tokenizer.json"));
}

// SentencePiece's shape: characters, merges and byte tokens for other characters.
json spaced(bool metaspace = false) {
  json vocab = {{"<unk>", 0}, {"\u2581", 1}, {"a", 2}, {"b", 3}, {"ab", 4}, {"\u2581ab", 5}};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* digits                                            = "0123456789ABCDEF";
    vocab[std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">"] = 6 + byte;
  }
  json file = {{"model",
                {{"type", "BPE"},
                 {"byte_fallback", true},
                 {"vocab", vocab},
                 {"merges", {"a b", json::array({"\u2581", "ab"})}}}},
               {"added_tokens",
                {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
                 {{"id", 262}, {"content", "[T]"}, {"special", false}}}}};
  if (metaspace) {
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", "\u2581"},
                             {"prepend_scheme", "always"},
                             {"split", false}};
  } else {
    file["normalizer"] = {
        {"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  }
  return file;
}

}  // namespace

// Expected ids are from the Python package `tokenizers` 0.23.3. It finds the names of control
// tokens in all texts, which parse_special selects here.
TEST_CASE(
    "parse_tokenizer_json of the embedded model gives the ids of the reference implementation") {
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(tiny());
  std::size_t count             = 0;
  for (const json row : td::test::read_jsonl(td::test::own_data("vocab/tiny_cases.jsonl"))) {
    const auto text = row.at("text").get<std::string>();
    const auto ids  = row.at("ids").get<Ids>();
    INFO(json(text).dump());
    CHECK(tokenizer.encode(text, {.parse_special = true}) == ids);
    const std::string plain = tokenizer.decode(tokenizer.encode(text));
    CHECK(plain == text);
    ++count;
  }
  CHECK(count == 157);
}

TEST_CASE("parse_tokenizer_json takes begin and end tokens from the files next to it") {
  const td::Vocabulary named =
      td::vocabulary::parse_tokenizer_json(
          tiny(),
          {.tokenizer_config = R"({"eos_token": {"content": "<|end|>"}, "bos_token": "<|begin|>"})",
           .generation_config = R"({"eos_token_id": [5, 4]})"})
          .vocabulary();
  CHECK(Ids(named.end_tokens().begin(), named.end_tokens().end()) == Ids{4, 5});
  CHECK(named.begin_token() == 0);
}

TEST_CASE("parse_tokenizer_json finds end tokens by name if no file lists them") {
  const auto ends = [](const json& added, td::vocabulary::TokenizerFiles files) {
    json file            = spaced();
    file["added_tokens"] = added;
    const td::Vocabulary vocabulary =
        td::vocabulary::parse_tokenizer_json(file.dump(), files).vocabulary();
    const auto found = vocabulary.end_tokens();
    return Ids(found.begin(), found.end());
  };
  const auto token = [](int id, const char* content) {
    return json{{"id", id}, {"content", content}, {"special", true}};
  };
  const json chat = {token(262, "<|endoftext|>"), token(263, "<|im_start|>"),
                     token(264, "<|im_end|>")};
  CHECK(ends(chat, {}) == Ids{262, 264});
  CHECK(ends(chat, {.tokenizer_config = R"({"eos_token": "<|im_end|>"})"}) == Ids{264, 262});
  CHECK(ends(chat, {.generation_config = R"({"do_sample": true})"}) == Ids{262, 264});
  // The model's own list is complete, except that tokens which end only a message are removed.
  CHECK(ends(chat, {.generation_config = R"({"eos_token_id": 262})"}) == Ids{262});
  const json channels = {token(262, "<|return|>"), token(263, "<|call|>"),
                         token(264, "<|channel|>"), token(265, "<|end|>"),
                         token(266, "<|endoftext|>")};
  CHECK(ends(channels, {.generation_config = R"({"eos_token_id": [262, 266, 263]})"}) ==
        Ids{262, 266});
  CHECK(ends(channels, {}) == Ids{262, 266});
  CHECK(ends(json::array(), {}).empty());
}

TEST_CASE("parse_tokenizer_json with an unsupported part decodes and throws on encode") {
  const auto check = [](const char* pointer, json value, const std::string& where,
                        const char* name) {
    json file                         = spaced();
    file[json::json_pointer(pointer)] = std::move(value);
    const td::Tokenizer tokenizer     = td::vocabulary::parse_tokenizer_json(file.dump());
    CHECK(tokenizer.vocabulary().bytes(5) == " ab");
    CHECK(tokenizer.decode(Ids{5, 6 + '!'}) == " ab!");
    try {
      static_cast<void>(tokenizer.encode("ab"));
      FAIL("encoded");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_format);
      CHECK(error.where() == where);
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  };
  check("/pre_tokenizer", {{"type", "BertPreTokenizer"}}, "#/pre_tokenizer/type",
        "BertPreTokenizer");
  check(
      "/pre_tokenizer",
      {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}, {{"type", "Punctuation"}}}}},
      "#/pre_tokenizer/pretokenizers/1/type", "Punctuation");
  check("/pre_tokenizer",
        {{"type", "Split"},
         {"pattern", {{"Regex", " "}}},
         {"behavior", "MergedWithNext"},
         {"invert", false}},
        "#/pre_tokenizer", "splits a text with marks");
  check("/model/dropout", 0.1, "#/model/dropout", "random");
  check("/normalizer", {{"type", "Lowercase"}}, "#/normalizer", "Lowercase");
}

// Expected ids are from the Python package `tokenizers` 0.23.3.
TEST_CASE("parse_tokenizer_json reads expressions of splits as Oniguruma's") {
  const auto tokenizer = [](const char* expression) {
    const json file = {
        {"model",
         {{"type", "BPE"},
          {"vocab", {{"a", 0}, {"b", 1}, {" ", 2}, {"ab", 3}, {" ab", 4}, {"\n", 5}}},
          {"merges", {"a b", "  ab"}}}},
        {"pre_tokenizer",
         {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}}},
        {"decoder", {{"type", "Fuse"}}}};
    return td::vocabulary::parse_tokenizer_json(file.dump());
  };
  // Kimi K2's words.
  CHECK(tokenizer(R"([^\p{L}]?[\p{Lu}\p{Lo}&&[^\p{Han}]]*[\p{Ll}\p{M}&&[^\p{Han}]]+)")
            .encode("ab ab") == Ids{3, 4});
  CHECK(tokenizer("^a").encode("ab\nab") == Ids{0, 1, 5, 0, 1});
  // What is not translated, or not compiled, is only not encoded.
  for (const auto& [expression, where] :
       {std::pair{R"(\bab)", "#/pre_tokenizer/pattern/Regex"},
        std::pair{"a(", "#/pre_tokenizer/pattern/Regex"}, std::pair{"(?<=a+)b", "#/pre_tokenizer"},
        std::pair{R"(\p{Tomorrow})", "#/pre_tokenizer"}}) {
    INFO(expression);
    const td::Tokenizer unknown = tokenizer(expression);
    CHECK(unknown.vocabulary().bytes(4) == " ab");
    try {
      static_cast<void>(unknown.encode("ab"));
      FAIL("encoded");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_format);
      CHECK(error.where() == where);
    }
  }
}

TEST_CASE(
    "parse_tokenizer_json with an unknown pre-tokenizer takes the spelling from the decoder") {
  json file                       = json::parse(tiny());
  file["pre_tokenizer"]           = {{"type", "Tomorrow"}};
  file["decoder"]                 = {{"type", "ByteLevel"}};
  const td::Vocabulary vocabulary = td::vocabulary::parse_tokenizer_json(file.dump()).vocabulary();
  CHECK(vocabulary.hash() == td::vocabulary::parse_tokenizer_json(tiny()).vocabulary().hash());
  file["decoder"] = {{"type", "Sequence"},
                     {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteLevel"}}}}};
  CHECK(td::vocabulary::parse_tokenizer_json(file.dump()).vocabulary().hash() == vocabulary.hash());
  file["decoder"] = nullptr;
  CHECK_THROWS_AS(td::vocabulary::parse_tokenizer_json(file.dump()), td::Error);
}

TEST_CASE("parse_tokenizer_json in SentencePiece's shape falls back to byte tokens") {
  for (const bool metaspace : {false, true}) {
    INFO(metaspace);
    const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(spaced(metaspace).dump());
    CHECK(tokenizer.encode("ab") == Ids{4});
    CHECK(tokenizer.encode("ab", {.add_space_prefix = true}) == Ids{5});
    CHECK(tokenizer.encode("a ab") == Ids{2, 5});
    CHECK(tokenizer.encode("[T]a") == Ids{262, 2});
    CHECK(tokenizer.encode("\xC3\xA9") == Ids{6 + 0xC3, 6 + 0xA9});
    CHECK(tokenizer.encode("\xFF") == Ids{6 + 0xFF});
    CHECK(tokenizer.decode(tokenizer.encode("a b\xC3\xA9\n")) == "a b\xC3\xA9\n");
  }
}

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file.
TEST_CASE("parse_tokenizer_json with a splitting Metaspace merges only within words") {
  for (const bool split : {true, false}) {
    INFO(split);
    json file                              = spaced(true);
    file["pre_tokenizer"]["split"]         = split;
    file["model"]["vocab"]["\u2581\u2581"] = 263;
    file["model"]["vocab"]["b\u2581"]      = 264;
    file["model"]["merges"].push_back({"\u2581", "\u2581"});
    file["model"]["merges"].push_back({"b", "\u2581"});
    const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
    CHECK(tokenizer.encode("ab  ab") == Ids{4, 1, 5});
    CHECK(tokenizer.encode(" ab") == Ids{5});
    CHECK(tokenizer.encode("  ") == (split ? Ids{1, 1} : Ids{263}));
    CHECK(tokenizer.encode("a   b b b ") ==
          (split ? Ids{2, 1, 1, 1, 3, 1, 3, 1, 3, 1} : Ids{2, 263, 1, 264, 264, 264}));
  }
}

TEST_CASE("parse_tokenizer_json errors name the part that is malformed or not supported") {
  const auto where = [](const char* pointer, json value) {
    json file                         = spaced();
    file[json::json_pointer(pointer)] = std::move(value);
    try {
      static_cast<void>(td::vocabulary::parse_tokenizer_json(file.dump()));
    } catch (const td::Error& error) {
      return error.where();
    }
    return std::string("accepted");
  };
  CHECK(where("/model/type", "Unigram") == "#/model/vocab");  // must be an array
  CHECK(where("/model/type", "Tomorrow") == "#/model/type");
  CHECK(where("/model/type", "WordPiece") == "#/decoder");
  CHECK(where("/decoder", {{"type", "BPEDecoder"}, {"suffix", "</w>"}}) == "#/decoder/type");
  CHECK(where("/normalizer", {{"type", "Prepend"}, {"prepend", "_"}}) == "#/normalizer/prepend");
  CHECK(where("/model/vocab", json::array()) == "#/model/vocab");
  CHECK(where("/model/vocab/a", -1) == "#/model/vocab/a");
  CHECK(where("/model/merges/0", "ab") == "#/model/merges/0");
  CHECK(where("/model/merges/0", json::array({"a", "x"})) == "#/model/merges/0");
  // Contradictions with the model's vocabulary.
  CHECK(where("/added_tokens/1/content", "ab") == "#/added_tokens/1/id");
  CHECK(where("/added_tokens/1/id", 5) == "#/added_tokens/1/id");
  CHECK(where("/pre_tokenizer",
              {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Merged"}}) ==
        "#/pre_tokenizer/behavior");
  CHECK(where("/pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "last"}}) ==
        "#/pre_tokenizer/prepend_scheme");
  const json split = {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Isolated"}};
  for (const char* mark : {"", "__"}) {
    const json space = {{"type", "Metaspace"}, {"replacement", mark}};
    CHECK(where("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {space, split}}}) ==
          "#/pre_tokenizer/pretokenizers/0/replacement");
  }
  CHECK(where("/model", nullptr) == "#/model");
  CHECK_THROWS_AS(td::vocabulary::parse_tokenizer_json("[1"), td::Error);
}

namespace {

json sequence(const char* key, std::vector<json> parts) {
  return {{"type", "Sequence"}, {key, parts}};
}

json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

json added(int id, const char* content, bool special = false) {
  return {{"id", id}, {"content", content}, {"special", special}, {"normalized", false}};
}

// In the form of Gemma's files.
json gemma() {
  json file          = spaced();
  file["normalizer"] = replace(" ", "\u2581");
  file["decoder"]    = sequence(
      "decoders", {replace("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  file["model"]["vocab"]  = {{"<unk>", 0},
                             {"\u2581", 1},
                             {"a", 2},
                             {"b", 3},
                             {"\u2581a", 4},
                             {"\u2581\u2581", 5},
                             {"\u2581\u2581\u2581", 6},
                             {"\n", 7},
                             {"\n\n", 8},
                             {"<0xC3>", 9},
                             {"<0xA9>", 10},
                             {" ", 11},
                             {"\u2581\u2581\u2581\u2581", 12}};
  file["model"]["merges"] = {"\u2581 \u2581", "\u2581 a", "\n \n", "\u2581\u2581 \u2581",
                             "\u2581\u2581 \u2581\u2581"};
  file["added_tokens"]    = {added(0, "<unk>", true),
                             added(5, "\u2581\u2581"),
                             added(6, "\u2581\u2581\u2581"),
                             added(8, "\n\n"),
                             added(12, "\u2581\u2581\u2581\u2581"),
                             added(13, "[T]\u2581")};
  return file;
}

}  // namespace

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file.
TEST_CASE("parse_tokenizer_json reads an added token of marks as spaces and merges it") {
  json file = gemma();
  // The normalizer has replaced all spaces before this split.
  file["pre_tokenizer"]         = {{"type", "Split"},
                                   {"pattern", {{"String", " "}}},
                                   {"behavior", "MergedWithPrevious"},
                                   {"invert", false}};
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  const td::Vocabulary& tokens  = tokenizer.vocabulary();
  CHECK(tokens.bytes(5) == "  ");
  CHECK(tokens.bytes(6) == "   ");
  CHECK(tokens.type(6) == td::TokenType::user_defined);
  CHECK(tokens.bytes(8) == "\n\n");
  CHECK(tokens.bytes(13) == "[T] ");
  CHECK(tokens.bytes(9) == "\xC3");
  CHECK(tokens.bytes(0).empty());
  CHECK(tokenizer.encode("   a") == Ids{5, 4});  // by its merges, not the longest first
  CHECK(tokenizer.encode("a    b") == Ids{2, 12, 3});
  CHECK(tokenizer.encode(" \n\n\na") == Ids{1, 8, 7, 2});
  CHECK(tokenizer.encode("\u00E9 ") == Ids{9, 10, 1});
  CHECK(tokenizer.encode("[T]\u2581a") == Ids{13, 2});
  CHECK(tokenizer.decode(tokenizer.encode("a    b\n\n a")) == "a    b\n\n a");
}

TEST_CASE(
    "parse_tokenizer_json takes the bytes of tokens from the decoder, not the pre-tokenizer") {
  json file       = gemma();
  file["decoder"] = sequence("decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.vocabulary().bytes(5) == "\u2581\u2581");
  try {
    static_cast<void>(tokenizer.encode("a"));
    FAIL("encoded");
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::unknown_format);
    CHECK(error.where() == "#/decoder");
  }
  json bytes          = json::parse(tiny());
  bytes["decoder"]    = {{"type", "Fuse"}};
  const auto as_spelt = td::vocabulary::parse_tokenizer_json(bytes.dump());
  const auto as_bytes = td::vocabulary::parse_tokenizer_json(tiny());
  const auto the      = as_bytes.vocabulary().find(" the");
  REQUIRE(the);
  CHECK(as_spelt.vocabulary().bytes(*the) == "\u0120the");
}

TEST_CASE("parse_tokenizer_json gives a token outside the byte alphabet its own text") {
  const auto e_acute = td::vocabulary::parse_tokenizer_json(tiny()).vocabulary().find("\xE9");
  REQUIRE(e_acute);
  json file                     = json::parse(tiny());
  file["decoder"]               = {{"type", "ByteLevel"}};
  file["model"]["vocab"]["a b"] = 8192;
  file["added_tokens"].push_back(added(8193, "hello world"));
  file["added_tokens"].push_back(added(*e_acute, "\u00E9"));
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.vocabulary().bytes(8192) == "a b");
  CHECK(tokenizer.vocabulary().bytes(8193) == "hello world");
  CHECK(tokenizer.vocabulary().bytes(*e_acute) == "\xE9");  // as ByteLevel decodes it
  CHECK(tokenizer.encode("\u00E9") == Ids{*e_acute});
  CHECK(tokenizer.encode("hello world") == Ids{8193});
  for (const td::TokenId id : tokenizer.encode("a b")) CHECK(id != 8192);
}

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file.
TEST_CASE("parse_tokenizer_json of a Unigram model encodes by its scores") {
  json file = {
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 0},
        {"byte_fallback", true},
        {"vocab", json::parse(R"([["<unk>", 0.0], ["\u2581", -2.0], ["a", -2.0], ["b", -2.5],
                                          ["ab", -4.0], ["\u2581a", -3.0], ["\u2581ab", -6.0],
                                          ["<0xC3>", -9.0], ["<0xA9>", -9.0]])")}}},
      {"pre_tokenizer",
       {{"type", "Metaspace"},
        {"replacement", "\u2581"},
        {"prepend_scheme", "always"},
        {"split", true}}},
      {"decoder",
       sequence("decoders",
                {replace("\u2581", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}})},
      {"added_tokens", {added(0, "<unk>", true), added(9, "[T]")}}};
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.vocabulary().bytes(6) == " ab");
  CHECK(tokenizer.vocabulary().bytes(7) == "\xC3");
  CHECK(tokenizer.encode("ab") == Ids{4});
  CHECK(tokenizer.encode("ab", {.add_space_prefix = true}) == Ids{5, 3});
  CHECK(tokenizer.encode(" ab[T]ab", {.add_space_prefix = true}) == Ids{5, 3, 9, 5, 3});
  CHECK(tokenizer.encode("b\u00E9") == Ids{3, 7, 8});
  CHECK(tokenizer.encode("a  a") == Ids{2, 1, 5});
  CHECK(tokenizer.normalizes());
  // No space is added before one, and `first` adds it at the start of the text only.
  file["pre_tokenizer"]["prepend_scheme"] = "first";
  const td::Tokenizer first               = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(first.encode("ab[T]ab", {.add_space_prefix = true}) == Ids{5, 3, 9, 4});
  CHECK(first.encode("[T]ab", {.add_space_prefix = true}) == Ids{9, 4});
  // The form of files older than prepend_scheme.
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", false}};
  CHECK(
      td::vocabulary::parse_tokenizer_json(file.dump()).encode("ab", {.add_space_prefix = true}) ==
      Ids{4});
  file["decoder"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  try {  // the decoder would write the names of bytes
    static_cast<void>(td::vocabulary::parse_tokenizer_json(file.dump()).encode("a"));
    FAIL("encoded");
  } catch (const td::Error& error) {
    CHECK(error.where() == "#/model/byte_fallback");
  }
  file["model"]["vocab"][2] = json::array({"a"});
  CHECK_THROWS_WITH(td::vocabulary::parse_tokenizer_json(file.dump()),
                    "#/model/vocab/2: must be a token and its score");
}

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file.
TEST_CASE("parse_tokenizer_json of a Unigram model finds the last of equal rows") {
  const json rows =
      json::parse(R"([["<unk>", 0], ["a", -1], ["b", -1], ["ab", -1], ["c", -2], ["ab", -9]])");
  json file                               = spaced(true);
  file["pre_tokenizer"]["prepend_scheme"] = "never";
  file["model"]                           = {{"type", "Unigram"}, {"vocab", rows}};
  file["decoder"]                         = {{"type", "Metaspace"}};
  file["added_tokens"]                    = json::array({added(5, "ab")});
  file["added_tokens"][0]["single_word"]  = true;
  const td::Tokenizer tokenizer           = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.encode("ab") == Ids{5});
  CHECK(tokenizer.encode("abc") == Ids{1, 2, 4});
}

TEST_CASE("parse_tokenizer_json of a WordPiece model decodes words with spaces before them") {
  const json file               = {{"model",
                                    {{"type", "WordPiece"},
                                     {"unk_token", "[UNK]"},
                                     {"continuing_subword_prefix", "##"},
                                     {"max_input_chars_per_word", 100},
                                     {"vocab", {{"[UNK]", 0}, {"word", 1}, {"##ing", 2}, {".", 3}, {"{", 4}}}}},
                                   {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
                                   {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                                   {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                                   {"added_tokens", {added(0, "[UNK]", true), added(5, "New")}}};
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.decode(Ids{1, 2, 1, 3, 0, 4, 5}) == " wording word. { New");
  try {
    static_cast<void>(tokenizer.encode("word"));
    FAIL("encoded");
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::unknown_format);
    CHECK(error.where() == "#/model/type");
    CHECK_THAT(std::string(error.what()), td::test::contains("WordPiece"));
  }
  json normalized                             = file;
  normalized["added_tokens"][1]["normalized"] = true;  // matches the normalized text
  CHECK(td::vocabulary::parse_tokenizer_json(normalized.dump()).decode(Ids{5}) == " new");
  normalized["added_tokens"][1]["content"] = "\u00C9";
  CHECK_THROWS_WITH(td::vocabulary::parse_tokenizer_json(normalized.dump()),
                    td::test::contains("#/added_tokens/1/normalized"));
}

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file.
TEST_CASE("parse_tokenizer_json follows lstrip, single_word and normalized of added tokens") {
  json file                             = spaced();
  file["added_tokens"][1]["lstrip"]     = true;
  file["added_tokens"][1]["normalized"] = false;
  td::Tokenizer tokenizer               = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.encode("a  [T] a") == Ids{2, 262, 1, 2});
  CHECK(tokenizer.normalizes());
  file["added_tokens"][1]["lstrip"]      = false;
  file["added_tokens"][1]["content"]     = "T";
  file["added_tokens"][1]["single_word"] = true;
  tokenizer                              = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.encode("T") == Ids{262});
  CHECK(tokenizer.encode("aT") == Ids{2, 6 + 'T'});
  // In normalized text, the prefix is part of the token.
  file["added_tokens"][1] = {{"id", 262}, {"content", "T"}, {"normalized", true}};
  tokenizer               = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.vocabulary().bytes(262) == " T");
  CHECK(tokenizer.encode("a T") == Ids{2, 262});
  CHECK(tokenizer.encode("T", {.add_space_prefix = true}) == Ids{262});
  CHECK(tokenizer.encode("aT") == Ids{2, 6 + 'T'});
}

TEST_CASE("parse_tokenizer_json never merges text into a special token") {
  json file                    = spaced();
  file["model"]["vocab"]["aa"] = 263;
  file["added_tokens"][2]      = added(263, "aa", true);
  file["model"]["merges"].push_back("a a");
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
  CHECK(tokenizer.encode("aab") == Ids{2, 4});
  CHECK(tokenizer.encode("aa") == Ids{2, 2});
  CHECK(tokenizer.encode("aa", {.parse_special = true}) == Ids{263});
}

// Hugging Face encodes these as the special token, also where the token is not matched in the text.
TEST_CASE("parse_tokenizer_json does not encode where a special token hides from the text") {
  const auto refusal = [](const json& file) -> std::string {
    const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(file.dump());
    try {
      static_cast<void>(tokenizer.encode("aab"));
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_format);
      return error.where();
    }
    return "";
  };
  json file                              = spaced();
  file["model"]["vocab"]["aa"]           = 263;
  file["added_tokens"][2]                = added(263, "aa", true);
  file["added_tokens"][2]["single_word"] = true;
  CHECK(refusal(file) == "");  // no merge gives it
  json merged = file;
  merged["model"]["merges"].push_back("a a");
  CHECK(refusal(merged) == "#/model/merges/2");
  file["model"]["ignore_merges"] = true;
  CHECK(refusal(file) == "#/added_tokens/2");

  file                    = spaced(true);
  file["added_tokens"][2] = added(1, "\u2581", true);  // is what spaces become
  CHECK(refusal(file) == "#/added_tokens/2");
  const json rows =
      json::parse(R"([["<unk>", 0], ["\u2581", -1], ["a", -2], ["b", -3], ["aa", -3]])");
  file["model"]        = {{"type", "Unigram"}, {"byte_fallback", true}, {"vocab", rows}};
  file["added_tokens"] = json::array({added(4, "aa", true)});
  CHECK(refusal(file) == "");
  file["added_tokens"][0]["single_word"] = true;
  CHECK(refusal(file) == "#/added_tokens/0");
}

TEST_CASE("parse_tokenizer_json does not encode where pieces of a prefixed text get spaces") {
  json file         = spaced();
  const json space  = {{"type", "Metaspace"}, {"prepend_scheme", "always"}, {"split", false}};
  const auto encode = [](const json& one) {
    return td::vocabulary::parse_tokenizer_json(one.dump()).encode("a", {.add_space_prefix = true});
  };
  file["pre_tokenizer"] = space;
  CHECK(encode(file) == Ids{1, 2});
  file["added_tokens"][1]["normalized"] = true;
  CHECK_THROWS_WITH(encode(file), td::test::contains("#/pre_tokenizer: a space is put before"));

  file                  = json::parse(tiny());
  file["normalizer"]    = {{"type", "Prepend"}, {"prepend", " "}};
  const json digits     = {{"type", "Digits"}};
  const json bytes      = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {digits, bytes}}};
  CHECK_THROWS_WITH(encode(file), td::test::contains("#/pre_tokenizer/pretokenizers/1/add_prefix"));
}

TEST_CASE("parse_tokenizer_json takes an end token that only the model's vocabulary contains") {
  json file                        = spaced();
  file["model"]["vocab"]["[stop]"] = 263;
  const td::Vocabulary vocabulary =
      td::vocabulary::parse_tokenizer_json(file.dump(),
                                           {.tokenizer_config = R"({"eos_token": "[stop]"})"})
          .vocabulary();
  CHECK(vocabulary.is_end(263));
}

TEST_CASE("parse_tokenizer_json of a truncated or altered file throws only Error") {
  json file = spaced();
  for (int byte = 8; byte < 256; ++byte) {  // few byte tokens, so that most changes hit other parts
    constexpr const char* digits = "0123456789ABCDEF";
    file["model"]["vocab"].erase(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
  }
  const std::string good = file.dump();
  std::uint64_t seed     = 7;
  const auto draw        = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed >> 33) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    if (round % 4 == 0) text.resize(draw(text.size()));
    if (!text.empty()) text[draw(text.size())] = "0\"{}[]:,anx \xE2"[draw(13)];
    INFO("round " << round << ": " << text);
    try {
      static_cast<void>(td::vocabulary::parse_tokenizer_json(text).encode("ab b"));
    } catch (const td::Error&) {
      // the only exception that is allowed
    }
  }
}
