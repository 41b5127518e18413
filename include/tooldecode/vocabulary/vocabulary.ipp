#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Vocabulary::Vocabulary(const std::vector<Entry>& entries,
                                         VocabularyOptions options)
    : Vocabulary(std::make_shared<const Table>(entries), std::move(options)) {}

TOOLDECODE_INLINE std::string_view Vocabulary::bytes(TokenId id) const noexcept {
  return writes_text(type(id)) ? name(id) : std::string_view();
}

TOOLDECODE_INLINE std::string_view Vocabulary::grammar_bytes(TokenId id) const noexcept {
  if (is_end(id)) return {};
  if (type(id) == TokenType::control) return table_->stored(id);
  const std::string_view text = bytes(id);
  const bool is_free          = std::none_of(text.begin(), text.end(),
                                             [](char c) { return c == control_open || c == control_close; });
  return is_free ? text : std::string_view();
}

TOOLDECODE_INLINE std::string_view Vocabulary::answer_bytes(TokenId id) const noexcept {
  if (is_end(id)) return {};
  return type(id) == TokenType::control ? name(id) : bytes(id);
}

TOOLDECODE_INLINE std::string_view Vocabulary::name(TokenId id) const noexcept {
  TOOLDECODE_ASSERT(contains(id));
  return static_cast<std::size_t>(id) < token_count() ? table_->name(id) : std::string_view();
}

TOOLDECODE_INLINE TokenType Vocabulary::type(TokenId id) const noexcept {
  TOOLDECODE_ASSERT(contains(id));
  const auto i = static_cast<std::size_t>(id);
  return i < token_count() ? table_->types[i] : TokenType::unused;
}

TOOLDECODE_INLINE bool Vocabulary::is_text(TokenId id) const noexcept {
  return !bytes(id).empty() && !is_end(id);
}

TOOLDECODE_INLINE std::span<const TokenId> Vocabulary::end_tokens() const noexcept {
  return options_->end_tokens;
}

TOOLDECODE_INLINE std::optional<TokenId> Vocabulary::begin_token() const noexcept {
  return options_->begin_token;
}

TOOLDECODE_INLINE std::optional<TokenId> Vocabulary::find(std::string_view bytes) const {
  return look_up(table_->texts, bytes);
}

TOOLDECODE_INLINE std::optional<TokenId> Vocabulary::find_special(std::string_view name) const {
  return look_up(table_->specials, name);
}

TOOLDECODE_INLINE std::string Vocabulary::decode(std::span<const TokenId> ids) const {  // [L]
  require_known(ids);
  std::string text;
  for (const TokenId id : ids) text += bytes(id);
  return text;
}

TOOLDECODE_INLINE std::string Vocabulary::answer_text(std::span<const TokenId> ids) const {  // [L]
  require_known(ids);
  std::string text;
  for (const TokenId id : ids) text += answer_bytes(id);
  return text;
}

TOOLDECODE_INLINE Vocabulary Vocabulary::with_size(std::size_t size) const {
  VocabularyOptions options = *options_;
  options.size              = size;
  return Vocabulary(table_, std::move(options));
}

TOOLDECODE_INLINE Vocabulary Vocabulary::with_end_tokens(std::vector<TokenId> end_tokens) const {
  VocabularyOptions options = *options_;
  options.end_tokens        = std::move(end_tokens);
  return Vocabulary(table_, std::move(options));
}

TOOLDECODE_INLINE Vocabulary::Table::Table(const std::vector<Entry>& entries) {
  const auto limit  = static_cast<std::size_t>(std::numeric_limits<TokenId>::max());
  std::size_t total = 0;
  for (const Entry& entry : entries) {
    total += entry.bytes.size() + (entry.type == TokenType::control ? 2 : 0);
  }
  if (entries.size() > limit || total > limit) {
    throw Error(Errc::malformed_vocabulary, {}, "more tokens or bytes than 31 bits can count");
  }
  blob.reserve(total);
  begins.reserve(entries.size() + 1);
  types.reserve(entries.size());
  texts.reserve(entries.size());
  for (const Entry& entry : entries) {
    if (entry.type < TokenType::normal || entry.type > TokenType::byte) {
      throw Error(Errc::malformed_vocabulary, place(static_cast<TokenId>(types.size())),
                  "type " + std::to_string(static_cast<int>(entry.type)) + ": must be from 1 to 6");
    }
    begins.push_back(static_cast<std::uint32_t>(blob.size()));
    types.push_back(entry.type);
    const bool is_marked = entry.type == TokenType::control && !entry.bytes.empty();
    if (is_marked) blob += control_open;
    blob += entry.bytes;
    if (is_marked) blob += control_close;
  }
  begins.push_back(static_cast<std::uint32_t>(blob.size()));
  fill_indices();
}

TOOLDECODE_INLINE void Vocabulary::Table::fill_indices() {
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto id               = static_cast<TokenId>(i);
    const std::string_view text = name(id);
    hash                        = core::hash_combine(hash, static_cast<std::uint64_t>(types[i]));
    hash                        = core::hash_combine(hash, hash_bytes(text));
    if (types[i] == TokenType::control || types[i] == TokenType::user_defined) {
      specials.try_emplace(text, id);
    }
    if (!writes_text(types[i]) || text.empty()) continue;
    const auto [known, is_new] = texts.try_emplace(text, id);
    if (!is_new && precedence(types[i]) > precedence(type_of(known->second))) {
      known->second = id;
    }
  }
}

TOOLDECODE_INLINE std::string_view Vocabulary::Table::stored(TokenId id) const noexcept {
  const auto i = static_cast<std::size_t>(id);
  return {blob.data() + begins[i], begins[i + 1] - begins[i]};
}

TOOLDECODE_INLINE std::string_view Vocabulary::Table::name(TokenId id) const noexcept {
  const std::string_view text = stored(id);
  if (type_of(id) != TokenType::control || text.empty()) return text;
  return text.substr(1, text.size() - 2);
}

TOOLDECODE_INLINE TokenType Vocabulary::Table::type_of(TokenId id) const noexcept {
  return types[static_cast<std::size_t>(id)];
}

TOOLDECODE_INLINE int Vocabulary::Table::precedence(TokenType type) noexcept {
  return type == TokenType::user_defined ? 2 : type == TokenType::normal ? 1 : 0;
}

TOOLDECODE_INLINE std::uint64_t Vocabulary::Table::hash_bytes(std::string_view bytes) noexcept {
  std::uint64_t hash = core::hash_combine(bytes.size(), bytes.size());
  for (const char byte : bytes) hash = core::hash_combine(hash, static_cast<std::uint8_t>(byte));
  return hash;
}

TOOLDECODE_INLINE Vocabulary::Vocabulary(std::shared_ptr<const Table> table,
                                         VocabularyOptions options)
    : table_(std::move(table)) {
  const std::size_t count = table_->types.size();
  if (options.size == 0) options.size = count;
  if (options.size < count ||
      options.size > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    throw Error(
        Errc::malformed_vocabulary, "size " + std::to_string(options.size),
        "must be at least the number of tokens, " + std::to_string(count) + ", and below 2^31");
  }
  std::vector<TokenId> ends;
  for (const TokenId id : options.end_tokens) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  }
  options.end_tokens         = std::move(ends);
  const auto require_present = [&](TokenId id, std::string_view role) {
    if (id >= 0 && static_cast<std::size_t>(id) < options.size) return;
    throw Error(Errc::malformed_vocabulary, place(id),
                "must be an id of the vocabulary, below " + std::to_string(options.size) +
                    ", as the " + std::string(role) + " token");
  };
  for (const TokenId id : options.end_tokens) require_present(id, "end");
  if (options.begin_token) require_present(*options.begin_token, "begin");

  hash_ = core::hash_combine(table_->hash, options.size);
  for (const TokenId id : options.end_tokens) {
    hash_ = core::hash_combine(hash_, static_cast<std::uint64_t>(id));
  }
  options_ = std::make_shared<const VocabularyOptions>(std::move(options));
  index_   = std::make_shared<std::weak_ptr<void>>();
}

TOOLDECODE_INLINE bool Vocabulary::contains(TokenId id) const noexcept {
  return id >= 0 && static_cast<std::size_t>(id) < size();
}

TOOLDECODE_INLINE void Vocabulary::require_known(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) {
    if (contains(id)) continue;
    throw Error(Errc::unknown_token, place(id),
                "must be an id of the vocabulary, below " + std::to_string(size()));
  }
}

TOOLDECODE_INLINE std::optional<TokenId> Vocabulary::look_up(const Index& index,
                                                             std::string_view key) {
  const auto found = index.find(key);
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tooldecode
