/// \file
/// Every macro of the library: TOOLDECODE_ASSERT, which users may replace before the first include,
/// and TOOLDECODE_COMPILED, which the target tooldecode::compiled defines.
/// The language's version is checked here alone: every header that includes no other of the library
/// includes this one, so that whatever is included, this is read first.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tooldecode needs C++20: compile with -std=c++20 (MSVC: /std:c++20) or later"
#include <tooldecode_needs_cxx20>  // no such file: compilers end here, and not a thousand lines later
#endif

#include <cassert>

/// Checks a precondition in debug builds; a broken one is the caller's bug, never bad input.
#ifndef TOOLDECODE_ASSERT
#define TOOLDECODE_ASSERT(condition) assert(condition)
#endif

/// Functions that stand in a file .ipp: defined in every translation unit, or, where
/// TOOLDECODE_COMPILED is defined, once in the library that tooldecode::compiled builds.
#ifdef TOOLDECODE_COMPILED
#define TOOLDECODE_INLINE
#else
#define TOOLDECODE_INLINE inline
#endif
