/// \file
/// PreTokenizer: splits text into pieces by regular expressions (PCRE2) or plain texts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>

/// PCRE2's `pcre2_code` for texts of bytes.
struct pcre2_real_code_8;

namespace tooldecode::vocabulary {

/// What a split does with its matches. The text between two matches is a piece.
enum class SplitBehavior : std::uint8_t {
  isolated,
  removed,
  merged_with_previous,  ///< a match ends the piece before it
  merged_with_next,      ///< a match begins the piece after it
  contiguous,            ///< adjacent matches are one piece
};

/// One way to split text.
struct Split {
  std::string pattern;
  bool is_text           = false;  ///< the pattern is a text, not a regular expression
  SplitBehavior behavior = SplitBehavior::isolated;
  bool inverted          = false;  ///< the text between matches counts as the match
};

/// A list of splits, each applied to the pieces of the previous one.
///
/// Text that is not UTF-8 is split too: the patterns see its longest valid stretches, and each byte
/// between them is a piece.
///
/// \par Complexity  as PCRE2's just-in-time matcher
/// \par Threads     immutable after construction; a copy shares the compiled patterns
/// \par Errors      Error{malformed_pattern} from the constructor, with the pattern's number;
///                  Error{limit_exceeded} from `split` if matching exceeds PCRE2's limits;
///                  Error{unknown_format} from `split` if the tokenizer file names an unknown way
///                  to split
/// \par Source      huggingface/tokenizers, normalizer.rs (`SplitDelimiterBehavior`)
class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// Each pattern isolates its matches.
  explicit PreTokenizer(const std::vector<std::string>& patterns);
  [[nodiscard]] static PreTokenizer of_splits(const std::vector<Split>& splits);

  /// A pre-tokenizer that this library does not know. Its vocabulary is usable, and masks need no
  /// more; `split` throws.
  [[nodiscard]] static PreTokenizer unknown(const std::string& where, const std::string& what);

  /// The pieces of a text, in order; without gaps unless a split removes its matches.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;
  /// Whether a split drops parts of a text.
  [[nodiscard]] bool removes_text() const noexcept;

 private:
  struct Compiled {
    std::shared_ptr<const pcre2_real_code_8> pattern;
    SplitBehavior behavior;
    bool inverted;
    bool matches_empty;  // possibly
  };
  // A match, or the text between two matches.
  struct Part {
    std::string_view text;
    bool is_match;
  };

  void add(const Split& split);
  [[nodiscard]] std::shared_ptr<pcre2_real_code_8> compile(const std::string& pattern,
                                                           bool is_text) const;
  static std::vector<Part> find_parts(const Compiled& split, std::string_view text);
  static void split_one(const Compiled& split, std::string_view text,
                        std::vector<std::string_view>& pieces);

  static std::vector<std::pair<bool, std::string_view>> valid_stretches(std::string_view text);

  std::vector<Compiled> splits_;
  std::shared_ptr<const Error> refusal_;  // set if `split` must throw
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/pre_tokenizer.ipp>
#endif
