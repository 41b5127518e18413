/// \file
/// Catch2 2 (one header) and Catch2 3 under one include.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace tooldecode::test {

/// A matcher for REQUIRE_THROWS_WITH and REQUIRE_THAT: the text contains `part`.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace tooldecode::test
