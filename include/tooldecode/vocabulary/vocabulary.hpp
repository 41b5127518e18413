/// \file
/// Vocabulary: the bytes of each token id, and the end tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// What a token is for; the numbers are GGUF's.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown,       ///< stands for text that the tokenizer cannot write
  control,       ///< steers the model (begin, end, roles) and writes no text
  user_defined,  ///< a piece of text that is matched first
  unused,        ///< an id without meaning
  byte,          ///< byte fallback: one byte of text that has no other token
};

/// Precedes the name of a control token in a grammar. Never part of UTF-8, so text cannot be
/// mistaken for it.
inline constexpr char control_open = '\xFF';
/// Follows the name of a control token; likewise never part of UTF-8.
inline constexpr char control_close = '\xFE';

/// Options of a Vocabulary.
struct VocabularyOptions {
  std::vector<TokenId> end_tokens    = {};  ///< any of them ends a text; the usual one first
  std::optional<TokenId> begin_token = {};
  std::size_t size                   = 0;  ///< V; 0: the number of tokens
};

/// The bytes of every token id, its type, and the end tokens.
///
/// Ids from the number of tokens up to V are padding: a model has logits for them, but they have no
/// meaning. Two ids may write the same bytes. A token's bytes need not be valid UTF-8.
///
/// \par Shapes      V ids, padding included
/// \par Complexity  built in O(bytes); a copy shares the tables; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructor, naming the token;
///                  Error{unknown_token} from decode and answer_text
/// \par Source      token types of GGUF, ggml-org/ggml, docs/gguf.md
class Vocabulary {
 public:
  /// A token: the bytes it writes (for a control or unknown token, its name) and its type.
  struct Entry {
    std::string bytes;
    TokenType type = TokenType::normal;
  };

  explicit Vocabulary(const std::vector<Entry>& entries, VocabularyOptions options = {});

  /// V: the ids that a model has logits for.
  [[nodiscard]] std::size_t size() const noexcept { return options_->size; }
  /// Number of ids with an entry; from here to V is padding.
  [[nodiscard]] std::size_t token_count() const noexcept { return table_->types.size(); }

  /// The bytes a token writes; empty if it writes no text.
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept;
  /// What a grammar sees of a token: its text, or a control token's name between control_open and
  /// control_close. Empty for end tokens, tokens without text, and texts that contain those two
  /// bytes.
  [[nodiscard]] std::string_view grammar_bytes(TokenId id) const noexcept;
  /// What readers of an answer see of a token: its text, or a control token's name, because
  /// delimiters of calls may be control tokens. Empty for end tokens and tokens without text.
  [[nodiscard]] std::string_view answer_bytes(TokenId id) const noexcept;
  /// A token's bytes, or its name if it writes no text; empty for padding.
  [[nodiscard]] std::string_view name(TokenId id) const noexcept;
  /// A token's type; `unused` for padding.
  [[nodiscard]] TokenType type(TokenId id) const noexcept;
  /// Whether a token may be part of a text: it writes something and is not an end token.
  [[nodiscard]] bool is_text(TokenId id) const noexcept;

  /// The end tokens, the usual one first.
  [[nodiscard]] std::span<const TokenId> end_tokens() const noexcept;
  [[nodiscard]] bool is_end(TokenId id) const noexcept {
    for (const TokenId end : options_->end_tokens) {
      if (end == id) return true;
    }
    return false;
  }
  [[nodiscard]] std::optional<TokenId> begin_token() const noexcept;

  /// The token that writes exactly these bytes. Prefers user-defined, then normal, then byte
  /// tokens, then the lowest id.
  [[nodiscard]] std::optional<TokenId> find(std::string_view bytes) const;
  [[nodiscard]] std::optional<TokenId> find_special(std::string_view name) const;

  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;
  /// The text of an answer as its readers take it: the `answer_bytes` of all ids.
  [[nodiscard]] std::string answer_text(std::span<const TokenId> ids) const;

  /// A copy for a model with V = `size` logits.
  [[nodiscard]] Vocabulary with_size(std::size_t size) const;
  [[nodiscard]] Vocabulary with_end_tokens(std::vector<TokenId> end_tokens) const;

  /// Equal for equal tokens, sizes and end tokens; the same on every machine.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 private:
  using Index = std::unordered_map<std::string_view, TokenId>;

  static constexpr bool writes_text(TokenType type) noexcept {
    return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::byte;
  }
  static std::string place(TokenId id) { return "token " + std::to_string(id); }

  struct Table {
    explicit Table(const std::vector<Entry>& entries);
    Table(const Table&)            = delete;  // the indices point into the blob
    Table& operator=(const Table&) = delete;

    void fill_indices();
    [[nodiscard]] std::string_view stored(TokenId id) const noexcept;
    [[nodiscard]] std::string_view name(TokenId id) const noexcept;
    [[nodiscard]] TokenType type_of(TokenId id) const noexcept;
    static int precedence(TokenType type) noexcept;
    static std::uint64_t hash_bytes(std::string_view bytes) noexcept;

    std::string
        blob;  // all names in a row; those of control tokens with control_open and control_close
    std::vector<std::uint32_t> begins;  // [tokens + 1], into blob
    std::vector<TokenType> types;       // [tokens]
    Index texts;
    Index specials;
    std::uint64_t hash = 0;
  };

  Vocabulary(std::shared_ptr<const Table> table, VocabularyOptions options);

  [[nodiscard]] bool contains(TokenId id) const noexcept;
  void require_known(std::span<const TokenId> ids) const;
  static std::optional<TokenId> look_up(const Index& index, std::string_view key);

  friend class VocabularyIndex;

  std::shared_ptr<const Table> table_;
  std::shared_ptr<const VocabularyOptions> options_;
  std::shared_ptr<std::weak_ptr<void>> index_;  // the VocabularyIndex of all copies
  std::uint64_t hash_ = 0;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/vocabulary.ipp>
#endif
