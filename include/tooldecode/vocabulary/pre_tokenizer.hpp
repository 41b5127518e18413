/// \file
/// PreTokenizer: splits text into pieces by regular expressions, with PCRE2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

namespace tooldecode::vocabulary {

/// A list of patterns, each of which splits the pieces that the one before has left: every match is
/// a piece, and so is the text between two matches.
///
/// Text that is not UTF-8 is split all the same: the patterns see its longest valid stretches, and
/// each byte between them is a piece of its own.
///
/// \par Complexity  as PCRE2's just-in-time matcher
/// \par Threads     immutable after construction; a copy shares the compiled patterns
/// \par Errors      Error{malformed_pattern} from the constructor, with the pattern's number;
///                  Error{limit_exceeded} from `split` where a pattern backtracks without end, and
///                  Error{unknown_format} where its file names a way to split that is not known
class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(const std::vector<std::string>& patterns);

  /// One that a file names and this library does not know: its vocabulary can be used, as all masks
  /// do, but nothing can be split, and `split` says so.
  [[nodiscard]] static PreTokenizer unknown(const std::string& where, const std::string& what);

  /// The pieces of a text, in order and without gaps.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;

 private:
  static void split_one(const pcre2_code* pattern, std::string_view text,
                        std::vector<std::string_view>& pieces);

  // Length of the well-formed UTF-8 sequence at the front, or 0.
  static std::size_t sequence(std::string_view text) noexcept;
  static std::vector<std::pair<bool, std::string_view>> valid_stretches(std::string_view text);

  std::vector<std::shared_ptr<const pcre2_code>> patterns_;
  std::shared_ptr<const Error> refusal_;  // why nothing can be split, if so
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/pre_tokenizer.ipp>
#endif
