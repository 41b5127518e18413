/// \file
/// GGUF: the tokenizer in a model file's metadata.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>

namespace tooldecode::vocabulary {

/// The key-value part of a GGUF file, versions 2 and 3, little-endian.
///
/// Numbers are kept as doubles, booleans too; arrays hold numbers or strings.
///
/// \par Complexity  O(size of the metadata)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_file} from the constructor with the byte offset
/// \par Source      ggml-org/ggml, docs/gguf.md
class GgufMetadata {
 public:
  using Numbers = std::vector<double>;
  using Strings = std::vector<std::string>;
  using Value   = std::variant<double, std::string, Numbers, Strings>;

  explicit GgufMetadata(std::string_view bytes) : bytes_(bytes) {
    if (!bytes.starts_with("GGUF")) fail("must be \"GGUF\"");
    at_                 = 4;
    const auto revision = read<std::uint32_t>();
    if (revision != 2 && revision != 3)
      fail("version " + std::to_string(revision) + ": must be 2 or 3");
    (void)read<std::uint64_t>();  // tensors
    const auto count = read<std::uint64_t>();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string key = string();
      const auto type = read<std::uint32_t>();
      values_.insert_or_assign(std::move(key), value(type));
    }
  }

  [[nodiscard]] bool has(const std::string& key) const { return values_.count(key) != 0; }
  /// The value of a key; Error{malformed_file} where it is missing or of another type.
  template <class T>
  [[nodiscard]] const T& value(const std::string& key) const {
    const auto found = values_.find(key);
    const T* value   = found == values_.end() ? nullptr : std::get_if<T>(&found->second);
    if (value == nullptr) throw Error(Errc::malformed_file, key, "must be there, and of its type");
    return *value;
  }

 private:
  enum Type : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    text,
    array,
    u64,
    i64,
    f64
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::malformed_file, "byte " + std::to_string(at_), what);
  }
  template <class T>
  T read() {
    static_assert(std::endian::native == std::endian::little);
    if (bytes_.size() - at_ < sizeof(T))
      fail("must be followed by " + std::to_string(sizeof(T)) + " bytes: the file is cut short");
    T result;
    std::memcpy(&result, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return result;
  }
  std::string string() {
    const auto size = read<std::uint64_t>();
    if (size > bytes_.size() - at_) fail("a string must not be longer than the file");
    std::string result(bytes_.substr(at_, size));
    at_ += size;
    return result;
  }
  double number(std::uint32_t type) {
    switch (type) {
      case u8:
      case boolean:
        return read<std::uint8_t>();
      case i8:
        return read<std::int8_t>();
      case u16:
        return read<std::uint16_t>();
      case i16:
        return read<std::int16_t>();
      case u32:
        return read<std::uint32_t>();
      case i32:
        return read<std::int32_t>();
      case f32:
        return static_cast<double>(read<float>());
      case u64:
        return static_cast<double>(read<std::uint64_t>());
      case i64:
        return static_cast<double>(read<std::int64_t>());
      case f64:
        return read<double>();
      default:
        fail("value type " + std::to_string(type) + ": must be from 0 to 12");
    }
  }
  Value value(std::uint32_t type) {
    if (type == text) return string();
    if (type != array) return number(type);
    const auto items = read<std::uint32_t>();
    const auto count = read<std::uint64_t>();
    if (items == array) fail("must not be an array of arrays");
    if (count > bytes_.size() - at_) fail("an array must not be longer than the file");
    if (items == text) {
      Strings result;
      for (std::uint64_t i = 0; i < count; ++i) result.push_back(string());
      return result;
    }
    Numbers result;
    for (std::uint64_t i = 0; i < count; ++i) result.push_back(number(items));
    return result;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::map<std::string, Value> values_;
};

namespace detail {

// What splits text by the patterns that a GGUF file names instead of holding them.
inline PreTokenizer gguf_pre_tokenizer(const std::string& name) {
  const std::string numbers =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (name == "gpt-2" || name == "mpt" || name == "olmo" || name == "phi-2") {
    return PreTokenizer({gpt2_pattern});
  }
  if (name == "qwen2") {
    std::string single = numbers;
    return PreTokenizer({single.erase(single.find("{1,3}"), 5)});
  }
  if (name == "llama-bpe" || name == "llama3") return PreTokenizer({numbers});
  if (name == "falcon") {
    return PreTokenizer(
        {R"([\p{P}\$\+<=>\^~\|`]+)",
         R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
         "[0-9][0-9][0-9]"});
  }
  return PreTokenizer::unknown("tokenizer.ggml.pre",
                               "the pre-tokenizer \"" + name + "\" is not known");
}

}  // namespace detail

/// Reads the tokenizer of a GGUF file: models `gpt2` (byte-level BPE) and `llama` (SentencePiece).
///
/// A text ends with the tokens that the file names as ends of a text, turn or message
/// (`eos_token_id`, `eos_token_ids`, `eot_token_id`, `eom_token_id`) and with those of
/// `find_named_ends`. A vocabulary whose pre-tokenizer is not known is read all the same; only
/// `encode` needs it.
///
/// \par Complexity  O(size of the metadata)
/// \par Errors      Error{malformed_file, malformed_vocabulary, malformed_pattern} with the place
[[nodiscard]] inline Tokenizer parse_gguf(std::string_view bytes) {
  const GgufMetadata file(bytes);
  const std::string prefix = "tokenizer.ggml.";
  const auto& tokens       = file.value<GgufMetadata::Strings>(prefix + "tokens");
  const auto& types        = file.value<GgufMetadata::Numbers>(prefix + "token_type");
  const auto& model        = file.value<std::string>(prefix + "model");
  if (types.size() != tokens.size()) {
    throw Error(Errc::malformed_vocabulary, prefix + "token_type",
                std::to_string(types.size()) + " types: must be as long as the tokens, " +
                    std::to_string(tokens.size()));
  }
  if (model != "gpt2" && model != "llama") {
    throw Error(Errc::malformed_vocabulary, prefix + "model", model, "must be gpt2 or llama");
  }
  const bool byte_level = model == "gpt2";
  std::vector<Vocabulary::Entry> entries;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string place = prefix + "tokens/" + std::to_string(i);
    if (!(types[i] >= 1 && types[i] <= 6)) {
      throw Error(Errc::malformed_vocabulary, place + " type", types[i], "must be from 1 to 6");
    }
    const auto type  = static_cast<TokenType>(static_cast<int>(types[i]));
    std::string text = tokens[i];
    if (type == TokenType::byte) {
      unsigned value = 0;
      if (text.size() != 6 || std::sscanf(text.c_str(), "<0x%2X>", &value) != 1) {
        throw Error(Errc::malformed_vocabulary, place, "must be a byte's token, as <0x0A> is");
      }
      text = std::string(1, static_cast<char>(value));
    } else if (byte_level && type == TokenType::normal) {
      const auto plain = find_alphabet_bytes(text);
      if (!plain) throw Error(Errc::malformed_vocabulary, place, "must be in the byte alphabet");
      text = *plain;
    } else if (!byte_level) {
      text = replace_space_marks(text);
    }
    entries.push_back({std::move(text), type});
  }
  const auto checked = [&](double number) -> std::optional<TokenId> {
    if (!(number >= 0 && number < static_cast<double>(tokens.size()))) return std::nullopt;
    return static_cast<TokenId>(number);
  };
  const auto id = [&](const char* key) -> std::optional<TokenId> {
    return file.has(prefix + key) ? checked(file.value<double>(prefix + key)) : std::nullopt;
  };
  std::vector<TokenId> ends;
  const auto add_end = [&](std::optional<TokenId> end) {
    if (end) ends.push_back(*end);
  };
  add_end(id("eos_token_id"));
  if (file.has(prefix + "eos_token_ids")) {
    for (const double one : file.value<GgufMetadata::Numbers>(prefix + "eos_token_ids"))
      add_end(checked(one));
  }
  for (const char* key : {"eot_token_id", "eom_token_id"}) add_end(id(key));
  for (const TokenId end : find_named_ends(entries)) ends.push_back(end);
  VocabularyOptions options;
  options.end_tokens  = without_message_ends(std::move(ends), entries);
  options.begin_token = id("bos_token_id");
  options.pad_token   = id("padding_token_id");
  const Vocabulary vocabulary(entries, options);
  if (!byte_level) {
    const auto& scores = file.value<GgufMetadata::Numbers>(prefix + "scores");
    const bool space   = !file.has(prefix + "add_space_prefix") ||
                       file.value<double>(prefix + "add_space_prefix") != 0;
    return Tokenizer(vocabulary,
                     BytePairEncoding(vocabulary, std::vector<float>(scores.begin(), scores.end())),
                     {}, space);
  }
  std::vector<BytePairEncoding::Merge> merges;
  for (const std::string& merge : file.value<GgufMetadata::Strings>(prefix + "merges")) {
    merges.push_back(split_merge(merge, merges.size()));
  }
  const std::string pre =
      file.has(prefix + "pre") ? file.value<std::string>(prefix + "pre") : "gpt-2";
  return Tokenizer(vocabulary, BytePairEncoding(vocabulary, merges, {}),
                   detail::gguf_pre_tokenizer(pre));
}

}  // namespace tooldecode::vocabulary
