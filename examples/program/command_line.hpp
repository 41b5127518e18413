/// \file
/// CommandLine: the program's commands and their options. Only one source file includes the parsing
/// library.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace program {

class CommandOption {
 public:
  explicit CommandOption(CLI::Option& option) : option_(&option) {}

  CommandOption shows_default();
  CommandOption within(int least, int most);
  CommandOption within(double least, double most);
  CommandOption required();
  /// Several values in one argument, separated by `between`.
  CommandOption delimiter(char between);
  CommandOption one_at_a_time();
  CommandOption environment(const std::string& variable);
  /// Sets `given` if the user gives the option, with its default value too. It must outlive the
  /// command.
  CommandOption notes(bool& given);
  /// Refuses the option without another one that was added before.
  CommandOption needs(const std::string& other);
  /// Refuses the option beside another one that was added before.
  CommandOption excludes(const std::string& other);

 private:
  CLI::Option* option_;
};

/// A command: its options and its action. The variables of options must outlive it.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  CommandOption option(const std::string& name, std::string& value, const std::string& help);
  CommandOption option(const std::string& name, std::vector<std::string>& value,
                       const std::string& help);
  CommandOption option(const std::string& name, std::vector<std::size_t>& value,
                       const std::string& help);
  /// Of any width: std::size_t is std::uint64_t on some systems only. Unsigned ones are counts.
  template <std::integral Integer>
  CommandOption option(const std::string& name, Integer& value, const std::string& help);
  CommandOption option(const std::string& name, float& value, const std::string& help);
  CommandOption option(const std::string& name, double& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  void runs(std::function<void()> run);

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  CommandLine(const CommandLine&)            = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  [[nodiscard]] Command command(const std::string& name, const std::string& help);
  /// A flag that makes the program print a text and exit.
  void printing_flag(const std::string& name, std::function<std::string()> text,
                     const std::string& help);
  /// An option that makes the program print a text for its value and exit.
  void printing_option(const std::string& name, std::function<std::string(const std::string&)> text,
                       const std::string& help);
  /// Runs the selected command and returns the exit status. Exceptions of the command pass through.
  [[nodiscard]] int run(int count, char** arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace program
