// tooldecode call: one question, answered plainly and under the constraint, side by side.
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>
#include <program/answer.hpp>
#include <program/commands.hpp>
#include <program/files.hpp>

namespace program {
namespace {

namespace td = tooldecode;
using Json   = nlohmann::ordered_json;

struct CallOptions {
  std::string model      = example_data("tiny").string();
  std::string tools      = example_data("tools.json").string();
  std::string format     = "python";
  std::string choice     = "auto";
  std::string question   = "Please book a table at Luigi's for four people, outdoors.";
  float temperature      = 0;
  std::uint64_t seed     = 1;
  std::size_t max_tokens = 128;
  bool json              = false;
};

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double per_token(std::chrono::nanoseconds time, const td::Output& output) {
  return microseconds(time) / static_cast<double>(std::max<std::size_t>(1, output.tokens.size()));
}

Json calls_json(const Answer& answer) {
  Json list = Json::array();
  for (const td::ToolCall& call : answer.calls) {
    list.push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  return list;
}

Json report_json(const Answer& answer) {
  return {{"text", answer.text},
          {"calls", calls_json(answer)},
          {"valid", answer.valid},
          {"tokens", answer.output.tokens.size()},
          {"passes", answer.output.passes}};
}

void print_answer(const std::string& title, const Answer& answer) {
  std::cout << title << '\n';
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) std::cout << "    " << line << '\n';
  std::cout << "    -> "
            << (answer.valid
                    ? (answer.calls.empty() ? "valid: an answer without a call"
                                            : "valid: parses, and conforms to its document")
                    : "NOT valid: " + answer.problem)
            << "\n\n";
}

void print_row(const char* what, const std::string& plain, const std::string& constrained) {
  std::cout << "  " << std::left << std::setw(30) << what << std::right << std::setw(12) << plain
            << std::setw(14) << constrained << '\n';
}

std::string number(double value, const char* unit) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << value << unit;
  return out.str();
}

void print_report(const CallOptions& options, const td::ToolSet& tools, const Answer& plain,
                  const Answer& constrained, double build) {
  std::cout << "Question  " << options.question << "\nTools     ";
  for (std::size_t i = 0; i < tools.size(); ++i) std::cout << (i ? ", " : "") << tools[i].name;
  std::cout << "\nFormat    " << options.format << ", tool choice " << options.choice << "\n\n";
  print_answer("Plain decoding", plain);
  print_answer("Constrained decoding", constrained);
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  const auto& p  = plain.output;
  const auto& c  = constrained.output;
  print_row("", "plain", "constrained");
  print_row("parses", yes(plain.parses), yes(constrained.parses));
  print_row("conforms", yes(plain.valid), yes(constrained.valid));
  print_row("tokens", std::to_string(p.tokens.size()), std::to_string(c.tokens.size()));
  print_row("forced tokens", "0", std::to_string(c.forced_tokens));
  print_row("forward passes", std::to_string(p.passes), std::to_string(c.passes));
  print_row("time per token", number(per_token(p.times.total(), p), " us"),
            number(per_token(c.times.total(), c), " us"));
  print_row("of which constraint", "", number(per_token(c.times.constraint, c), " us"));
  print_row(
      "share of the constraint", "",
      number(100 * microseconds(c.times.constraint) / std::max(1.0, microseconds(c.times.total())),
             " %"));
  std::cout << "  constraint built in " << number(build, " us") << '\n';
  if (!tools.notes().empty()) {
    std::cout << "\nReadings of the tool documents\n";
    for (const td::Note& note : tools.notes()) {
      std::cout << "  " << note.tool << ' ' << note.pointer << ": " << note.text << '\n';
    }
  }
}

void run_call(const CallOptions& options) {
  const Format& format    = format_named(options.format);
  const td::ToolSet tools = [&] {
    try {
      return td::ToolSet::parse(read_file(options.tools));
    } catch (const td::Error& error) {
      if (error.code() == td::Errc::file_unreadable) throw;
      throw td::Error(error.code(), options.tools, error.what());
    }
  }();
  const Assistant assistant(options.model);
  const auto start = std::chrono::steady_clock::now();
  const td::ToolCallFSM calls =
      format.constrain(assistant.masks, tools, parse_choice(options.choice));
  const double build = microseconds(std::chrono::steady_clock::now() - start);
  const auto prompt =
      make_prompt(assistant.tokenizer, tools, options.format, {{"user", options.question}});
  const td::DecodeOptions decode{
      .max_tokens = options.max_tokens, .temperature = options.temperature, .seed = options.seed};
  const Answer plain       = answer_plainly(assistant, calls, prompt, decode);
  const Answer constrained = answer_constrained(assistant, calls, prompt, decode);
  if (!options.json) return print_report(options, tools, plain, constrained, build);
  Json report{{"question", options.question},
              {"plain", report_json(plain)},
              {"constrained", report_json(constrained)}};
  report["constrained"]["constraint_us_per_token"] =
      per_token(constrained.output.times.constraint, constrained.output);
  std::cout << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

void add_call(CLI::App& app) {
  auto options  = std::make_shared<CallOptions>();
  CLI::App* sub = app.add_subcommand(
      "call", "Ask the embedded model one question, with and without the constraint");
  sub->add_option("--model", options->model,
                  "directory with config.json, model.safetensors, "
                  "tokenizer.json")
      ->capture_default_str();
  sub->add_option("--tools", options->tools, "tool documents: OpenAI, MCP, BFCL or API-Bank JSON")
      ->capture_default_str();
  sub->add_option("--format", options->format, "call format: python or hermes")
      ->capture_default_str();
  sub->add_option("--choice", options->choice, "auto, none, required or a tool's name")
      ->capture_default_str();
  sub->add_option("--temperature", options->temperature, "0 is greedy")->capture_default_str();
  sub->add_option("--seed", options->seed, "of the sampling noise")->capture_default_str();
  sub->add_option("--max-tokens", options->max_tokens, "most tokens of an answer")
      ->capture_default_str();
  sub->add_flag("--json", options->json, "print one JSON object and nothing else");
  sub->add_option("question", options->question, "what to ask")->capture_default_str();
  sub->callback([options] { run_call(*options); });
}

}  // namespace program
