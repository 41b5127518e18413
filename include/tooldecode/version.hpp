/// \file
/// The library's version; the build reads it from here.
#pragma once

#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Semantic version, "major.minor.patch".
inline constexpr std::string_view version = "0.2.0";

}  // namespace tooldecode
