/// \file
/// run_record: what a file of results says about its making: commit, date, machine, compiler,
/// versions, command.
#pragma once

#include <program/json.hpp>

namespace program {

/// What stands in a file of results as `made_by`; the commit has "+changes" behind it where the
/// sources are not that commit's, and is "unknown" outside of a git tree, unless the environment's
/// TOOLDECODE_COMMIT names it.
///
/// The commit is that of the sources when the program runs, asked of git, so that a commit compiles
/// nothing anew.
///
/// \param peers  name and version of each program that is measured beside this library
[[nodiscard]] Json run_record(Json peers = Json::object());

}  // namespace program
