/// \file
/// Vocabulary: what each token id writes, and which ids end a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// What a token is for; numbered as in GGUF.
enum class TokenType : std::uint8_t {
  normal = 1,    ///< a piece of text
  unknown,       ///< stands for text that the tokenizer cannot write
  control,       ///< steers the model (begin, end, roles) and writes no text
  user_defined,  ///< a piece of text that is matched before anything else
  unused,        ///< an id without a meaning
  byte,          ///< one byte of a text that has no piece
};

/// Before the name of a control token where a grammar reads it; in no UTF-8, so no text can be
/// taken for one.
inline constexpr char control_open = '\xFF';
/// After the name of a control token, likewise.
inline constexpr char control_close = '\xFE';

/// What a Vocabulary needs to know beyond its tokens.
struct VocabularyOptions {
  std::vector<TokenId> end_tokens    = {};  ///< any of them ends a text; the usual one first
  std::optional<TokenId> begin_token = {};  ///< put before a text
  std::optional<TokenId> pad_token   = {};  ///< fills a batch
  std::size_t size                   = 0;   ///< V; 0: as many as there are tokens
};

/// The bytes of every token id, its type, and the ids that end a text.
///
/// Ids from the number of tokens up to V are padding: a model has logits for them, but they mean
/// nothing. Two ids may write the same bytes. A token's bytes need not be valid UTF-8.
///
/// \par Shapes      V ids, padding included
/// \par Complexity  built in O(bytes); a copy shares the tables; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructor, naming the token;
///                  Error{unknown_token} from decode
/// \par Source      token types of GGUF, ggml-org/ggml, docs/gguf.md
class Vocabulary {
 public:
  /// A token: the bytes that it writes (a control or unknown token: its name) and its type.
  struct Entry {
    std::string bytes;
    TokenType type = TokenType::normal;
  };

  explicit Vocabulary(const std::vector<Entry>& entries, VocabularyOptions options = {})
      : Vocabulary(std::make_shared<const Table>(entries), std::move(options)) {}

  /// V: the ids that a model has logits for.
  [[nodiscard]] std::size_t size() const noexcept { return options_->size; }
  /// Ids that have an entry; those from here to V are padding.
  [[nodiscard]] std::size_t token_count() const noexcept { return table_->types.size(); }

  /// What a token writes; empty where it writes no text.
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept {
    return writes_text(type(id)) ? name(id) : std::string_view();
  }
  /// What a token is to a grammar: its text, or a control token's name between control_open and
  /// control_close; empty for end tokens, tokens without a text, and texts that hold those bytes.
  [[nodiscard]] std::string_view grammar_bytes(TokenId id) const noexcept {
    if (is_end(id)) return {};
    if (type(id) == TokenType::control) return table_->stored(id);
    const std::string_view text = bytes(id);
    const bool is_free          = std::none_of(
        text.begin(), text.end(), [](char c) { return c == control_open || c == control_close; });
    return is_free ? text : std::string_view();
  }
  /// A token's bytes, or the name of one that writes no text; empty for padding.
  [[nodiscard]] std::string_view name(TokenId id) const noexcept {
    TOOLDECODE_ASSERT(contains(id));
    return static_cast<std::size_t>(id) < token_count() ? table_->name(id) : std::string_view();
  }
  /// A token's type; padding is unused.
  [[nodiscard]] TokenType type(TokenId id) const noexcept {
    TOOLDECODE_ASSERT(contains(id));
    const auto i = static_cast<std::size_t>(id);
    return i < token_count() ? table_->types[i] : TokenType::unused;
  }
  /// Whether a token may take part in a text: it writes something and does not end the text.
  [[nodiscard]] bool is_text(TokenId id) const noexcept {
    return !bytes(id).empty() && !is_end(id);
  }

  /// The tokens that end a text, the usual one first.
  [[nodiscard]] std::span<const TokenId> end_tokens() const noexcept {
    return options_->end_tokens;
  }
  [[nodiscard]] bool is_end(TokenId id) const noexcept {
    const auto& ends = options_->end_tokens;
    return std::find(ends.begin(), ends.end(), id) != ends.end();
  }
  [[nodiscard]] std::optional<TokenId> begin_token() const noexcept {
    return options_->begin_token;
  }
  [[nodiscard]] std::optional<TokenId> pad_token() const noexcept { return options_->pad_token; }

  /// The token that writes exactly these bytes: user-defined before normal before byte, then the
  /// lowest id.
  [[nodiscard]] std::optional<TokenId> find(std::string_view bytes) const {
    return look_up(table_->texts, bytes);
  }
  /// The control or user-defined token of this name.
  [[nodiscard]] std::optional<TokenId> find_special(std::string_view name) const {
    return look_up(table_->specials, name);
  }

  /// The text that a sequence of tokens writes.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const {  // [L]
    std::string text;
    for (const TokenId id : ids) {
      if (!contains(id)) throw Error(Errc::unknown_token, place(id), "no such token id");
      text += bytes(id);
    }
    return text;
  }

  /// The same tokens for a model with V logits.
  [[nodiscard]] Vocabulary with_size(std::size_t size) const {
    VocabularyOptions options = *options_;
    options.size              = size;
    return Vocabulary(table_, std::move(options));
  }
  /// The same tokens with others to end a text.
  [[nodiscard]] Vocabulary with_end_tokens(std::vector<TokenId> end_tokens) const {
    VocabularyOptions options = *options_;
    options.end_tokens        = std::move(end_tokens);
    return Vocabulary(table_, std::move(options));
  }

  /// Equal for equal tokens, sizes and end tokens; the same on every machine.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 private:
  using Index = std::unordered_map<std::string_view, TokenId>;

  static constexpr bool writes_text(TokenType type) noexcept {
    return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::byte;
  }
  static std::string place(TokenId id) { return "token " + std::to_string(id); }

  struct Table {
    explicit Table(const std::vector<Entry>& entries) {
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
                      "its type is none of 1 to 6");
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
    Table(const Table&)            = delete;  // the indices point into the blob
    Table& operator=(const Table&) = delete;

    void fill_indices() {
      for (std::size_t i = 0; i < types.size(); ++i) {
        const auto id               = static_cast<TokenId>(i);
        const std::string_view text = name(id);
        hash = core::hash_combine(hash, static_cast<std::uint64_t>(types[i]));
        hash = core::hash_combine(hash, hash_bytes(text));
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
    [[nodiscard]] std::string_view stored(TokenId id) const noexcept {
      const auto i = static_cast<std::size_t>(id);
      return {blob.data() + begins[i], begins[i + 1] - begins[i]};
    }
    [[nodiscard]] std::string_view name(TokenId id) const noexcept {
      const std::string_view text = stored(id);
      if (type_of(id) != TokenType::control || text.empty()) return text;
      return text.substr(1, text.size() - 2);
    }
    [[nodiscard]] TokenType type_of(TokenId id) const noexcept {
      return types[static_cast<std::size_t>(id)];
    }
    static int precedence(TokenType type) noexcept {
      return type == TokenType::user_defined ? 2 : type == TokenType::normal ? 1 : 0;
    }
    static std::uint64_t hash_bytes(std::string_view bytes) noexcept {
      std::uint64_t hash = core::hash_combine(bytes.size(), bytes.size());
      for (const char byte : bytes)
        hash = core::hash_combine(hash, static_cast<std::uint8_t>(byte));
      return hash;
    }

    std::string blob;  // all names, one after the other, those of control tokens between their ends
    std::vector<std::uint32_t> begins;  // [tokens + 1], into blob
    std::vector<TokenType> types;       // [tokens]
    Index texts;
    Index specials;
    std::uint64_t hash = 0;
  };

  Vocabulary(std::shared_ptr<const Table> table, VocabularyOptions options)
      : table_(std::move(table)) {
    const std::size_t count = table_->types.size();
    if (options.size == 0) options.size = count;
    if (options.size < count ||
        options.size > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
      throw Error(Errc::malformed_vocabulary, "size " + std::to_string(options.size),
                  "fewer ids than tokens, or more than 31 bits can count");
    }
    std::vector<TokenId> ends;
    for (const TokenId id : options.end_tokens) {
      if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
    }
    options.end_tokens         = std::move(ends);
    const auto require_present = [&](TokenId id, std::string_view role) {
      if (id >= 0 && static_cast<std::size_t>(id) < options.size) return;
      throw Error(Errc::malformed_vocabulary, place(id),
                  std::string(role) + " token outside the vocabulary");
    };
    for (const TokenId id : options.end_tokens) require_present(id, "end");
    if (options.begin_token) require_present(*options.begin_token, "begin");
    if (options.pad_token) require_present(*options.pad_token, "pad");

    hash_ = core::hash_combine(table_->hash, options.size);
    for (const TokenId id : options.end_tokens) {
      hash_ = core::hash_combine(hash_, static_cast<std::uint64_t>(id));
    }
    options_ = std::make_shared<const VocabularyOptions>(std::move(options));
  }

  [[nodiscard]] bool contains(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < size();
  }
  static std::optional<TokenId> look_up(const Index& index, std::string_view key) {
    const auto found = index.find(key);
    return found == index.end() ? std::nullopt : std::optional(found->second);
  }

  std::shared_ptr<const Table> table_;
  std::shared_ptr<const VocabularyOptions> options_;
  std::uint64_t hash_ = 0;
};

}  // namespace tooldecode
