// How many random cases a test tries.
#pragma once

#include <cstdint>

namespace tooldecode::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

/// All of them, or the first fifth with a sanitizer, which checks memory and makes each case
/// several times slower. run.sh runs all without a sanitizer.
constexpr std::uint32_t cases(std::uint32_t all) {
  return is_sanitized ? (all + 4) / 5 : all;
}

}  // namespace tooldecode::test
