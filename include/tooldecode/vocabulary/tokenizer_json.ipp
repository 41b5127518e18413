/// \file
/// What tokenizer_json.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE Tokenizer TokenizerJson::build() {
  const JsonMembers file(root_);
  if (!file.has("model")) file.fail("model", "is missing");
  const nlohmann::json& model_json = root_["model"];
  const JsonMembers model(model_json, "#/model");
  if (model.value_or<std::string>("type", "BPE") != "BPE") {
    model.fail("type", "only BPE is supported");
  }
  byte_fallback_ = model.value_or("byte_fallback", false);
  read_normalizer();
  read_pre_tokenizer(file.has("pre_tokenizer") ? root_["pre_tokenizer"] : nlohmann::json(),
                     "#/pre_tokenizer");
  byte_level_ = byte_level_ || (unknown_ && decodes_bytes());
  if (!byte_level_ && !byte_fallback_) {
    file.fail("pre_tokenizer", "a tokenizer is byte-level, or its model has byte_fallback");
  }
  read_tokens(model_json);
  const Vocabulary vocabulary(entries_, options());
  const nlohmann::json& listed = model.array("merges");
  std::vector<BytePairEncoding::Merge> merges;
  for (std::size_t i = 0; i < listed.size(); ++i) merges.push_back(merge(listed[i], i));
  return Tokenizer(vocabulary,
                   BytePairEncoding(vocabulary, merges,
                                    {.characters  = !byte_level_,
                                     .whole_first = model.value_or("ignore_merges", false)}),
                   unknown_ ? *unknown_ : PreTokenizer(patterns_), prefixes_space_);
}

TOOLDECODE_INLINE void TokenizerJson::refuse(const std::string& pointer, const std::string& what) {
  throw Error(Errc::malformed_vocabulary, pointer, what);
}

TOOLDECODE_INLINE void TokenizerJson::read_normalizer() {
  if (!root_.contains("normalizer") || root_["normalizer"].is_null()) return;
  const nlohmann::json& normalizer = root_["normalizer"];
  const bool several =
      normalizer.value("type", "") == "Sequence" && normalizer.contains("normalizers");
  const nlohmann::json list =
      several ? normalizer["normalizers"] : nlohmann::json::array({normalizer});
  for (const nlohmann::json& one : list) {
    const std::string type = one.is_object() ? one.value("type", "") : "";
    const bool space       = type == "Replace" && one.contains("pattern") &&
                       one["pattern"] == nlohmann::json{{"String", " "}} &&
                       one.value("content", "") == "\u2581";
    if (type == "Prepend" && one.value("prepend", "") == "\u2581") {
      prefixes_space_ = true;
    } else if ((type == "Replace" && !space) || type == "Prepend" || type.empty()) {
      // What else may stand for a space is in the tokens too.
      refuse("#/normalizer", "the normalizer \"" + type + "\" is not supported");
    } else if (!space && type != "NFC") {  // NFC leaves text that is composed already
      set_unknown("#/normalizer", "the normalizer \"" + type + "\" is not known");
    }
  }
}

TOOLDECODE_INLINE void TokenizerJson::set_unknown(const std::string& pointer,
                                                  const std::string& what) {
  if (!unknown_) unknown_ = PreTokenizer::unknown(pointer, what);
}

TOOLDECODE_INLINE bool TokenizerJson::decodes_bytes() const {
  const auto is_byte_level = [](const nlohmann::json& part) {
    return part.is_object() && part.value("type", "") == "ByteLevel";
  };
  if (!root_.contains("decoder")) return false;
  const nlohmann::json& decoder = root_["decoder"];
  if (!decoder.is_object() || !decoder.contains("decoders")) return is_byte_level(decoder);
  const nlohmann::json& parts = decoder["decoders"];
  return std::any_of(parts.begin(), parts.end(), is_byte_level);
}

TOOLDECODE_INLINE void TokenizerJson::read_pre_tokenizer(const nlohmann::json& part,
                                                         const std::string& pointer,
                                                         unsigned depth) {
  if (part.is_null()) return;
  if (depth > 8) refuse(pointer, "pre-tokenizers are nested too deeply");
  const JsonMembers members(part, pointer);
  const auto type = members.value<std::string>("type");
  if (type == "Sequence") {
    const nlohmann::json& list = members.array("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i) {
      read_pre_tokenizer(list[i], pointer + "/pretokenizers/" + std::to_string(i), depth + 1);
    }
  } else if (type == "ByteLevel") {
    byte_level_ = true;
    if (members.value_or("use_regex", true)) patterns_.emplace_back(gpt2_pattern);
    prefixes_space_ = prefixes_space_ || members.value_or("add_prefix_space", false);
  } else if (type == "Split") {
    if (!part.contains("pattern")) refuse(pointer + "/pattern", "is missing");
    const JsonMembers pattern(part["pattern"], pointer + "/pattern");
    const auto behavior = members.value<std::string>("behavior");
    if (members.value_or("invert", false) != (behavior == "Removed") ||
        (behavior != "Isolated" && behavior != "Removed")) {
      set_unknown(pointer + "/behavior", "only a split that keeps all of the text is known");
      return;
    }
    patterns_.push_back(pattern.value<std::string>("Regex"));
  } else if (type == "Digits") {
    patterns_.emplace_back(members.value_or("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "Metaspace") {
    prefixes_space_ = members.value_or<std::string>("prepend_scheme", "always") != "never";
    if (members.value_or("split", true)) patterns_.emplace_back(" [^ ]*");
  } else {
    set_unknown(pointer + "/type", "the pre-tokenizer \"" + type + "\" is not known");
  }
}

TOOLDECODE_INLINE void TokenizerJson::read_tokens(const nlohmann::json& model) {
  if (!model.contains("vocab") || !model["vocab"].is_object())
    refuse("#/model/vocab", "must be an object");
  // Gaps between ids exist, but not so many that they would fill the memory.
  const std::size_t max = 2 * model["vocab"].size() + 65'536;
  std::size_t count     = 0;
  const auto place      = [&](const nlohmann::json& id, const std::string& pointer) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= max) {
      refuse(pointer, "a token's id is an integer not far past the number of tokens");
    }
    count = std::max(count, id.get<std::size_t>() + 1);
    return id.get<std::size_t>();
  };
  const auto put = [&](std::size_t id, Vocabulary::Entry entry) {
    if (entries_.size() < count) entries_.resize(count, {"", TokenType::unused});
    entries_[id] = std::move(entry);
  };
  for (const auto& [text, id] : model["vocab"].items()) {
    const std::string pointer = "#/model/vocab/" + text;
    put(place(id, pointer), entry(text, pointer));
  }
  if (!root_.contains("added_tokens")) return;
  const nlohmann::json& added = JsonMembers(root_).array("added_tokens");
  for (std::size_t i = 0; i < added.size(); ++i) {
    const std::string pointer = "#/added_tokens/" + std::to_string(i);
    const JsonMembers token(added[i], pointer);
    if (!added[i].contains("id")) token.fail("id", "is missing");
    put(place(added[i]["id"], pointer + "/id"),
        {token.value<std::string>("content"),
         token.value_or("special", false) ? TokenType::control : TokenType::user_defined});
  }
}

TOOLDECODE_INLINE Vocabulary::Entry TokenizerJson::entry(const std::string& text,
                                                         const std::string& pointer) const {
  if (byte_level_) {
    const auto bytes = find_alphabet_bytes(text);
    // Some vocabularies list their special tokens beside the others, as plain text.
    if (!bytes) return {text, TokenType::control};
    return {*bytes, TokenType::normal};
  }
  if (text.size() == 6 && text.starts_with("<0x") && text.back() == '>') {
    const auto byte = find_byte(text);
    if (!byte) refuse(pointer, "is no byte token");
    return {std::string(1, *byte), TokenType::byte};
  }
  return {replace_space_marks(text), TokenType::normal};
}

TOOLDECODE_INLINE BytePairEncoding::Merge TokenizerJson::merge(const nlohmann::json& listed,
                                                               std::size_t rank) const {
  const std::string place = "#/model/merges/" + std::to_string(rank);
  std::string left, right;
  if (listed.is_array() && listed.size() == 2 && listed[0].is_string() && listed[1].is_string()) {
    left  = listed[0];
    right = listed[1];
  } else if (listed.is_string()) {
    const auto text          = listed.get<std::string>();
    const std::size_t middle = text.find(' ', 1);
    if (middle == std::string::npos) refuse(place, "is no pair");
    left  = text.substr(0, middle);
    right = text.substr(middle + 1);
  } else {
    refuse(place, "is no pair");
  }
  if (!byte_level_) return {replace_space_marks(left), replace_space_marks(right)};
  const auto a = find_alphabet_bytes(left), b = find_alphabet_bytes(right);
  if (!a || !b) refuse(place, "is no pair in the byte alphabet");
  return {*a, *b};
}

TOOLDECODE_INLINE TokenId TokenizerJson::checked_id(const nlohmann::json& id) const {
  const auto number = id.get<std::int64_t>();
  if (number < 0 || number >= static_cast<std::int64_t>(entries_.size())) {
    refuse("eos_token_id", "no token has the id " + id.dump());
  }
  return static_cast<TokenId>(number);
}

TOOLDECODE_INLINE VocabularyOptions TokenizerJson::options() const {
  VocabularyOptions result;
  const auto find = [&](const std::string& name) -> std::optional<TokenId> {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const bool special =
          entries_[i].type == TokenType::control || entries_[i].type == TokenType::user_defined;
      if (special && entries_[i].bytes == name) return static_cast<TokenId>(i);
    }
    return std::nullopt;
  };
  if (!files_.tokenizer_config.empty()) {
    const nlohmann::json config = parse_json_file(files_.tokenizer_config);
    const auto named            = [&](const char* key) -> std::optional<TokenId> {
      if (!config.is_object() || !config.contains(key)) return std::nullopt;
      const nlohmann::json& token = config[key];
      if (token.is_string()) return find(token.get<std::string>());
      if (token.is_object()) return find(token.value("content", ""));
      return std::nullopt;
    };
    if (const auto end = named("eos_token")) result.end_tokens.push_back(*end);
    result.begin_token = named("bos_token");
    result.pad_token   = named("pad_token");
  }
  bool are_listed = false;
  if (!files_.generation_config.empty()) {
    const nlohmann::json config = parse_json_file(files_.generation_config);
    if (config.is_object() && config.contains("eos_token_id")) {
      const nlohmann::json& ends = config["eos_token_id"];
      for (const nlohmann::json& id : ends.is_array() ? ends : nlohmann::json::array({ends})) {
        if (!id.is_number_integer()) continue;
        result.end_tokens.push_back(checked_id(id));
        are_listed = true;
      }
    }
  }
  if (!are_listed) {
    for (const TokenId id : find_named_ends(entries_)) result.end_tokens.push_back(id);
  }
  result.end_tokens = without_false_ends(std::move(result.end_tokens), entries_);
  return result;
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE Tokenizer parse_tokenizer_json(std::string_view text, TokenizerFiles files) {
  try {
    return detail::TokenizerJson(text, files).build();
  } catch (const nlohmann::json::exception& error) {
    throw Error(Errc::malformed_vocabulary, "#", error.what());
  }
}

}  // namespace tooldecode::vocabulary
