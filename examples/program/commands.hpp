/// \file
/// The program's commands: each adds itself to the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace program {

void add_agent(CLI::App& app);
void add_call(CLI::App& app);
void add_check(CLI::App& app);
void add_eval(CLI::App& app);
void add_ranks(CLI::App& app);
void add_sample(CLI::App& app);
void add_serve(CLI::App& app);

}  // namespace program
