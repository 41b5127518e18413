/// \file
/// CommandLine: the program's command line, of commands with options; the library that reads it is
/// known to one source alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace program {

/// An option of a command, to say more of it.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option& option) : option_(&option) {}

  /// Help tells the value that it has where it is not given.
  CommandOption shows_default();
  CommandOption within(int least, int most);
  CommandOption within(double least, double most);
  CommandOption required();
  /// Several values in one word, with this between them.
  CommandOption delimiter(char between);
  /// Takes one value each time that it is given.
  CommandOption one_at_a_time();
  /// May stand in a variable of the environment.
  CommandOption environment(const std::string& variable);

 private:
  CLI::Option* option_;
};

/// A command: its options and what it does. What the options are written into outlives it.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  CommandOption option(const std::string& name, std::string& value, const std::string& help);
  CommandOption option(const std::string& name, std::vector<std::string>& value,
                       const std::string& help);
  CommandOption option(const std::string& name, std::vector<std::size_t>& value,
                       const std::string& help);
  CommandOption option(const std::string& name, std::int32_t& value, const std::string& help);
  CommandOption option(const std::string& name, std::int64_t& value, const std::string& help);
  CommandOption option(const std::string& name, std::uint64_t& value, const std::string& help);
  CommandOption option(const std::string& name, float& value, const std::string& help);
  CommandOption option(const std::string& name, double& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  void runs(std::function<void()> run);

 private:
  CLI::App* app_;
};

/// The whole of it.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  CommandLine(const CommandLine&)            = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  [[nodiscard]] Command command(const std::string& name, const std::string& help);
  /// A flag with which the program prints a text and does nothing else.
  void printing_flag(const std::string& name, std::function<std::string()> text,
                     const std::string& help);
  /// Runs the command that is asked for; the status to exit with. Passes on what a command throws.
  [[nodiscard]] int run(int count, char** arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace program
