// tooldecode: correct tool calls from a language model, on the command line.
#include <exception>
#include <iostream>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/version.hpp>

#include <CLI/CLI.hpp>
#include <program/commands.hpp>
#include <program/run_record.hpp>

int main(int argc, char** argv) {
  CLI::App app{"tooldecode: constrained decoding of tool calls", "tooldecode"};
  app.set_version_flag("--version", std::string(tooldecode::version));
  const auto print_record = [] {
    std::cout << program::run_record().dump(1) << '\n';
    throw CLI::Success();
  };
  app.add_flag_callback(
      "--made-by", print_record,
      "Print commit, machine, compiler and versions, as files of results have them");
  app.require_subcommand(1);
  program::add_agent(app);
  program::add_call(app);
  program::add_check(app);
  program::add_eval(app);
  program::add_ranks(app);
  program::add_sample(app);
  program::add_serve(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "tooldecode: " << error.what() << " (see tooldecode --help)\n";
  } catch (const tooldecode::Error& error) {
    std::cerr << "tooldecode: " << name(error.code()) << ": " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "tooldecode: " << error.what() << '\n';
  }
  return 2;
}
