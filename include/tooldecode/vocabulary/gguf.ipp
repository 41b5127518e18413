#pragma once

#include <utility>

#include <tooldecode/core/read_file.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/gguf.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/text_rules.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE GgufTokenizer::GgufTokenizer(const GgufMetadata& file)
    : file_(file),
      tokens_(file.value<GgufMetadata::Strings>(key("tokens"))),
      model_(file.value<std::string>(key("model"))) {
  if (!is_byte_level() && model_ != "llama" && model_ != "gemma4" && model_ != "t5" &&
      model_ != "bert") {
    throw Error(Errc::malformed_vocabulary, key("model"), model_,
                "must be gpt2, llama, gemma4, t5 or bert");
  }
  read_entries();
}

TOOLDECODE_INLINE Tokenizer GgufTokenizer::build() const {
  const Vocabulary vocabulary(entries_, options());
  if (model_ == "bert") {  // WordPiece lower-cases text and strips accents
    return Tokenizer(vocabulary,
                     BytePairEncoding(vocabulary, std::vector<BytePairEncoding::Merge>(), {}),
                     PreTokenizer::unknown(key("model"), "word pieces cannot be made of a text"));
  }
  if (model_ == "llama") {
    // As llama.cpp: after a control token a text begins anew.
    return Tokenizer(vocabulary, BytePairEncoding(vocabulary, scores()), {},
                     {.first  = AddedTokens::of(vocabulary),
                      .prefix = flag("add_space_prefix", true) ? SpacePrefix::every_stretch
                                                               : SpacePrefix::none});
  }
  if (model_ == "t5") {
    return Tokenizer(
        vocabulary, Unigram(vocabulary, scores()), {},
        TextRules::of_sentencepiece(vocabulary, character_map(), flag("add_space_prefix", true),
                                    flag("remove_extra_whitespaces", true)));
  }
  const std::string name = model_ == "gemma4"      ? model_
                           : file_.has(key("pre")) ? file_.value<std::string>(key("pre"))
                                                   : std::string("gpt-2");
  const auto pre         = find_pre_tokenizer(name);
  return Tokenizer(
      vocabulary,
      BytePairEncoding(vocabulary, merges(),
                       {.characters  = !is_byte_level(),
                        .whole_first = pre && pre->whole_first,
                        .left_out    = left_out_}),
      pre ? PreTokenizer(pre->patterns)
          : PreTokenizer::unknown(key("pre"), "the pre-tokenizer \"" + name + "\" is not known"));
}

TOOLDECODE_INLINE bool GgufTokenizer::flag(const char* name, bool otherwise) const {
  return file_.has(key(name)) ? file_.value<double>(key(name)) != 0 : otherwise;
}

TOOLDECODE_INLINE std::vector<float> GgufTokenizer::scores() const {
  const auto& listed = file_.value<GgufMetadata::Numbers>(key("scores"));
  return {listed.begin(), listed.end()};
}

TOOLDECODE_INLINE std::string GgufTokenizer::character_map() const {
  std::string bytes;
  if (!file_.has(key("precompiled_charsmap"))) return bytes;
  for (const double byte : file_.value<GgufMetadata::Numbers>(key("precompiled_charsmap"))) {
    // The array may be of any type of numbers; bytes may have a sign or none.
    if (!(byte >= -128 && byte <= 255 && byte == static_cast<int>(byte))) {
      throw Error(Errc::malformed_vocabulary,
                  key("precompiled_charsmap") + '/' + std::to_string(bytes.size()), byte,
                  "must be a byte");
    }
    bytes.push_back(static_cast<char>(static_cast<int>(byte)));
  }
  return bytes;
}

TOOLDECODE_INLINE std::vector<BytePairEncoding::Merge> GgufTokenizer::merges() const {
  std::vector<BytePairEncoding::Merge> result;
  for (const std::string& merge : file_.value<GgufMetadata::Strings>(key("merges"))) {
    result.push_back(is_byte_level() ? split_merge(merge, result.size())
                                     : split_marked_merge(merge, result.size()));
  }
  return result;
}

TOOLDECODE_INLINE void GgufTokenizer::read_entries() {
  const auto& types = file_.value<GgufMetadata::Numbers>(key("token_type"));
  if (types.size() != tokens_.size()) {
    throw Error(Errc::malformed_vocabulary, key("token_type"),
                std::to_string(types.size()) + " types: must be as long as the tokens, " +
                    std::to_string(tokens_.size()));
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string place = key("tokens/") + std::to_string(i);
    if (!(types[i] >= 1 && types[i] <= 6)) {
      throw Error(Errc::malformed_vocabulary, place + " type", types[i], "must be from 1 to 6");
    }
    const auto type = static_cast<TokenType>(static_cast<int>(types[i]));
    entries_.push_back({text_of(i, type, place), type});
  }
}

TOOLDECODE_INLINE std::string GgufTokenizer::text_of(std::size_t i, TokenType type,
                                                     const std::string& place) {
  const std::string& text = tokens_[i];
  if (type == TokenType::byte) {
    const auto byte = find_byte(text);
    if (!byte)
      throw Error(Errc::malformed_vocabulary, place, "must be a byte's token, as <0x0A> is");
    return std::string(1, *byte);
  }
  if (!is_byte_level()) return replace_space_marks(text);
  if (type != TokenType::normal) return text;
  if (auto bytes = find_alphabet_bytes(text)) return *std::move(bytes);
  left_out_.push_back(static_cast<TokenId>(i));  // in Command R: they write themselves
  return text;
}

TOOLDECODE_INLINE std::optional<TokenId> GgufTokenizer::checked(double number) const {
  if (!(number >= 0 && number < static_cast<double>(tokens_.size()))) return std::nullopt;
  return static_cast<TokenId>(number);
}

TOOLDECODE_INLINE std::optional<TokenId> GgufTokenizer::id(const char* name) const {
  return file_.has(key(name)) ? checked(file_.value<double>(key(name))) : std::nullopt;
}

TOOLDECODE_INLINE VocabularyOptions GgufTokenizer::options() const {
  std::vector<TokenId> ends;
  const auto add_end = [&](std::optional<TokenId> end) {
    if (end) ends.push_back(*end);
  };
  add_end(id("eos_token_id"));
  if (file_.has(key("eos_token_ids"))) {
    for (const double one : file_.value<GgufMetadata::Numbers>(key("eos_token_ids")))
      add_end(checked(one));
  }
  for (const char* name : {"eot_token_id", "eom_token_id", "fim_pad_token_id", "fim_rep_token_id",
                           "fim_sep_token_id"}) {
    add_end(id(name));
  }
  for (const TokenId end : find_named_ends(entries_)) ends.push_back(end);
  return {.end_tokens  = without_false_ends(std::move(ends), entries_),
          .begin_token = id("bos_token_id")};
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE Tokenizer parse_gguf(std::string_view bytes) {
  const GgufMetadata file(bytes);
  return detail::GgufTokenizer(file).build();
}

TOOLDECODE_INLINE Tokenizer load_gguf(const std::filesystem::path& path) {
  constexpr std::size_t longest = std::size_t{1} << 30;  // of metadata; vocabularies have some MB
  for (std::size_t most = std::size_t{4} << 20;; most *= 2) {
    const std::string bytes = core::read_file_head(path, most);
    try {
      return parse_gguf(bytes);
    } catch (const GgufCutShort& error) {
      if (bytes.size() < most) throw error.within(path.string());
      if (error.needed() > longest) {
        throw Error(Errc::limit_exceeded, path.string(),
                    std::string("metadata must not take more than 1 GiB: ") + error.what());
      }
      most = std::max<std::size_t>(most, error.needed() / 2);
    } catch (const Error& error) {
      throw error.within(path.string());
    }
  }
}

}  // namespace tooldecode::vocabulary
