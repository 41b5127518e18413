#include <string>
#include <vector>

#include <tooldecode/vocabulary/tokenizer_json.hpp>

#include <support/data.hpp>

namespace td = tooldecode;
using nlohmann::json;
using Ids = std::vector<td::TokenId>;

namespace {

std::string tiny() {
  return td::test::read_text(td::test::example_data("tiny/tokenizer.json"));
}

// The SentencePiece shape: characters, merges, bytes for what has no character.
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

// The ids are what the Python package `tokenizers` 0.23.3 gives for the same file. It finds the
// names of control tokens in every text, hence parse_special.
TEST_CASE("the embedded model's tokenizer gives the ids of the reference implementation") {
  const td::Tokenizer tokenizer = td::vocabulary::parse_tokenizer_json(tiny());
  std::size_t count             = 0;
  for (const json& row : td::test::read_jsonl(td::test::own_data("vocab/tiny_cases.jsonl"))) {
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

TEST_CASE("the files beside a tokenizer.json name the tokens that begin and end a text") {
  const td::Vocabulary named =
      td::vocabulary::parse_tokenizer_json(
          tiny(),
          {.tokenizer_config = R"({"eos_token": {"content": "<|end|>"}, "bos_token": "<|begin|>"})",
           .generation_config = R"({"eos_token_id": [5, 4]})"})
          .vocabulary();
  CHECK(Ids(named.end_tokens().begin(), named.end_tokens().end()) == Ids{4, 5});
  CHECK(named.begin_token() == 0);
}

TEST_CASE("without a list of end tokens, names tell them") {
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
  // The model's own list is all there is, but for what ends a message of several.
  CHECK(ends(chat, {.generation_config = R"({"eos_token_id": 262})"}) == Ids{262});
  const json channels = {token(262, "<|return|>"), token(263, "<|call|>"),
                         token(264, "<|channel|>"), token(265, "<|end|>"),
                         token(266, "<|endoftext|>")};
  CHECK(ends(channels, {.generation_config = R"({"eos_token_id": [262, 266, 263]})"}) ==
        Ids{262, 266});
  CHECK(ends(channels, {}) == Ids{262, 266});
  CHECK(ends(json::array(), {}).empty());
}

TEST_CASE("a vocabulary is read whatever comes before its tokens; text cannot be encoded then") {
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
        "#/pre_tokenizer/behavior", "split");
  check("/normalizer", {{"type", "Lowercase"}}, "#/normalizer", "Lowercase");
}

TEST_CASE("how tokens are spelt is told by the decoder where the pre-tokenizer is not known") {
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

TEST_CASE("text in SentencePiece's shape falls back to bytes") {
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
TEST_CASE("a Metaspace that splits keeps merges within its words") {
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

TEST_CASE("a part of another kind is refused at its place") {
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
  CHECK(where("/model/type", "Unigram") == "#/model/type");
  CHECK(where("/normalizer", {{"type", "Prepend"}, {"prepend", "_"}}) == "#/normalizer");
  CHECK(where("/model/vocab", json::array()) == "#/model/vocab");
  CHECK(where("/model/vocab/a", -1) == "#/model/vocab/a");
  CHECK(where("/model/merges/0", "ab") == "#/model/merges/0");
  CHECK(where("/model", nullptr) == "#/model");
  CHECK_THROWS_AS(td::vocabulary::parse_tokenizer_json("[1"), td::Error);
}

TEST_CASE("a tokenizer.json cut short or altered gives an Error or a tokenizer") {
  json file = spaced();
  for (int byte = 8; byte < 256; ++byte) {  // few bytes, so that most changes hit something else
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
      // the only exception that there may be
    }
  }
}
