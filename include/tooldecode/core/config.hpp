/// \file
/// Every macro of the library: TOOLDECODE_ASSERT, which users may replace before the first include.
#pragma once

#include <cassert>

/// Checks a precondition in debug builds; a broken one is the caller's bug, never bad input.
#ifndef TOOLDECODE_ASSERT
#define TOOLDECODE_ASSERT(condition) assert(condition)
#endif
