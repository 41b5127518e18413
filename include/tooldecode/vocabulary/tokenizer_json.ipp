#pragma once

#include <algorithm>
#include <array>
#include <unordered_set>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/oniguruma_pattern.hpp>
#include <tooldecode/vocabulary/tokenizer_json.hpp>

namespace tooldecode::vocabulary::detail {

inline constexpr const char* space_mark = "\u2581";

TOOLDECODE_INLINE Tokenizer TokenizerJson::build() {
  const JsonMembers file(root_);
  if (!file.has("model")) file.fail("model", "is missing");
  const JsonMembers model(root_["model"], "#/model");
  read_model_type(model);
  read_normalizer();
  if (file.has("pre_tokenizer")) read_pre_tokenizer(root_["pre_tokenizer"], "#/pre_tokenizer");
  read_decoder();
  read_tokens();
  // The stretches between these have no space of the normalizer's before them.
  if (!second_prefix_.empty() && !second_added_.empty()) {
    set_unknown(second_prefix_, "a space is put before pieces of a text");
  }
  const Vocabulary vocabulary(entries_, options());
  Tokenizer::Encoding pieces = encoding(vocabulary);  // may set unknown_
  return Tokenizer(vocabulary, std::move(pieces), pre_tokenizer(), text_rules());
}

TOOLDECODE_INLINE PreTokenizer TokenizerJson::pre_tokenizer() const {
  if (unknown_) return *unknown_;
  try {
    return PreTokenizer::of_splits(splits_);
  } catch (const Error& error) {
    // Oniguruma may compile what PCRE2 does not.
    return PreTokenizer::unknown("#/pre_tokenizer", error.what());
  }
}

TOOLDECODE_INLINE void TokenizerJson::refuse(const std::string& pointer, const std::string& what) {
  throw Error(Errc::malformed_vocabulary, pointer, what);
}

TOOLDECODE_INLINE void TokenizerJson::set_unknown(const std::string& pointer,
                                                  const std::string& what) {
  if (!unknown_) unknown_ = PreTokenizer::unknown(pointer, what);
}

TOOLDECODE_INLINE void TokenizerJson::read_model_type(const JsonMembers& model) {
  // Files of old versions have no type: deduce it from the members.
  const char* guessed = model.has("merges")                                        ? "BPE"
                        : model.has("vocab") && root_["model"]["vocab"].is_array() ? "Unigram"
                        : model.has("continuing_subword_prefix")                   ? "WordPiece"
                        : model.has("unk_token")                                   ? "WordLevel"
                                                                                   : "BPE";
  model_type_         = model.value_or<std::string>("type", guessed);
  byte_fallback_      = model.value_or("byte_fallback", false);
  if (model_type_ == "BPE") {
    if (model.value_or("dropout", 0.0) > 0) {
      set_unknown("#/model/dropout", "merges are left out at random");
    }
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.value_or<std::string>(affix, "").empty()) {
        set_unknown(std::string("#/model/") + affix, "words are not encoded apart");
      }
    }
  } else if (model_type_ == "WordPiece" || model_type_ == "WordLevel") {
    set_unknown("#/model/type", "texts are not encoded by models of " + model_type_);
  } else if (model_type_ != "Unigram") {
    model.fail("type", '"' + model_type_ + "\": must be BPE, Unigram, WordPiece or WordLevel");
  }
}

TOOLDECODE_INLINE void TokenizerJson::read_normalizer() {
  if (root_.contains("normalizer") && !root_["normalizer"].is_null()) {
    read_normalizer(root_["normalizer"], "#/normalizer");
  }
  is_marked_ = normalizes_spaces_ = !mark_.empty();
}

TOOLDECODE_INLINE void TokenizerJson::read_normalizer(const JsonValue& part,
                                                      const std::string& pointer, unsigned depth) {
  const JsonMembers members(part, pointer);
  if (depth > 8) refuse(pointer, "normalizers are nested too deeply");
  const auto type = members.value<std::string>("type");
  if (type == "Sequence") {
    const JsonValue& list = members.array("normalizers");
    for (std::size_t i = 0; i < list.size(); ++i) {
      read_normalizer(list[i], pointer + "/normalizers/" + std::to_string(i), depth + 1);
    }
    return;
  }
  if (type == "Replace") return read_replace(part, pointer);
  if (type == "Prepend") {
    const auto text = members.value<std::string>("prepend");
    if (text != space_mark && text != " ") {
      // Without a decoder, only this tells which text stands for a space.
      if (!JsonMembers(root_).has("decoder")) {
        refuse(pointer + "/prepend", "must be the mark for a space, as the file has no decoder");
      }
      add_other(OtherNormalizers::unknown);
      return set_unknown(pointer + "/prepend", "no other text than a space is put before a text");
    }
    prepends_mark_ = text != " ";
    return set_prefix(SpacePrefix::every_stretch, pointer);
  }
  if (type == "ByteLevel") {
    byte_level_ = true;
    add_other(OtherNormalizers::unknown);
    return set_unknown(pointer, "bytes are spelt before a text is split");
  }
  const bool is_change = type == "Precompiled" || type == "Strip";
  if (is_change && (!mark_.empty() || prefix_ != SpacePrefix::none)) {
    add_other(OtherNormalizers::unknown);
    return set_unknown(pointer, "the normalizer must stand before what marks spaces");
  }
  if (type == "Precompiled") {
    const std::string place = pointer + "/precompiled_charsmap";
    const auto map = decode_base64(members.value<std::string>("precompiled_charsmap"), place);
    try {
      changes_.push_back({TextChange::Kind::characters, CharacterMap(map)});
    } catch (const Error& error) {
      throw error.within(place);
    }
  } else if (type == "Strip") {
    if (members.value_or("strip_left", true)) {
      changes_.push_back({TextChange::Kind::strip_left, {}});
    }
    if (members.value_or("strip_right", true)) {
      changes_.push_back({TextChange::Kind::strip_right, {}});
    }
  } else if (type != "NFC") {  // text is assumed to be composed
    set_unknown(pointer, "the normalizer \"" + type + "\" is not known");
    constexpr std::array<std::string_view, 7> harmless{
        "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Nmt", "BertNormalizer"};
    const bool is_harmless = std::find(harmless.begin(), harmless.end(), type) != harmless.end();
    const bool lowers =
        type == "Lowercase" || (type == "BertNormalizer" && members.value_or("lowercase", true));
    add_other(is_harmless ? lowers ? OtherNormalizers::lowercase : OtherNormalizers::harmless
                          : OtherNormalizers::unknown);
  }
}

TOOLDECODE_INLINE void TokenizerJson::add_other(OtherNormalizers kind) {
  other_normalizers_ = std::max(other_normalizers_, kind);
}

TOOLDECODE_INLINE void TokenizerJson::read_replace(const JsonValue& part,
                                                   const std::string& pointer) {
  const JsonMembers members(part, pointer);
  const auto content = members.value<std::string>("content");
  if (!part.contains("pattern")) members.fail("pattern", "is missing");
  const JsonValue& pattern = part["pattern"];
  if (pattern == JsonValue{{"String", " "}}) {
    if (content == " ") return;
    if (!is_one_character(content)) {
      add_other(OtherNormalizers::unknown);
      return set_unknown(pointer + "/content", "a space is replaced by more than a mark");
    }
    return set_mark(content, pointer);
  }
  const bool keeps_spaces = content == " " || content == space_mark;
  if (pattern == JsonValue{{"Regex", " {2,}"}} && keeps_spaces && mark_.empty() &&
      prefix_ == SpacePrefix::none) {
    changes_.push_back({TextChange::Kind::collapse_spaces, {}});
    collapses_to_mark_ = content == space_mark;
    return;
  }
  if (!JsonMembers(root_).has("decoder")) {
    // Anything else that stands for a space is in the tokens too.
    refuse(pointer, "must replace a space by its mark, as the file has no decoder");
  }
  add_other(OtherNormalizers::unknown);
  set_unknown(pointer, "no other text than a space is replaced");
}

TOOLDECODE_INLINE void TokenizerJson::set_mark(const std::string& mark,
                                               const std::string& pointer) {
  if (!mark_.empty() && mark_ != mark) {
    set_unknown(pointer, "another mark stands for a space already");
  }
  mark_ = mark;
}

TOOLDECODE_INLINE void TokenizerJson::set_prefix(SpacePrefix prefix, const std::string& pointer) {
  const bool is_second =
      prefix_ == SpacePrefix::every_stretch && prefix != SpacePrefix::every_stretch;
  // A stretch that already has a space before it gets no other.
  if (is_second && splits_.empty()) {
    second_prefix_ = pointer;
    return;
  }
  if (prefix_ != SpacePrefix::none || !splits_.empty()) {
    return set_unknown(pointer, "a space is put before pieces of a text");
  }
  prefix_ = prefix;
}

TOOLDECODE_INLINE void TokenizerJson::read_pre_tokenizer(const JsonValue& part,
                                                         const std::string& pointer,
                                                         unsigned depth) {
  if (depth > 8) refuse(pointer, "pre-tokenizers are nested too deeply");
  const JsonMembers members(part, pointer);
  const auto type = members.value<std::string>("type");
  if (type == "Sequence") {
    const JsonValue& list = members.array("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i) {
      read_pre_tokenizer(list[i], pointer + "/pretokenizers/" + std::to_string(i), depth + 1);
    }
  } else if (type == "ByteLevel") {
    if (is_marked_) set_unknown(pointer, "a mark for spaces is spelt as bytes");
    if (members.value_or("add_prefix_space", false)) {
      set_prefix(SpacePrefix::unspaced_stretches, pointer + "/add_prefix_space");
    }
    if (members.value_or("use_regex", true)) add_split({gpt2_pattern}, pointer);
    byte_level_ = true;
  } else if (type == "Split") {
    read_split(part, pointer);
  } else if (type == "Digits") {
    add_split({members.value_or("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"}, pointer);
  } else if (type == "Metaspace") {
    read_metaspace(part, pointer);
  } else {
    set_unknown(pointer + "/type", "the pre-tokenizer \"" + type + "\" is not known");
  }
}

TOOLDECODE_INLINE void TokenizerJson::add_split(Split split, const std::string& pointer) {
  if (byte_level_) set_unknown(pointer, "a text is split after its bytes are spelt");
  splits_.push_back(std::move(split));
}

TOOLDECODE_INLINE void TokenizerJson::read_split(const JsonValue& part,
                                                 const std::string& pointer) {
  const JsonMembers members(part, pointer);
  if (!part.contains("pattern")) refuse(pointer + "/pattern", "is missing");
  const JsonMembers pattern(part["pattern"], pointer + "/pattern");
  const auto behavior = members.value<std::string>("behavior");
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> behaviors{
      {{"Isolated", SplitBehavior::isolated},
       {"Removed", SplitBehavior::removed},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next},
       {"Contiguous", SplitBehavior::contiguous}}};
  const auto known = std::find_if(behaviors.begin(), behaviors.end(),
                                  [&](const auto& one) { return one.first == behavior; });
  if (known == behaviors.end()) {
    members.fail("behavior", '"' + behavior +
                                 "\": must be Isolated, Removed, MergedWithPrevious, "
                                 "MergedWithNext or Contiguous");
  }
  Split split{
      .pattern = "", .behavior = known->second, .inverted = members.value_or("invert", false)};
  if (pattern.has("String")) {
    split.is_text = true;
    split.pattern = pattern.value<std::string>("String");
    if (is_marked_) {
      // The text has marks instead of spaces, so a pattern with a space never matches.
      if (split.pattern.find(' ') != std::string::npos) split.pattern.clear();
      split.pattern = TokenSpelling::marked(mark_, false).write(split.pattern);
    }
  } else {
    const auto expression = pattern.value<std::string>("Regex");
    try {
      split.pattern = translate_oniguruma(expression);
    } catch (const Error& error) {
      set_unknown(pointer + "/pattern/Regex", error.what());
    }
    if (is_marked_) set_unknown(pointer, "an expression splits a text with marks for spaces");
  }
  add_split(std::move(split), pointer);
}

TOOLDECODE_INLINE void TokenizerJson::read_metaspace(const JsonValue& part,
                                                     const std::string& pointer) {
  const JsonMembers members(part, pointer);
  if (byte_level_) set_unknown(pointer, "spaces are marked after bytes are spelt");
  const auto mark = members.value_or<std::string>("replacement", space_mark);
  if (!is_one_character(mark)) members.fail("replacement", "must be one character");
  set_mark(mark, pointer);
  is_marked_  = true;
  auto scheme = members.value_or<std::string>("prepend_scheme", "always");
  // The predecessor of prepend_scheme in old files.
  if (!members.value_or("add_prefix_space", true)) scheme = "never";
  if (scheme == "always") {
    set_prefix(SpacePrefix::unspaced_stretches, pointer);
  } else if (scheme == "first") {
    set_prefix(SpacePrefix::unspaced_start, pointer);
  } else if (scheme != "never") {
    members.fail("prepend_scheme", '"' + scheme + "\": must be always, first or never");
  }
  if (members.value_or("split", true)) {
    add_split({.pattern = " ", .is_text = true, .behavior = SplitBehavior::merged_with_next},
              pointer);
  }
}

TOOLDECODE_INLINE void TokenizerJson::read_decoder() {
  if (JsonMembers(root_).has("decoder")) {
    spelling_ = TokenSpelling::of_decoder(root_["decoder"], "#/decoder");
    if ((prepends_mark_ || collapses_to_mark_) && mark_ != space_mark) {
      set_unknown("#/normalizer", "a mark is put where no mark stands for a space");
    }
    return;
  }
  if (model_type_ == "BPE" || model_type_ == "Unigram") {
    if (byte_level_) {
      spelling_ = TokenSpelling::in_alphabet();
      return;
    }
    if (!mark_.empty() || byte_fallback_) {
      if (mark_.empty()) set_mark(space_mark, "#/normalizer");
      spelling_ = TokenSpelling::marked(mark_, byte_fallback_);
      return;
    }
  }
  refuse("#/decoder",
         "is missing, and nothing else tells what the tokens write: add the decoder "
         "that the tokenizer has");
}

TOOLDECODE_INLINE std::optional<std::string> TokenizerJson::text_read_as(
    const std::string& content) const {
  if (byte_level_) return find_alphabet_bytes(content);
  if (mark_.empty()) return content;
  if (content.find(' ') != std::string::npos) return std::nullopt;  // spaces were replaced by marks
  return TokenSpelling::marked(mark_, false).write(content);
}

TOOLDECODE_INLINE void TokenizerJson::read_tokens() {
  const JsonValue& model = root_["model"];
  if (!model.contains("vocab")) refuse("#/model/vocab", "is missing");
  const JsonValue& vocabulary = model["vocab"];
  if (model_type_ == "Unigram") {
    if (!vocabulary.is_array()) refuse("#/model/vocab", "must be an array");
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const std::string pointer = "#/model/vocab/" + std::to_string(i);
      const JsonValue& row      = vocabulary[i];
      if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number()) {
        refuse(pointer, "must be a token and its score");
      }
      scores_.push_back(row[1].get<double>());
      // Hugging Face's reader finds only the last of the rows with the same text.
      const auto earlier = model_ids_.extract(row[0].get<std::string>());
      if (!earlier.empty()) origins_[earlier.mapped()].is_read = false;
      read_model_token(row[0].get<std::string>(), i, pointer);
    }
  } else {
    if (!vocabulary.is_object()) refuse("#/model/vocab", "must be an object");
    for (const auto& [content, id] : vocabulary.items()) {
      read_model_token(content, id, "#/model/vocab/" + content);
    }
  }
  if (!JsonMembers(root_).has("added_tokens")) return;
  const JsonValue& added = JsonMembers(root_).array("added_tokens");
  for (std::size_t i = 0; i < added.size(); ++i) {
    read_added_token(added[i], "#/added_tokens/" + std::to_string(i));
  }
}

TOOLDECODE_INLINE void TokenizerJson::put(const JsonValue& id, const std::string& pointer,
                                          Vocabulary::Entry entry, Origin origin) {
  // Ids may have gaps, but no gaps that would fill the memory.
  const std::size_t max = 2 * root_["model"]["vocab"].size() + 65'536;
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= max) {
    refuse(pointer, "a token's id is an integer not far past the number of tokens");
  }
  const auto i = id.get<std::size_t>();
  if (i >= entries_.size()) {
    entries_.resize(i + 1, {"", TokenType::unused});
    origins_.resize(i + 1);
  }
  entries_[i] = std::move(entry);
  origins_[i] = std::move(origin);
}

TOOLDECODE_INLINE void TokenizerJson::read_model_token(const std::string& content,
                                                       const JsonValue& id,
                                                       const std::string& pointer) {
  if (id.is_number_unsigned()) model_ids_.try_emplace(content, id.get<std::size_t>());
  std::string written = spelling_.write(content);
  const auto byte     = find_byte(content);
  if (byte_fallback_ && byte && written == std::string(1, *byte)) {
    return put(id, pointer, {std::move(written), TokenType::byte}, {content, true, false});
  }
  if (byte_fallback_ && byte) {
    set_unknown("#/model/byte_fallback", "the decoder does not write the bytes of tokens of bytes");
  }
  const auto read = text_read_as(content);
  const bool same = read == written;
  // In a model without byte fallback no text is encoded as a byte's token.
  if (read && !same && !find_written_byte(content) && !unknown_) {
    set_unknown("#/decoder",
                "token " + id.text() + " is written otherwise than the text that is encoded as it");
  }
  put(id, pointer, {std::move(written), TokenType::normal}, {content, true, same});
}

TOOLDECODE_INLINE void TokenizerJson::read_added_token(const JsonValue& token,
                                                       const std::string& pointer) {
  const JsonMembers members(token, pointer);
  if (!token.contains("id")) members.fail("id", "is missing");
  const auto content    = members.value<std::string>("content");
  const bool is_special = members.value_or("special", false);
  const JsonValue& id   = token["id"];
  // Hugging Face's reader would use the model's id, not the one listed here.
  const auto known = model_ids_.find(content);
  if (known != model_ids_.end() && id != known->second) {
    members.fail("id", id.text() + ": must be " + std::to_string(known->second) +
                           ", which is the id of the same text in the model's vocabulary");
  }
  const bool in_model = known != model_ids_.end();
  const bool is_taken = !in_model && id.is_number_unsigned() &&
                        id.get<std::size_t>() < origins_.size() &&
                        origins_[id.get<std::size_t>()].in_model;
  if (is_taken) {
    members.fail("id", id.text() + ": must not be the id of another token of the model, \"" +
                           origins_[id.get<std::size_t>()].content + '"');
  }
  const bool is_normalized = members.value_or("normalized", false);
  const std::string normalized =
      is_normalized ? normalized_content(content, is_special, pointer) : content;
  Vocabulary::Entry entry{content, TokenType::control};
  if (!is_special) entry = {spelling_.write(normalized), TokenType::user_defined};
  const bool is_read = !is_special && in_model && text_read_as(content) == entry.bytes;
  if (!is_special && in_model && !is_read && text_read_as(content) == spelling_.write(content)) {
    set_unknown(pointer + "/normalized",
                "the token is written otherwise than the text that the model encodes as it");
  }
  put(id, pointer + "/id", std::move(entry), {content, in_model, is_read});
  AddedToken found{.text         = content,
                   .token        = static_cast<TokenId>(id.get<std::size_t>()),
                   .is_control   = is_special,
                   .single_word  = members.value_or("single_word", false),
                   .strips_left  = members.value_or("lstrip", false),
                   .strips_right = members.value_or("rstrip", false)};
  if (!is_normalized) {
    note_hidden(found, content, pointer);
    first_added_.push_back(std::move(found));
    return;
  }
  if (normalized.empty()) set_unknown(pointer + "/content", "is empty as it is normalised");
  // Spaces that have become marks no longer count as white space.
  if (collapses_to_mark_ && (found.strips_left || found.strips_right)) {
    set_unknown(pointer, "white space is taken where some of it is marks");
  }
  found.text = normalized;
  if (normalizes_spaces_) {
    found.text         = TokenSpelling::marked(mark_, false).write(normalized);
    found.keeps_spaces = true;
  }
  note_hidden(found, content, pointer);
  second_added_.push_back(std::move(found));
}

TOOLDECODE_INLINE void TokenizerJson::note_hidden(const AddedToken& token,
                                                  const std::string& content,
                                                  const std::string& pointer) {
  if (!token.is_control || !origins_[static_cast<std::size_t>(token.token)].in_model) return;
  const auto read = text_read_as(content);
  if (!read || (!token.single_word && *read == token.text)) return;
  hidden_specials_.insert(token.token);
  const bool is_unit  = byte_level_ ? read->size() == 1 : is_one_character(*read);
  const bool is_whole = model_type_ == "BPE" &&
                        JsonMembers(root_["model"], "#/model").value_or("ignore_merges", false);
  if (model_type_ == "Unigram" || is_unit || is_whole) {
    set_unknown(pointer, "the model encodes text as a special token");
  }
}

TOOLDECODE_INLINE std::string TokenizerJson::normalized_content(const std::string& content,
                                                                bool is_special,
                                                                const std::string& pointer) const {
  std::string result = content;
  for (const TextChange& change : changes_) result = change.apply(result);
  if (other_normalizers_ != OtherNormalizers::none) {
    const bool is_plain =
        std::all_of(result.begin(), result.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (!is_special && (!is_plain || other_normalizers_ == OtherNormalizers::unknown)) {
      refuse(pointer + "/normalized",
             "must be false, as the normalizer may change what the token writes");
    }
    if (other_normalizers_ == OtherNormalizers::lowercase) {
      for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  if (prefix_ == SpacePrefix::every_stretch && !result.empty()) result.insert(0, " ");
  if (!normalizes_spaces_) return result;
  std::string marked;
  for (const char c : result) marked += c == ' ' ? mark_ : std::string(1, c);
  return marked;
}

TOOLDECODE_INLINE std::vector<TokenId> TokenizerJson::unread_tokens() const {
  std::vector<TokenId> result;
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    if (!origins_[i].is_read && entries_[i].type != TokenType::byte) {
      result.push_back(static_cast<TokenId>(i));
    }
  }
  return result;
}

TOOLDECODE_INLINE Tokenizer::Encoding TokenizerJson::encoding(const Vocabulary& vocabulary) {
  const std::vector<TokenId> left_out = unread_tokens();
  const JsonMembers model(root_["model"], "#/model");
  if (model_type_ == "Unigram") {
    std::vector<double> scores = scores_;
    scores.resize(vocabulary.token_count(), 0);
    std::optional<double> lowest;
    for (const double score : scores_) lowest = std::min(lowest.value_or(score), score);
    return Unigram::of_doubles(vocabulary, std::move(scores),
                               {.user_defined = true, .left_out = left_out, .lowest = lowest});
  }
  const BytePairOptions options{.characters   = !byte_level_,
                                .whole_first  = model.value_or("ignore_merges", false),
                                .user_defined = true,
                                .left_out     = left_out};
  return BytePairEncoding::by_tokens(
      vocabulary,
      model_type_ == "BPE" ? merges(model) : std::vector<BytePairEncoding::TokenMerge>(), options);
}

TOOLDECODE_INLINE std::vector<BytePairEncoding::TokenMerge> TokenizerJson::merges(
    const JsonMembers& model) {
  const JsonValue& listed = model.array("merges");
  const auto prefix       = model.value_or<std::string>("continuing_subword_prefix", "");
  std::vector<BytePairEncoding::TokenMerge> result;
  std::unordered_set<TokenId> left_out;  // results of merges that no text is encoded as
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string pointer = "#/model/merges/" + std::to_string(i);
    const auto [left, right]  = merged_texts(listed[i], pointer);
    const auto id             = [&](const std::string& content) {
      const auto found = model_ids_.find(content);
      if (found == model_ids_.end()) {
        refuse(pointer,
                           "must merge two tokens into a third, and there is no token \"" + content + '"');
      }
      return static_cast<TokenId>(found->second);
    };
    const std::string tail = right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const BytePairEncoding::TokenMerge one{id(left), id(right), id(left + tail)};
    const auto is_read = [&](TokenId token) {
      return origins_[static_cast<std::size_t>(token)].is_read;
    };
    const auto is_special = [&](TokenId token) {
      return entries_[static_cast<std::size_t>(token)].type == TokenType::control;
    };
    // Text never merges into a token that writes another text, such as a special token.
    if (is_read(one.merged) && is_read(one.left) && is_read(one.right)) {
      result.push_back(one);
    } else if (is_read(one.merged) &&
               (left_out.contains(one.left) || left_out.contains(one.right))) {
      set_unknown(pointer, "a special token is merged further");
    }
    if (is_read(one.merged)) continue;
    left_out.insert(one.merged);
    // Hugging Face matches special tokens in the text first, but not those that only its normalizer
    // spells so.
    const std::string content = left + tail;
    if (is_special(one.merged) && text_read_as(content) != content) {
      set_unknown(pointer, "spaces are merged into a special token");
    }
    if (hidden_specials_.contains(one.merged)) {
      set_unknown(pointer, "text is merged into a special token");
    }
  }
  return result;
}

TOOLDECODE_INLINE std::pair<std::string, std::string> TokenizerJson::merged_texts(
    const JsonValue& listed, const std::string& pointer) const {
  if (listed.is_array() && listed.size() == 2 && listed[0].is_string() && listed[1].is_string()) {
    return {listed[0].string(), listed[1].string()};
  }
  if (!listed.is_string()) refuse(pointer, "is no pair");
  const auto text          = listed.get<std::string>();
  const std::size_t middle = text.find(' ', 1);
  if (middle == std::string::npos) refuse(pointer, "is no pair");
  return {text.substr(0, middle), text.substr(middle + 1)};
}

TOOLDECODE_INLINE TextRules TokenizerJson::text_rules() {
  bool rewrites =
      prefix_ == SpacePrefix::every_stretch || prefix_ == SpacePrefix::unspaced_stretches;
  rewrites = rewrites && !(first_added_.empty() && second_added_.empty());
  for (const auto* added : {&first_added_, &second_added_}) {
    for (const AddedToken& token : *added) {
      const Vocabulary::Entry& entry = entries_[static_cast<std::size_t>(token.token)];
      rewrites                       = rewrites || (!token.is_control && token.text != entry.bytes);
    }
  }
  return {.first          = AddedTokens(std::move(first_added_)),
          .changes        = std::move(changes_),
          .second         = AddedTokens(std::move(second_added_)),
          .prefix         = prefix_,
          .rewrites_added = rewrites};
}

TOOLDECODE_INLINE TokenId TokenizerJson::checked_id(const JsonValue& id) const {
  const auto number = id.get<std::int64_t>();
  if (number < 0 || number >= static_cast<std::int64_t>(entries_.size())) {
    refuse("eos_token_id", "no token has the id " + id.text());
  }
  return static_cast<TokenId>(number);
}

TOOLDECODE_INLINE std::optional<TokenId> TokenizerJson::find_named(const JsonValue& name) const {
  const std::string content = name.is_string()   ? name.get<std::string>()
                              : name.is_object() ? name.value("content", "")
                                                 : "";
  std::optional<TokenId> found;
  for (std::size_t i = 0; i < entries_.size() && !content.empty(); ++i) {
    if (origins_[i].content != content) continue;
    // A file may list an end token only in the model's vocabulary.
    const bool is_special = entries_[i].type == TokenType::control;
    if (is_special || !found) found = static_cast<TokenId>(i);
    if (is_special) break;
  }
  return found;
}

TOOLDECODE_INLINE VocabularyOptions TokenizerJson::options() const {
  VocabularyOptions result;
  if (!files_.tokenizer_config.empty()) {
    const JsonValue config = text::parse_json_file(files_.tokenizer_config);
    const auto named       = [&](const char* key) -> std::optional<TokenId> {
      if (!config.is_object() || !config.contains(key)) return std::nullopt;
      return find_named(config[key]);
    };
    if (const auto end = named("eos_token")) result.end_tokens.push_back(*end);
    result.begin_token = named("bos_token");
  }
  bool are_listed = false;
  if (!files_.generation_config.empty()) {
    const JsonValue config = text::parse_json_file(files_.generation_config);
    if (config.is_object() && config.contains("eos_token_id")) {
      const JsonValue& ends = config["eos_token_id"];
      for (const JsonValue& id : ends.is_array() ? ends : JsonValue::array({ends})) {
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
  return read_tokenizer_json(text::parse_json_file(text), files);
}

TOOLDECODE_INLINE Tokenizer read_tokenizer_json(JsonValue root, TokenizerFiles files) {
  try {
    return detail::TokenizerJson(std::move(root), files).build();
  } catch (const Error& error) {
    // a value of an unexpected type
    if (error.code() != Errc::malformed_json || !error.where().empty()) throw;
    throw Error(Errc::malformed_vocabulary, "#", error.what());
  }
}

}  // namespace tooldecode::vocabulary
