/// \file
/// The program's commands: each adds itself to the command line.
#pragma once

namespace program {

class CommandLine;

void add_agent(CommandLine& line);
void add_call(CommandLine& line);
void add_check(CommandLine& line);
void add_eval(CommandLine& line);
void add_ranks(CommandLine& line);
void add_sample(CommandLine& line);
void add_serve(CommandLine& line);

}  // namespace program
