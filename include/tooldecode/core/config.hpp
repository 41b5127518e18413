/// \file
/// The library's macros, and the check of the language version.
/// Users may define TOOLDECODE_ASSERT before the first include. The target tooldecode::tooldecode
/// defines TOOLDECODE_COMPILED.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "tooldecode needs C++20: compile with -std=c++20 (MSVC: /std:c++20) or later"
#include <tooldecode_needs_cxx20>  // no such file: stops the compiler here
#endif

#include <cassert>

/// Checks a precondition in debug builds. A failure is a bug of the caller, never bad input.
#ifndef TOOLDECODE_ASSERT
#define TOOLDECODE_ASSERT(condition) assert(condition)
#endif

/// Marks the functions in .ipp files. They are defined in every translation unit, or, with
/// TOOLDECODE_COMPILED, once in the library that tooldecode::tooldecode builds.
#ifdef TOOLDECODE_COMPILED
#define TOOLDECODE_INLINE
#else
#define TOOLDECODE_INLINE inline
#endif
