/// \file
/// Forward declarations, and the one place where default template arguments stand.
#pragma once

#include <tooldecode/core/types.hpp>

namespace tooldecode {

enum class Errc;
class Error;

}  // namespace tooldecode
