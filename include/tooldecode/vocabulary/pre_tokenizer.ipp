#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE PreTokenizer::PreTokenizer(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) add({pattern});
}

TOOLDECODE_INLINE PreTokenizer PreTokenizer::of_splits(const std::vector<Split>& splits) {
  PreTokenizer result;
  for (const Split& split : splits) result.add(split);
  return result;
}

TOOLDECODE_INLINE std::shared_ptr<pcre2_real_code_8> PreTokenizer::compile(
    const std::string& pattern, bool is_text) const {
  int code          = 0;
  PCRE2_SIZE offset = 0;
  std::shared_ptr<pcre2_code> compiled(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    is_text ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP, &code, &offset,
                    nullptr),
      pcre2_code_free);
  if (!compiled) {
    std::array<PCRE2_UCHAR, 128> message{};
    pcre2_get_error_message(code, message.data(), message.size());
    throw Error(Errc::malformed_pattern,
                "pre-tokenizer pattern " + std::to_string(splits_.size()) + ", byte " +
                    std::to_string(offset),
                reinterpret_cast<const char*>(message.data()));
  }
  return compiled;
}

TOOLDECODE_INLINE void PreTokenizer::add(const Split& split) {
  auto compiled               = compile(split.pattern, split.is_text);
  std::uint32_t matches_empty = 0;
  if (!split.is_text) {
    const std::string pattern = with_unicode_white_space(split.pattern);
    if (pattern != split.pattern) compiled = compile(pattern, false);
    pcre2_pattern_info(compiled.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  }
  pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);  // on failure PCRE2 interprets the pattern
  splits_.push_back({compiled, split.behavior, split.inverted, matches_empty != 0});
}

TOOLDECODE_INLINE PreTokenizer PreTokenizer::unknown(const std::string& where,
                                                     const std::string& what) {
  PreTokenizer result;
  result.refusal_ = std::make_shared<const Error>(
      Errc::unknown_format, where, what + ": tokens and masks can be used, text cannot be encoded");
  return result;
}

TOOLDECODE_INLINE std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  if (refusal_) throw Error(*refusal_);
  std::vector<std::string_view> pieces;
  if (splits_.empty()) {
    if (!text.empty()) pieces.push_back(text);
    return pieces;
  }
  for (const auto& [valid, part] : valid_stretches(text)) {
    if (!valid) {
      pieces.push_back(part);
      continue;
    }
    std::vector<std::string_view> parts{part};
    for (const Compiled& split : splits_) {
      std::vector<std::string_view> finer;
      for (const std::string_view one : parts) split_one(split, one, finer);
      parts = std::move(finer);
    }
    pieces.insert(pieces.end(), parts.begin(), parts.end());
  }
  return pieces;
}

TOOLDECODE_INLINE bool PreTokenizer::removes_text() const noexcept {
  return std::any_of(splits_.begin(), splits_.end(), [](const Compiled& split) {
    return split.behavior == SplitBehavior::removed;
  });
}

TOOLDECODE_INLINE std::vector<PreTokenizer::Part> PreTokenizer::find_parts(const Compiled& split,
                                                                           std::string_view text) {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const auto find = [&](std::size_t at, std::uint32_t options) {
    if (!split.matches_empty) options |= PCRE2_NOTEMPTY;
    return pcre2_match(split.pattern.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                       at, PCRE2_NO_UTF_CHECK | options, match.get(), nullptr);
  };
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() || (split.matches_empty && at == text.size());) {
    int found = find(at, 0);
    // Repeats of a group in a long text do not fit the stack of compiled patterns.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = find(at, PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw Error(Errc::limit_exceeded, "byte " + std::to_string(at),
                  "matching the pre-tokenizer pattern takes too much memory or too many steps");
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    // After a match, an empty one at the same place is no other.
    if (bounds[0] == bounds[1] && bounds[1] == done && !parts.empty()) {
      const auto point = text::find_code_point(text, done);
      at               = done + (point ? point->bytes : 1);
      continue;
    }
    if (bounds[0] > done) parts.push_back({text.substr(done, bounds[0] - done), split.inverted});
    parts.push_back({text.substr(bounds[0], bounds[1] - bounds[0]), !split.inverted});
    at = done = bounds[1];
  }
  if (done < text.size()) parts.push_back({text.substr(done), split.inverted});
  return parts;
}

TOOLDECODE_INLINE void PreTokenizer::split_one(const Compiled& split, std::string_view text,
                                               std::vector<std::string_view>& pieces) {
  std::vector<Part> parts = find_parts(split, text);
  if (split.behavior == SplitBehavior::removed) {
    std::erase_if(parts, [](const Part& part) { return part.is_match; });
  }
  for (std::size_t i = 0; i < parts.size();) {
    // `joins`: whether a part belongs to the previous one. Of adjacent matches, only the first is
    // merged with the text before, and only the last with the text after.
    const auto joins = [&](std::size_t next) {
      const bool was_match = parts[next - 1].is_match, is_match = parts[next].is_match;
      switch (split.behavior) {
        case SplitBehavior::merged_with_previous:
          return is_match && !was_match;
        case SplitBehavior::merged_with_next:
          return was_match && !is_match;
        case SplitBehavior::contiguous:
          return was_match == is_match;
        default:
          return false;
      }
    };
    std::size_t end = i + 1;
    while (end < parts.size() && joins(end)) ++end;
    const char* begin = parts[i].text.data();
    const char* stop  = parts[end - 1].text.data() + parts[end - 1].text.size();
    if (stop > begin) pieces.emplace_back(begin, static_cast<std::size_t>(stop - begin));
    i = end;
  }
}

TOOLDECODE_INLINE std::vector<std::pair<bool, std::string_view>> PreTokenizer::valid_stretches(
    std::string_view text) {
  std::vector<std::pair<bool, std::string_view>> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size();) {
    if (const auto point = text::find_code_point(text, i)) {
      i += point->bytes;
      continue;
    }
    if (i > begin) parts.emplace_back(true, text.substr(begin, i - begin));
    if (i < text.size()) parts.emplace_back(false, text.substr(i, 1));
    begin = ++i;
  }
  return parts;
}

}  // namespace tooldecode::vocabulary
