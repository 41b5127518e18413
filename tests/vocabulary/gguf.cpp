#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/vocabulary/gguf.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/code_of.hpp>
#include <support/data.hpp>
#include <support/gguf_writer.hpp>

namespace td = tooldecode;
using Ids    = std::vector<td::TokenId>;
using Writer = td::test::GgufWriter;

namespace {

std::string small(const std::string& model = "gpt2", std::uint32_t version = 3,
                  const std::string& pre = "gpt-2") {
  return Writer()
      .text("general.name", "small")
      .text("tokenizer.ggml.model", model)
      .text("tokenizer.ggml.pre", pre)
      .texts("tokenizer.ggml.tokens", {"a", "\u0120", "b", "\u0120a", "<e>"})
      .types("tokenizer.ggml.token_type", {1, 1, 1, 1, 3})
      .texts("tokenizer.ggml.merges", {"\u0120 a"})
      .key("tokenizer.ggml.eos_token_id", 4)
      .put<std::uint32_t>(4)
      .file(7, version);
}

/// A file with two tokens, the first as given.
std::string with_token(const std::string& token, std::int32_t type, const std::string& model) {
  return Writer()
      .text("tokenizer.ggml.model", model)
      .text("tokenizer.ggml.pre", "gpt-2")
      .texts("tokenizer.ggml.tokens", {token, "b"})
      .types("tokenizer.ggml.token_type", {type, 1})
      .file(4);
}

std::string what(const std::string& bytes) {
  try {
    static_cast<void>(td::vocabulary::parse_gguf(bytes));
  } catch (const td::Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string where(const std::string& bytes) {
  try {
    static_cast<void>(td::vocabulary::parse_gguf(bytes));
  } catch (const td::Error& error) {
    return error.where();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("parse_gguf gives the published ids") {
  for (const std::string name : {"gpt-2", "falcon", "phi-3"}) {
    TOOLDECODE_REQUIRE_SHARED(file, "vocab/gguf/ggml-vocab-" + name + ".gguf");
    TOOLDECODE_REQUIRE_SHARED(cases, "vocab/tests/" + name + ".jsonl");
    TOOLDECODE_REQUIRE_SHARED(derived, "vocab/tests/derived/" + name + ".jsonl.gz");
    const td::Tokenizer tokenizer = td::vocabulary::parse_gguf(td::test::read_text(file));
    std::size_t count             = 0;
    for (const auto& path : {cases, derived}) {
      for (const auto& row : td::test::read_jsonl(path)) {
        const auto text = row.at("text").get<std::string>();
        INFO(name << ": " << nlohmann::json(text).dump().substr(0, 200));
        CHECK(tokenizer.encode(text, {.add_space_prefix = true}) == row.at("ids").get<Ids>());
        ++count;
      }
    }
    CHECK(count == 486);
  }
}

TEST_CASE("parse_gguf reads a file that ends with its metadata in versions 2 and 3") {
  for (const std::uint32_t version : {2U, 3U}) {
    const td::Tokenizer tokenizer = td::vocabulary::parse_gguf(small("gpt2", version));
    CHECK(tokenizer.encode("b a") == Ids{2, 3});
    CHECK(tokenizer.vocabulary().is_end(4));
    CHECK(tokenizer.decode(Ids{0, 1, 2, 4}) == "a b");
  }
}

TEST_CASE("load_gguf of a file larger than memory reads its metadata alone") {
  const auto path = std::filesystem::temp_directory_path() / "tooldecode_large.gguf";
  std::ofstream(path, std::ios::binary) << small("gpt2", 3);
  std::error_code failure;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 38, failure);  // a hole, not blocks
  if (!failure) {
    CHECK(td::vocabulary::load_gguf(path).encode("b a") == Ids{2, 3});
    CHECK(td::load_tokenizer(path).encode("b a") == Ids{2, 3});
  }
  std::ofstream(path, std::ios::binary) << small("gpt2", 3).substr(0, 200);
  CHECK_THROWS_WITH(td::vocabulary::load_gguf(path), td::test::contains(path.string()));
  // A fault at the beginning is no reason to read on, nor is a length that no metadata has.
  std::string old = small("gpt2", 3), endless = old;
  old[4]          = 1;
  endless[24 + 5] = 1;  // of the first key's length
  const std::pair<std::string, td::Errc> faults[]{{old, td::Errc::malformed_file},
                                                  {endless, td::Errc::limit_exceeded}};
  for (const auto& [bytes, code] : faults) {
    std::ofstream(path, std::ios::binary) << bytes;
    std::filesystem::resize_file(path, std::uintmax_t{1} << 38, failure);
    if (failure) continue;
    CHECK(td::test::code_of([&] { (void)td::vocabulary::load_gguf(path); }) == code);
  }
  std::filesystem::remove(path);
}

TEST_CASE("parse_gguf with an unknown pre-tokenizer decodes and throws on encode") {
  const td::Tokenizer tokenizer = td::vocabulary::parse_gguf(small("gpt2", 3, "tomorrow"));
  CHECK(tokenizer.vocabulary().bytes(3) == " a");
  CHECK(tokenizer.vocabulary().is_end(4));
  CHECK(tokenizer.decode(Ids{0, 1, 2}) == "a b");
  for (const char* text : {"b a", ""}) {
    try {
      static_cast<void>(tokenizer.encode(text));
      FAIL("encoded");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_format);
      CHECK(error.where() == "tokenizer.ggml.pre");
      CHECK(std::string(error.what()) ==
            "tokenizer.ggml.pre: the pre-tokenizer \"tomorrow\" is not known: tokens and masks can "
            "be used, text cannot be encoded");
    }
  }
}

TEST_CASE("parse_gguf gives a token outside the byte alphabet its own text and never encodes it") {
  const td::Tokenizer tokenizer = td::vocabulary::parse_gguf(
      Writer()
          .text("tokenizer.ggml.model", "gpt2")
          .texts("tokenizer.ggml.tokens", {"\u203C", "\u00E2", "\u0122", "\u00BC", "\u00E2\u0122",
                                           "\u00E2\u0122\u00BC"})  // E2 80 BC in the byte alphabet
          .types("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1})
          .texts("tokenizer.ggml.merges", {"\u00E2 \u0122", "\u00E2\u0122 \u00BC"})
          .file(4));
  CHECK(tokenizer.vocabulary().bytes(0) == "\u203C");
  CHECK(tokenizer.vocabulary().bytes(5) == "\u203C");
  CHECK(tokenizer.encode("\u203C") == Ids{5});
}

TEST_CASE("parse_gguf reads pair, unigram and word-piece models") {
  const auto file = [](const std::string& model, const std::vector<std::string>& tokens,
                       const std::vector<std::int32_t>& types) {
    return Writer()
        .text("tokenizer.ggml.model", model)
        .texts("tokenizer.ggml.tokens", tokens)
        .types("tokenizer.ggml.token_type", types)
        .texts("tokenizer.ggml.merges", {"\u2581 a", "\u2581a \u00E9"})
        .floats("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1.0F))
        .file(5);
  };
  // Pairs of characters; a line end is one token.
  const td::Tokenizer pairs = td::vocabulary::parse_gguf(
      file("gemma4", {"\u2581", "a", "\u00E9", "\u2581a", "\u2581a\u00E9", "\n", "<0x21>"},
           {1, 1, 1, 1, 1, 1, 6}));
  CHECK(pairs.encode("a a\u00E9\n!") == Ids{1, 4, 5, 6});
  CHECK(pairs.decode(Ids{1, 4, 5, 6}) == "a a\u00E9\n!");
  // Unigrams of equal score: the cut with the fewest pieces.
  const td::Tokenizer unigrams = td::vocabulary::parse_gguf(
      file("t5", {"\u2581", "a", "\u00E9", "\u2581a", "a\u00E9", "<unk>"}, {1, 1, 1, 1, 1, 2}));
  CHECK(unigrams.encode("a\u00E9  a ") == Ids{4, 3});
  // Word pieces can be decoded and not encoded.
  const td::Tokenizer words =
      td::vocabulary::parse_gguf(file("bert", {"[UNK]", "\u2581word", "s"}, {3, 1, 1}));
  CHECK(words.vocabulary().bytes(1) == " word");
  CHECK(words.vocabulary().bytes(2) == "s");
  CHECK_THROWS_WITH(words.encode("words"), td::test::contains("tokenizer.ggml.model"));
}

TEST_CASE("parse_gguf takes end tokens from the keys and from the names of tokens") {
  using Keys      = std::vector<std::pair<std::string, std::uint32_t>>;
  const auto ends = [](const Keys& keys, const std::vector<std::int32_t>& listed,
                       const std::vector<std::string>& tokens, std::vector<std::int32_t> types) {
    Writer writer;
    writer.text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "qwen2")
        .texts("tokenizer.ggml.tokens", tokens)
        .types("tokenizer.ggml.token_type", types)
        .texts("tokenizer.ggml.merges", {});
    for (const auto& [key, value] : keys) writer.key("tokenizer.ggml." + key, 4).put(value);
    if (!listed.empty()) writer.types("tokenizer.ggml.eos_token_ids", listed);
    const td::Vocabulary vocabulary =
        td::vocabulary::parse_gguf(writer.file(5 + keys.size() + (listed.empty() ? 0 : 1)))
            .vocabulary();
    const auto found = vocabulary.end_tokens();
    return Ids(found.begin(), found.end());
  };
  const std::vector<std::string> plain{"a", "<x>", "<y>", "<z>", "<s>"};
  const std::vector<std::int32_t> types{1, 3, 3, 3, 1};
  CHECK(ends({}, {}, plain, types).empty());
  CHECK(ends({{"eos_token_id", 3}}, {}, plain, types) == Ids{3});
  CHECK(ends({{"eos_token_id", 3}, {"eot_token_id", 1}, {"eom_token_id", 2}}, {}, plain, types) ==
        Ids{3, 1, 2});
  CHECK(ends({{"eos_token_id", 3}, {"eot_token_id", 3}}, {1, 3, -1, 5}, plain, types) == Ids{3, 1});
  CHECK(ends({{"eot_token_id", 5}, {"eom_token_id", 0xFFFFFFFF}}, {}, plain, types).empty());
  CHECK(ends({{"fim_sep_token_id", 2}, {"fim_pad_token_id", 1}, {"fim_rep_token_id", 3}}, {}, plain,
             types) == Ids{1, 3, 2});
  // By name, whatever the type.
  CHECK(ends({{"eos_token_id", 4}}, {}, {"a", "</s>", "<|eot_id|>", "<|im_end|>", "<e>"},
             {1, 1, 3, 1, 3}) == Ids{4, 1, 2, 3});
  // <|end|> and <|call|> end messages of gpt-oss, not its texts.
  CHECK(ends({{"eos_token_id", 1}}, {1, 2},
             {"a", "<|return|>", "<|call|>", "<|end|>", "<|channel|>"}, {1, 3, 3, 3, 3}) == Ids{1});
}

TEST_CASE("parse_gguf errors name the place") {
  CHECK(where("GGML") == "byte 0");
  CHECK(where(small("gpt2", 1)) == "byte 8");
  CHECK(where(small("rwkv")) == "tokenizer.ggml.model");
  CHECK(where(small().substr(0, 30)) == "byte 24");
}

TEST_CASE("parse_gguf errors name the requirement") {
  CHECK(what("GGML") == "byte 0: must be \"GGUF\"");
  CHECK(what(small("gpt2", 1)) == "byte 8: version 1: must be 2 or 3");
  CHECK(what(small().substr(0, 30)) ==
        "byte 24: must be followed by 8 bytes: the file is cut short");
  CHECK(what(Writer().file(0)) == "tokenizer.ggml.tokens: must be there, and of its type");
  CHECK(what(Writer()
                 .text("tokenizer.ggml.model", "gpt2")
                 .texts("tokenizer.ggml.tokens", {"a"})
                 .types("tokenizer.ggml.token_type", {1, 1})
                 .file(3)) ==
        "tokenizer.ggml.token_type: 2 types: must be as long as the tokens, 1");
  CHECK(what(small("rwkv")) ==
        "tokenizer.ggml.model \"rwkv\": must be gpt2, llama, gemma4, t5 or bert");
  CHECK(what(with_token("a", 7, "gpt2")) == "tokenizer.ggml.tokens/0 type 7: must be from 1 to 6");
  CHECK(what(with_token("a", 6, "llama")) ==
        "tokenizer.ggml.tokens/0: must be a byte's token, as <0x0A> is");
}

TEST_CASE("parse_gguf with a character map that is no list of bytes names the number") {
  const auto file = [](double byte) {
    Writer writer;
    writer.text("tokenizer.ggml.model", "t5")
        .texts("tokenizer.ggml.tokens", {"a"})
        .types("tokenizer.ggml.token_type", {1})
        .floats("tokenizer.ggml.scores", {-1})
        .key("tokenizer.ggml.precompiled_charsmap", 9)
        .put<std::uint32_t>(12)
        .put<std::uint64_t>(5);
    for (const double one : {4.0, 0.0, 0.0, 0.0, byte}) writer.put(one);
    return writer.file(5);
  };
  for (const double wrong : {1e300, -1e300, 256.0, -129.0, 0.5, std::nan("")}) {
    CHECK(where(file(wrong)) == "tokenizer.ggml.precompiled_charsmap/4");
  }
  // Bytes with a sign or without: the map is cut short.
  for (const double byte : {-1.0, 255.0}) CHECK(where(file(byte)) == "precompiled_charsmap");
}

TEST_CASE("parse_gguf of a truncated or altered file throws only Error") {
  const std::string good = small();
  std::uint64_t seed     = 5;
  const auto draw        = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed >> 33) % below;
  };
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(where(good.substr(0, size)) != "accepted");
  for (int round = 0; round < 2000; ++round) {
    std::string bytes         = good;
    bytes[draw(bytes.size())] = static_cast<char>(draw(256));
    INFO("round " << round);
    try {
      static_cast<void>(td::vocabulary::parse_gguf(bytes).encode("b a"));
    } catch (const td::Error&) {
      // the only exception that is allowed
    }
  }
}
