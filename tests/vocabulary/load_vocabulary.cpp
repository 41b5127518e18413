#include <string>

#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/data.hpp>

namespace td = tooldecode;

TEST_CASE("load_tokenizer of a directory reads tokenizer.json and the files next to it") {
  const auto directory          = td::test::example_data("tiny");
  const td::Tokenizer tokenizer = td::load_tokenizer(directory);
  CHECK(tokenizer.vocabulary().token_count() == 8192);
  REQUIRE_FALSE(tokenizer.vocabulary().end_tokens().empty());
  CHECK(tokenizer.vocabulary().end_tokens()[0] == 4);
  CHECK(tokenizer.vocabulary().begin_token() == 0);
  CHECK(td::load_tokenizer(directory / "tokenizer.json").vocabulary().hash() ==
        tokenizer.vocabulary().hash());
  CHECK(td::load_vocabulary(directory).hash() == tokenizer.vocabulary().hash());
}

TEST_CASE("parse_tokenizer detects the format from the content") {
  const std::string compact = R"({"type": "bpe-bytelevel", "tokens_b64": ["YQ=="],
                                  "token_types": [1], "merges": []})";
  CHECK(td::parse_tokenizer(compact, "x").encode("aa").size() == 2);
  const auto message = [](std::string bytes) {
    try {
      static_cast<void>(td::parse_tokenizer(bytes, "the file"));
    } catch (const td::Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(td::parse_tokenizer("YQ== 0\n", "folder/cl100k_base.tiktoken").encode("aa").size() == 2);
  CHECK_THAT(message("\n\x7F"), td::test::contains("byte 2"));  // SentencePiece
  CHECK_THAT(message("YQ= 0"), td::test::contains("line 1"));
  CHECK_THAT(message(R"({"vocab": [{"token_bytes": ""}]})"), td::test::contains("config"));
  // An object of tokens: a tokenizer.json without its model, or GPT-2's vocab.json.
  CHECK_THAT(message(R"({"vocab": {"a": 0}})"), td::test::contains("/model: is missing"));
  // JSON too may begin with a line of a text and a number.
  const std::string members = "{\"a\": 1\n, " + compact.substr(1);
  CHECK_THAT(message(members), td::test::contains("/a: must not be there"));
  for (const char* token : {"token_bytes", "tokens_b64"}) {  // of a tokenizer.json
    const std::string file = R"({"model": {"type": "BPE", "vocab": {"a": 0, ")" +
                             std::string(token) +
                             R"(": 1}, "merges": []}, "decoder": {"type": "ByteLevel"}})";
    CHECK(td::parse_tokenizer(file, "x").vocabulary().size() == 2);
  }
  CHECK_THAT(message("\x1F\x8B\x08"), td::test::contains("inflate"));
  CHECK_THAT(message("GGUF"), td::test::contains("byte 4"));
  for (const char* text : {"{", "text", "YQ==", "YQ== x", "\n {"})  // no other format
    CHECK_THAT(message(text), td::test::contains("is not JSON"));
  CHECK_THAT(message(""), td::test::contains("the file"));
}

TEST_CASE("load_vocabulary of GGUF and parse_tokenizer of the compact form give the same tokens") {
  TOOLDECODE_REQUIRE_SHARED(gguf, "vocab/gguf/ggml-vocab-gpt-2.gguf");
  TOOLDECODE_REQUIRE_SHARED(compact, "vocab/gpt-2.json.gz");
  const td::Tokenizer from_json = td::parse_tokenizer(td::test::read_text(compact), "json");
  CHECK(td::load_vocabulary(gguf).hash() == from_json.vocabulary().hash());
}

TEST_CASE("load_tokenizer of a missing file throws an error that names it") {
  for (const char* path : {"/nonexistent/tokenizer.json", "/nonexistent"}) {
    try {
      static_cast<void>(td::load_tokenizer(path));
      FAIL("nothing thrown");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::file_unreadable);
      CHECK_THAT(std::string(error.what()), td::test::contains(path));
    }
  }
  // A directory without a tokenizer.json.
  CHECK_THROWS_AS(td::load_tokenizer(td::test::own_data("")), td::Error);
}
