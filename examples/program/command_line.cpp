#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <program/command_line.hpp>

namespace program {

CommandOption CommandOption::shows_default() {
  option_->capture_default_str();
  return *this;
}
CommandOption CommandOption::within(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
CommandOption CommandOption::within(double least, double most) {
  option_->check([](const std::string& text) {  // a NaN is in every range of CLI11's
    const double value = std::strtod(text.c_str(), nullptr);
    return std::isfinite(value) ? std::string() : text + " must be a finite number";
  });
  option_->check(CLI::Range(least, most));
  return *this;
}
CommandOption CommandOption::required() {
  option_->required();
  return *this;
}
CommandOption CommandOption::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}
CommandOption CommandOption::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}
CommandOption CommandOption::environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}
CommandOption CommandOption::notes(bool& given) {
  option_->each([&given](const std::string&) { given = true; });
  return *this;
}
CommandOption CommandOption::needs(const std::string& other) {
  option_->needs(other);
  return *this;
}
CommandOption CommandOption::excludes(const std::string& other) {
  option_->excludes(other);
  return *this;
}

namespace {

/// CLI11 2.1 reads -1 as the greatest number, and what is too great as well.
std::string is_count(const std::string& text) {
  std::uint64_t value   = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole   = why == std::errc() && end == text.data() + text.size();
  return is_whole ? std::string() : text + " must be a whole number, 0 or more, of 64 bits";
}

}  // namespace

CommandOption Command::option(const std::string& name, std::string& value,
                              const std::string& help) {
  return CommandOption(*app_->add_option(name, value, help));
}
CommandOption Command::option(const std::string& name, std::vector<std::string>& value,
                              const std::string& help) {
  return CommandOption(*app_->add_option(name, value, help));
}
CommandOption Command::option(const std::string& name, std::vector<std::size_t>& value,
                              const std::string& help) {
  return CommandOption(*app_->add_option(name, value, help)->check(is_count));
}
template <std::integral Integer>
CommandOption Command::option(const std::string& name, Integer& value, const std::string& help) {
  CLI::Option* const option = app_->add_option(name, value, help);
  if constexpr (std::unsigned_integral<Integer>) option->check(is_count);
  return CommandOption(*option);
}
template CommandOption Command::option(const std::string&, int&, const std::string&);
template CommandOption Command::option(const std::string&, long&, const std::string&);
template CommandOption Command::option(const std::string&, long long&, const std::string&);
template CommandOption Command::option(const std::string&, unsigned long&, const std::string&);
template CommandOption Command::option(const std::string&, unsigned long long&, const std::string&);
CommandOption Command::option(const std::string& name, float& value, const std::string& help) {
  return CommandOption(*app_->add_option(name, value, help));
}
CommandOption Command::option(const std::string& name, double& value, const std::string& help) {
  return CommandOption(*app_->add_option(name, value, help));
}
void Command::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}
void Command::runs(std::function<void()> run) {
  app_->callback(std::move(run));
}

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}
CommandLine::~CommandLine() = default;

Command CommandLine::command(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}
void CommandLine::printing_flag(const std::string& name, std::function<std::string()> text,
                                const std::string& help) {
  const auto print = [text = std::move(text)] {
    std::cout << text() << '\n';
    throw CLI::Success();
  };
  app_->add_flag_callback(name, print, help);
}
void CommandLine::printing_option(const std::string& name,
                                  std::function<std::string(const std::string&)> text,
                                  const std::string& help) {
  const auto print = [text = std::move(text)](const std::string& value) {
    std::cout << text(value) << '\n';
    throw CLI::Success();
  };
  app_->add_option_function<std::string>(name, print, help);
}
int CommandLine::run(int count, char** arguments) {
  try {
    app_->parse(count, arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);
    std::cerr << app_->get_name() << ": " << error.what() << " (see " << app_->get_name()
              << " --help)\n";
  }
  return 2;
}

}  // namespace program
