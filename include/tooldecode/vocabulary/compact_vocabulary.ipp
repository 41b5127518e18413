#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE JsonMembers::JsonMembers(const JsonValue& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {
  if (!object_.is_object()) fail("", "must be an object");
}

TOOLDECODE_INLINE void JsonMembers::fail(const std::string& key, const std::string& what) const {
  throw Error(Errc::malformed_vocabulary, key.empty() ? pointer_ : pointer_ + '/' + key, what);
}

TOOLDECODE_INLINE bool JsonMembers::has(const char* key) const {
  return object_.contains(key) && !object_[key].is_null();
}

TOOLDECODE_INLINE const JsonValue& JsonMembers::array(const char* key) const {
  if (!has(key) || !object_[key].is_array()) fail(key, "must be an array");
  return object_[key];
}

TOOLDECODE_INLINE void JsonMembers::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& member : object_.items()) {
    if (std::find(keys.begin(), keys.end(), member.first) == keys.end()) {
      fail(member.first, "must not be there: this form has no such member");
    }
  }
}

TOOLDECODE_INLINE std::string decode_base64(std::string_view text, const std::string& place) {
  const auto refuse = [&] { throw Error(Errc::malformed_vocabulary, place, "must be base64"); };
  if (text.size() % 4 != 0) refuse();
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int held           = 0;
  for (const char c : text) {
    const std::size_t digit =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
            .find(c);
    if (digit == std::string_view::npos) refuse();
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((held += 6) < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  // The remaining bits must be fewer than 6 and zero, or the text is damaged.
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) refuse();
  return bytes;
}

TOOLDECODE_INLINE BytePairEncoding::Merge split_merge(std::string_view text, std::size_t rank) {
  const std::size_t space = text.find(' ', 1);
  const auto left         = find_alphabet_bytes(text.substr(0, space));
  const auto right =
      space == std::string_view::npos ? std::nullopt : find_alphabet_bytes(text.substr(space + 1));
  if (!left || !right) {
    throw Error(Errc::malformed_vocabulary, "merge " + std::to_string(rank),
                "must be two texts in the byte alphabet with a space between them");
  }
  return {*left, *right};
}

TOOLDECODE_INLINE BytePairEncoding::Merge split_marked_merge(std::string_view text,
                                                             std::size_t rank) {
  const std::size_t space = text.find(' ', 1);
  if (space == std::string_view::npos) {
    throw Error(Errc::malformed_vocabulary, "merge " + std::to_string(rank),
                "must be two texts with a space between them");
  }
  return {replace_space_marks(text.substr(0, space)), replace_space_marks(text.substr(space + 1))};
}

TOOLDECODE_INLINE Tokenizer parse_compact_vocabulary(std::string_view json_text) {
  return read_compact_vocabulary(text::parse_json_file(json_text));
}

TOOLDECODE_INLINE Tokenizer read_compact_vocabulary(const JsonValue& root) {
  const JsonMembers file(root);
  const JsonValue& tokens = file.array("tokens_b64");
  const JsonValue& types  = file.array("token_types");
  if (tokens.size() != types.size())
    file.fail("token_types", std::to_string(types.size()) +
                                 " types: must be as long as tokens_b64, " +
                                 std::to_string(tokens.size()));
  if (file.has("n_tokens") && file.value<std::size_t>("n_tokens") != tokens.size()) {
    file.fail("n_tokens", std::to_string(file.value<std::size_t>("n_tokens")) +
                              ": must be the number of tokens, " + std::to_string(tokens.size()));
  }
  file.allow({"name", "type", "source", "license", "note", "n_tokens", "n_base_tokens", "bos_id",
              "eos_id", "pad_id", "tokens_b64", "token_types", "merges", "scores", "rank_is_id",
              "pre_tokenizer", "add_space_prefix", "model_vocab_size"});
  std::vector<Vocabulary::Entry> entries;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string place = "#/tokens_b64/" + std::to_string(i);
    if (!tokens[i].is_string() || !types[i].is_number_integer()) {
      throw Error(Errc::malformed_vocabulary, place,
                  "must be a string, and its type a whole number");
    }
    const auto type = types[i].get<std::int64_t>();
    if (type < 1 || type > 6)
      throw Error(Errc::malformed_vocabulary, place,
                  "type " + std::to_string(type) + ": must be from 1 to 6");
    entries.push_back(
        {decode_base64(tokens[i].get<std::string>(), place), static_cast<TokenType>(type)});
  }
  VocabularyOptions options;
  const auto id = [&](const char* key) {
    const auto number = file.value<std::int64_t>(key);
    if (number < 0 || number >= static_cast<std::int64_t>(tokens.size())) {
      file.fail(key, std::to_string(number) + ": must be a token's id, below " +
                         std::to_string(tokens.size()));
    }
    return static_cast<TokenId>(number);
  };
  if (file.has("eos_id")) options.end_tokens = {id("eos_id")};
  if (file.has("bos_id")) options.begin_token = id("bos_id");
  if (file.has("model_vocab_size")) options.size = file.value<std::size_t>("model_vocab_size");
  // Limits the padding to what real models have, so that masks cannot fill the memory.
  if (options.size > 2 * tokens.size() + 65'536) {
    file.fail("model_vocab_size", std::to_string(options.size) +
                                      ": must be at most 65536 more than twice the tokens, " +
                                      std::to_string(tokens.size()));
  }
  const Vocabulary vocabulary(entries, options);
  const auto type = file.value<std::string>("type");
  if (type == "spm-bpe") {
    return Tokenizer(vocabulary,
                     BytePairEncoding(vocabulary, file.value<std::vector<float>>("scores")), {},
                     file.value_or("add_space_prefix", false));
  }
  if (type != "bpe-bytelevel")
    file.fail("type", '"' + type + "\": must be bpe-bytelevel or spm-bpe");
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].type != TokenType::normal) continue;
    const auto [at, fresh] = known.emplace(entries[i].bytes, i);
    if (!fresh) {
      throw Error(Errc::malformed_vocabulary, "#/tokens_b64/" + std::to_string(i),
                  "must write other bytes than token " + std::to_string(at->second));
    }
  }
  std::vector<BytePairEncoding::Merge> merges;
  for (const auto& merge : file.value<std::vector<std::string>>("merges")) {
    merges.push_back(split_merge(merge, merges.size()));
  }
  std::vector<std::string> patterns;
  if (file.has("pre_tokenizer")) {
    patterns = JsonMembers(root["pre_tokenizer"], "#/pre_tokenizer")
                   .value<std::vector<std::string>>("regex");
  }
  return Tokenizer(
      vocabulary,
      BytePairEncoding(vocabulary, merges, {.whole_first = file.value_or("rank_is_id", false)}),
      PreTokenizer(patterns));
}

}  // namespace tooldecode::vocabulary
