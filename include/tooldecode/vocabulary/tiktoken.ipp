#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/tiktoken.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE Tokenizer parse_tiktoken(std::string_view text, std::string_view name) {
  std::vector<Vocabulary::Entry> entries;
  std::size_t number = 0, tokens = 0;
  while (!text.empty()) {
    const std::string place = "line " + std::to_string(++number);
    const std::size_t end   = std::min(text.find('\n'), text.size());
    std::string_view line   = text.substr(0, end);
    text                    = text.substr(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    std::size_t rank        = 0;
    const char* last        = line.data() + line.size();
    const char* first       = space == std::string_view::npos ? last : line.data() + space + 1;
    const auto [stop, code] = std::from_chars(first, last, rank);
    if (code != std::errc() || stop != last)
      throw Error(Errc::malformed_vocabulary, place,
                  "must be a token in base64, a space and its rank");
    // Ranks of special tokens may be left out (p50k_base), but no gaps that would fill the memory.
    if (rank < entries.size() || rank - tokens > 65'536)
      throw Error(Errc::malformed_vocabulary, place,
                  "rank " + std::to_string(rank) + ": must be above that of the line before, " +
                      "and at most 65536 more than there are tokens before it, " +
                      std::to_string(tokens));
    ++tokens;
    entries.resize(rank, {"", TokenType::unused});
    entries.push_back({decode_base64(line.substr(0, space), place), TokenType::normal});
  }
  struct KnownEncoding {
    std::string_view name, patterns;
    std::size_t end;
  };
  static constexpr std::array<KnownEncoding, 6> known{{{"cl100k_base", "llama3", 100257},
                                                       {"o200k_base", "gpt-4o", 199999},
                                                       {"p50k_base", "gpt-2", 50256},
                                                       {"r50k_base", "gpt-2", 50256},
                                                       {"gpt2", "gpt-2", 50256},
                                                       {"qwen", "qwen2", 151643}}};
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const KnownEncoding& one) { return one.name == name; });
  if (found == known.end()) {
    const Vocabulary vocabulary(entries);
    return Tokenizer(
        vocabulary, BytePairEncoding::by_ids(vocabulary),
        PreTokenizer::unknown("the encoding", '"' + std::string(name) + "\" is not known"));
  }
  while (entries.size() < found->end) entries.push_back({"", TokenType::unused});
  if (entries.size() == found->end) {
    entries.push_back({"<|endoftext|>", TokenType::control});
  } else {
    entries[found->end] = {"<|endoftext|>", TokenType::control};  // p50k_base has tokens after it
  }
  const Vocabulary vocabulary(entries, {.end_tokens = {static_cast<TokenId>(found->end)}});
  return Tokenizer(vocabulary, BytePairEncoding::by_ids(vocabulary),
                   PreTokenizer(find_pre_tokenizer(found->patterns)->patterns));
}

TOOLDECODE_INLINE Tokenizer parse_tekken(std::string_view json_text) {
  return read_tekken(text::parse_json_file(json_text));
}

TOOLDECODE_INLINE Tokenizer read_tekken(const JsonValue& root) {
  const JsonMembers file(root);
  if (!file.has("config")) file.fail("config", "must be an object");
  const JsonMembers config(root["config"], "#/config");
  const auto size                     = config.value<std::size_t>("default_vocab_size");
  const auto specials                 = config.value<std::size_t>("default_num_special_tokens");
  const JsonValue& listed             = file.array("vocab");
  constexpr std::size_t most_specials = std::size_t{1} << 16;  // what a file lists bounds the rest
  if (specials > most_specials) {
    config.fail("default_num_special_tokens", "must be at most " + std::to_string(most_specials));
  }
  if (specials > size || size - specials > listed.size()) {
    config.fail("default_vocab_size", std::to_string(size) +
                                          ": must be from the number of special tokens, " +
                                          std::to_string(specials) + ", to that of all, " +
                                          std::to_string(specials + listed.size()));
  }
  static constexpr std::array<std::string_view, 10> first{"<unk>",
                                                          "<s>",
                                                          "</s>",
                                                          "[INST]",
                                                          "[/INST]",
                                                          "[AVAILABLE_TOOLS]",
                                                          "[/AVAILABLE_TOOLS]",
                                                          "[TOOL_RESULTS]",
                                                          "[/TOOL_RESULTS]",
                                                          "[TOOL_CALLS]"};
  std::vector<Vocabulary::Entry> entries(specials, {"", TokenType::unused});
  if (file.has("special_tokens")) {
    const JsonValue& special = file.array("special_tokens");
    for (std::size_t i = 0; i < special.size(); ++i) {
      const JsonMembers token(special[i], "#/special_tokens/" + std::to_string(i));
      const auto rank = token.value<std::size_t>("rank");
      if (rank >= specials)
        token.fail("rank", std::to_string(rank) + ": must be below " + std::to_string(specials));
      entries[rank] = {token.value<std::string>("token_str"), token.value_or("is_control", true)
                                                                  ? TokenType::control
                                                                  : TokenType::user_defined};
    }
  } else {
    for (std::size_t i = 0; i < std::min(specials, first.size()); ++i)
      entries[i] = {std::string(first[i]), TokenType::control};
  }
  for (std::size_t i = 0; i < size - specials; ++i) {
    const std::string place = "#/vocab/" + std::to_string(i);
    const JsonMembers token(listed[i], place);
    if (token.value<std::size_t>("rank") != i) token.fail("rank", "must be " + std::to_string(i));
    entries.push_back(
        {decode_base64(token.value<std::string>("token_bytes"), place + "/token_bytes"),
         TokenType::normal});
  }
  VocabularyOptions options{.end_tokens = find_named_ends(entries)};
  for (std::size_t i = 0; i < specials; ++i) {
    if (entries[i].bytes == "<s>") options.begin_token = static_cast<TokenId>(i);
  }
  const Vocabulary vocabulary(entries, std::move(options));
  return Tokenizer(vocabulary, BytePairEncoding::by_ids(vocabulary),
                   PreTokenizer({config.value<std::string>("pattern")}));
}

}  // namespace tooldecode::vocabulary
