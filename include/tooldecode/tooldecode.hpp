/// \file
/// The whole host library under one include, for users; the library itself never includes it.
#pragma once

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/philox.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/fwd.hpp>
#include <tooldecode/version.hpp>
