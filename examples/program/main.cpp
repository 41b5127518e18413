// tooldecode: correct tool calls from a language model, on the command line.
#include <exception>
#include <iostream>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/version.hpp>

#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/formats.hpp>
#include <program/run_record.hpp>

int main(int argc, char** argv) {
  program::CommandLine line("tooldecode", "tooldecode: constrained decoding of tool calls",
                            std::string(tooldecode::version));
  line.printing_flag(
      "--made-by", [] { return program::run_record().text({.indent = 1}); },
      "Print commit, machine, compiler and versions, as files of results have them");
  line.printing_option(
      "--print-format",
      [](const std::string& name) {
        return tooldecode::formats::format_text(program::format_named(name));
      },
      "Print the description of a call format; a .json file with it, or with your own, is a --format");
  program::add_agent(line);
  program::add_call(line);
  program::add_check(line);
  program::add_eval(line);
  program::add_ranks(line);
  program::add_sample(line);
  program::add_serve(line);
#ifdef TOOLDECODE_LLAMA_LIBRARY
  program::Command library = line.command(
      "llama-library",
      "Print the path of the library that gives llama.cpp's programs this engine for their "
      "grammars: LD_PRELOAD=$(tooldecode llama-library) llama-server ...");
  library.runs([] { std::cout << TOOLDECODE_LLAMA_LIBRARY << '\n'; });
#endif
  try {
    return line.run(argc, argv);
  } catch (const tooldecode::Error& error) {
    std::cerr << "tooldecode: " << name(error.code()) << ": " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "tooldecode: " << error.what() << '\n';
  }
  return 2;
}
