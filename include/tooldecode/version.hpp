/// \file
/// The library's version. The build reads it from this file.
#pragma once

#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// Semantic version, "major.minor.patch".
inline constexpr std::string_view version = "0.3.0";

}  // namespace tooldecode
