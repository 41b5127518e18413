#pragma once

#include <array>
#include <utility>

#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/token_spelling.hpp>

namespace tooldecode::vocabulary::detail {

// Decoders accept what Rust's from_str_radix accepts.
TOOLDECODE_INLINE std::optional<char> find_written_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = 3; i < 5; ++i) {
    if (i == 3 && token[i] == '+') continue;
    const std::size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(token[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    value = 16 * value + static_cast<unsigned>(digit % 16);
  }
  return static_cast<char>(value);
}

TOOLDECODE_INLINE bool is_one_character(std::string_view text) noexcept {
  const auto first = text::find_code_point(text, 0);
  return first && first->bytes == text.size();
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE TokenSpelling TokenSpelling::of_decoder(const JsonValue& decoder,
                                                          const std::string& pointer) {
  TokenSpelling result;
  result.read(decoder, pointer, 0);
  return result;
}

TOOLDECODE_INLINE TokenSpelling TokenSpelling::in_alphabet() {
  TokenSpelling result;
  result.steps_.push_back({Kind::alphabet});
  return result;
}

TOOLDECODE_INLINE TokenSpelling TokenSpelling::marked(const std::string& mark, bool has_bytes) {
  TokenSpelling result;
  result.steps_.push_back({.kind = Kind::replace, .from = mark, .to = " "});
  if (has_bytes) result.steps_.push_back({Kind::bytes});
  return result;
}

TOOLDECODE_INLINE std::string TokenSpelling::write(std::string_view token) const {
  std::string text(token);
  bool is_byte = false;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::alphabet:
        if (is_byte) {
          throw Error(Errc::malformed_vocabulary, step.pointer,
                      "must not follow ByteFallback where a token is a byte's, as " +
                          std::string(token) + " is");
        }
        // Only added tokens are outside the alphabet; they write themselves.
        if (auto bytes = find_alphabet_bytes(text)) text = *std::move(bytes);
        break;
      case Kind::replace:
        text = replace_all(text, step.from, step.to);
        break;
      case Kind::bytes:
        if (const auto byte = detail::find_written_byte(text)) {
          text    = std::string(1, *byte);
          is_byte = true;
        }
        break;
      case Kind::strip:
        text = stripped(text, step);
        break;
      case Kind::words:
        text = word(text, step);
        break;
    }
  }
  return text;
}

TOOLDECODE_INLINE void TokenSpelling::read(const JsonValue& decoder, const std::string& pointer,
                                           unsigned depth) {
  const JsonMembers members(decoder, pointer);
  if (depth > 8) members.fail("", "decoders are nested too deeply");
  const auto type = members.value<std::string>("type");
  if (type == "Sequence") {
    const JsonValue& list = members.array("decoders");
    for (std::size_t i = 0; i < list.size(); ++i) {
      read(list[i], pointer + "/decoders/" + std::to_string(i), depth + 1);
    }
  } else if (type == "ByteLevel") {
    steps_.push_back({.kind = Kind::alphabet, .pointer = pointer});
    before_ = Before::fused;
  } else if (type == "Fuse") {
    before_ = Before::fused;
  } else if (type == "Replace") {
    read_replace(members, decoder, pointer);
  } else if (type == "ByteFallback") {
    if (before_ == Before::fused) {
      members.fail("", "must stand before Fuse and ByteLevel, which leave no tokens of bytes");
    }
    steps_.push_back({Kind::bytes});
    before_ = Before::bytes;
  } else if (type == "Strip") {
    const auto content = members.value<std::string>("content");
    if (!detail::is_one_character(content)) members.fail("content", "must be one character");
    if (before_ == Before::bytes) {
      members.fail("",
                   "must stand before ByteFallback or after Fuse, as a token is written "
                   "otherwise beside other tokens here");
    }
    // After Fuse it strips only the ends of the whole text.
    if (before_ == Before::tokens) {
      steps_.push_back({.kind  = Kind::strip,
                        .from  = content,
                        .start = members.value<std::size_t>("start"),
                        .stop  = members.value<std::size_t>("stop")});
    }
  } else if (type == "Metaspace") {
    const auto mark = members.value_or<std::string>("replacement", "\u2581");
    if (!detail::is_one_character(mark)) members.fail("replacement", "must be one character");
    const bool drops_first = members.value_or<std::string>("prepend_scheme", "always") != "never" &&
                             members.value_or("add_prefix_space", true);
    // After Fuse the whole text counts as the first token, whose marks are dropped.
    const bool drops_all = drops_first && before_ == Before::fused;
    steps_.push_back({.kind = Kind::replace, .from = mark, .to = drops_all ? "" : " "});
  } else if (type == "WordPiece") {
    const Step step{.kind      = Kind::words,
                    .from      = members.value_or<std::string>("prefix", "##"),
                    .cleans_up = members.value_or("cleanup", true)};
    if (before_ == Before::bytes || (before_ == Before::fused && step.cleans_up)) {
      members.fail("",
                   "must stand before ByteFallback and Fuse, as a token is written otherwise "
                   "beside other tokens here");
    }
    if (before_ == Before::tokens) steps_.push_back(step);
  } else {
    members.fail("type", "the decoder \"" + type +
                             "\" is not supported: it must be ByteLevel, Replace, ByteFallback, "
                             "Fuse, Strip, Metaspace, WordPiece or a Sequence of these");
  }
}

TOOLDECODE_INLINE void TokenSpelling::read_replace(const JsonMembers& members,
                                                   const JsonValue& decoder,
                                                   const std::string& pointer) {
  if (!decoder.contains("pattern")) members.fail("pattern", "is missing");
  const JsonMembers pattern(decoder["pattern"], pointer + "/pattern");
  if (!pattern.has("String")) pattern.fail("", "must be a String: no other is supported");
  const auto from = pattern.value<std::string>("String");
  if (from.empty()) pattern.fail("String", "must not be empty");
  if (before_ != Before::tokens && !detail::is_one_character(from)) {
    pattern.fail("String",
                 "must be one character after ByteFallback, Fuse and ByteLevel, as a "
                 "token is written otherwise beside other tokens there");
  }
  steps_.push_back(
      {.kind = Kind::replace, .from = from, .to = members.value<std::string>("content")});
}

TOOLDECODE_INLINE std::string TokenSpelling::replace_all(std::string_view text,
                                                         std::string_view from,
                                                         std::string_view to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find(from, at);
    result += text.substr(at, next - at);
    if (next == std::string_view::npos) break;
    result += to;
    at = next + from.size();
  }
  return result;
}

TOOLDECODE_INLINE std::string TokenSpelling::stripped(std::string_view text, const Step& step) {
  for (std::size_t i = 0; i < step.start && text.starts_with(step.from); ++i) {
    text.remove_prefix(step.from.size());
  }
  for (std::size_t i = 0; i < step.stop && text.ends_with(step.from); ++i) {
    text.remove_suffix(step.from.size());
  }
  return std::string(text);
}

TOOLDECODE_INLINE std::string TokenSpelling::word(std::string_view token, const Step& step) {
  std::string text = token.starts_with(step.from) ? std::string(token.substr(step.from.size()))
                                                  : ' ' + std::string(token);
  if (!step.cleans_up) return text;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> tidied{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : tidied) text = replace_all(text, from, to);
  return text;
}

}  // namespace tooldecode::vocabulary
