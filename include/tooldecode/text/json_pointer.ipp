#pragma once

#include <algorithm>
#include <charconv>
#include <system_error>

#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::string extend_pointer(std::string pointer, std::string_view key) {
  pointer += '/';
  if (std::none_of(key.begin(), key.end(), [](char c) { return c == '~' || c == '/'; })) {
    pointer += key;
    return pointer;
  }
  for (const char c : key) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

TOOLDECODE_INLINE std::optional<std::vector<std::string>> pointer_keys(std::string_view pointer) {
  std::vector<std::string> keys;
  if (!pointer.empty() && pointer[0] != '/') return std::nullopt;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else if (pointer[i] != '~') {
      keys.back() += pointer[i];
    } else if (++i < pointer.size() && (pointer[i] == '0' || pointer[i] == '1')) {
      keys.back() += pointer[i] == '0' ? '~' : '/';
    } else {
      return std::nullopt;
    }
  }
  return keys;
}

TOOLDECODE_INLINE std::optional<std::size_t> item_index(std::string_view key, std::size_t size) {
  std::size_t index       = 0;
  const char* const last  = key.data() + key.size();
  const auto [end, error] = std::from_chars(key.data(), last, index);
  const bool leading_zero = key.size() > 1 && key[0] == '0';
  if (error != std::errc() || end != last || leading_zero || index >= size) return std::nullopt;
  return index;
}

}  // namespace tooldecode::text
