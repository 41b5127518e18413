/// \file
/// run_record: how a results file was made: commit, date, machine, compiler, versions, command.
#pragma once

#include <program/json.hpp>

namespace program {

/// The member `made_by` of a results file. The commit ends with "+changes" if the sources differ
/// from it, and is "unknown" outside a git tree, unless the environment variable TOOLDECODE_COMMIT
/// names it.
///
/// The program asks git for the commit at run time, so a new commit recompiles nothing.
///
/// \param peers  name and version of each program that is measured beside this library
[[nodiscard]] Json run_record(Json peers = Json::object());

}  // namespace program
