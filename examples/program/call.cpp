// tooldecode call: answers one question plainly, under the constraint, and with speculation.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>

#include <program/answer.hpp>
#include <program/answer_trace.hpp>
#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/drafts.hpp>
#include <program/files.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/models.hpp>
#include <program/readings.hpp>
#include <program/speculation.hpp>
#include <program/trace_file.hpp>

namespace program {
namespace {

namespace td = tooldecode;

struct CallOptions {
  ModelOptions model;
  std::string tools = example_data("tools.json").string();
  std::string format;
  std::string choice      = "auto";
  std::string enforcement = "strict";
  std::string reasoning   = "no";
  std::string question;
  float temperature      = 0;
  std::uint64_t seed     = 1;
  std::size_t max_tokens = 128;
  std::size_t whitespace = 0;
  DraftOptions drafts;
  std::size_t orders     = 0;
  bool no_repeated_calls = false;
  bool json              = false;
  std::vector<std::string> trace;
};

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

// Tokens per forward pass, an end token included.
double tokens_per_pass(const td::Output& output) {
  const std::size_t tokens = output.tokens.size() + (output.finish == td::Finish::end ? 1 : 0);
  return static_cast<double>(tokens) / static_cast<double>(std::max<std::size_t>(1, output.passes));
}

Json drafts_json(const td::Output& output) {
  Json depths = Json::array();
  for (std::size_t d = 0; d < output.drafts.tried.size(); ++d) {
    depths.push_back({{"depth", d + 1},
                      {"tried", output.drafts.tried[d]},
                      {"accepted", output.drafts.accepted[d]}});
  }
  return {{"tokens_per_pass", tokens_per_pass(output)},
          {"rounds", output.drafts.rounds},
          {"drafted_tokens", output.drafts.nodes},
          {"acceptance_by_depth", depths}};
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

// Without the prefill, which does not depend on the number of passes.
double decoding_us_per_token(const td::Output& output) {
  return per_token(output.times.total() - output.times.prefill, output);
}
void print_row(const char* what, const std::vector<std::string>& cells) {
  std::cout << "  " << std::left << std::setw(28) << what << std::right;
  for (const std::string& cell : cells) std::cout << std::setw(14) << cell;
  std::cout << '\n';
}

std::string number(double value, const char* unit) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << value << unit;
  return out.str();
}

struct Column {
  std::string name;
  std::string title;
  Answer answer;
  std::vector<td::CallVote> votes = {};
};

void print_depths(const td::Output& output) {
  std::cout << "\nDrafts accepted, by depth\n  ";
  for (std::size_t d = 0; d < output.drafts.tried.size(); ++d) {
    std::cout << (d ? ",  " : "") << d + 1 << ": " << output.drafts.accepted[d] << " of "
              << output.drafts.tried[d];
  }
  std::cout << (output.drafts.tried.empty() ? "nothing was drafted\n" : "\n");
}

// What all columns share, in microseconds.
struct Shared {
  double build;
  std::size_t prompt;  // tokens
  double reading;
};

void print_report(const CallOptions& options, const td::ToolSet& tools,
                  const std::vector<Column>& columns, const Shared& shared) {
  std::cout << "Question  " << options.question << "\nTools     ";
  for (std::size_t i = 0; i < tools.size(); ++i) std::cout << (i ? ", " : "") << tools[i].name;
  std::cout << "\nFormat    " << options.format << ", tool choice " << options.choice << "\n\n";
  for (const Column& column : columns) print_answer(column.title, column.answer);
  const auto row = [&columns](const char* what, auto cell) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(cell(column.answer, column.answer.output));
    print_row(what, cells);
  };
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  print_row("", names);
  row("parses", [&](const Answer& a, const auto&) { return yes(a.parses); });
  row("conforms", [&](const Answer& a, const auto&) { return yes(a.valid); });
  row("tokens", [](const auto&, const td::Output& o) { return std::to_string(o.tokens.size()); });
  row("fast-forward tokens",
      [](const auto&, const td::Output& o) { return std::to_string(o.forced_tokens); });
  row("forward passes", [](const auto&, const td::Output& o) { return std::to_string(o.passes); });
  row("tokens per pass",
      [](const auto&, const td::Output& o) { return number(tokens_per_pass(o), ""); });
  row("decoding, per token",
      [](const auto&, const td::Output& o) { return number(decoding_us_per_token(o), " us"); });
  row("of which constraint", [](const auto&, const td::Output& o) {
    return number(per_token(o.times.constraint, o), " us");
  });
  const auto speculative = std::ranges::find(columns, "speculative", &Column::name);
  const bool drafted     = speculative != columns.end();
  if (drafted) {
    row("of which drafting", [](const auto&, const td::Output& o) {
      return number(per_token(o.times.drafting, o), " us");
    });
  }
  std::cout << "  constraint built in " << number(shared.build, " us") << "\n  prompt of "
            << shared.prompt << " tokens read in " << number(shared.reading, " us")
            << ", once for all answers"
            << (drafted && !is_text_drafter(options.drafts.settings.drafter)
                    ? "; with draft layers once more, for its hidden states\n"
                    : "\n");
  if (drafted) {
    const td::Output& output = speculative->answer.output;
    print_depths(output);
    std::cout << "The speculative answer is "
              << (output.tokens == columns[1].answer.output.tokens ? "" : "NOT ")
              << "the constrained one, token for token.\n";
  }
  std::cout << readings_text(tools);
}

// The question if the user gives none.
std::string default_question(const Assistant& assistant) {
  if (assistant.is_embedded()) return "Please book a table at Luigi's for four people, outdoors.";
  return "What is the weather in Oslo?";
}

Column answer_in_orders(std::size_t orders, const Assistant& assistant, const td::ModelRef& model,
                        const td::ToolCallFSM& calls, const std::vector<td::TokenId>& prompt,
                        const td::DecodeOptions& decode) {
  const td::Decoder decoder{model, calls};
  const td::OrderConsistencySampler sampler{
      decoder, {.max_orders = orders, .encode = [&assistant](std::string_view text) {
                  return assistant.tokenizer.encode(text);
                }}};
  td::Consensus consensus = sampler(prompt, decode);
  return {"orders",
          "Constrained decoding, voted on in at most " + std::to_string(orders) + " orders",
          read_answer(calls, std::move(consensus.output)), std::move(consensus.calls)};
}

void write_trace(TraceFile& trace, const Assistant& assistant, const Shared& shared,
                 const std::vector<Column>& columns) {
  trace.set("prompt_tokens", shared.prompt);
  trace.set("prompt_microseconds", shared.reading);
  for (const Column& column : columns) {
    AnswerTrace answer(assistant.tokenizer.vocabulary(), column.name);
    answer.add(column.answer.output);
    answer.add(column.votes);
    answer.set("title", column.title);
    answer.set("valid", column.answer.valid);
    if (!column.answer.valid) answer.set("problem", column.answer.problem);
    answer.set("calls", calls_json(column.answer));
    trace.add(answer);
  }
  trace.write();
}

void run_call(CallOptions options, const td::ToolSet& tools, const Assistant& assistant,
              const Drafting& drafting) {
  if (options.question.empty()) options.question = default_question(assistant);
  const Format& format     = assistant.format(options.format);
  options.format           = format.name;
  const auto start         = std::chrono::steady_clock::now();
  td::ChoiceOptions choice = parse_choice(options.choice);
  choice.reasoning         = parse_reasoning(options.reasoning, format);
  choice.whitespace        = static_cast<std::uint32_t>(options.whitespace);
  choice.enforcement       = parse_enforcement(options.enforcement);
  const td::ToolCallFSM calls(assistant.masks, tools, format.format, choice);
  const double build = microseconds(std::chrono::steady_clock::now() - start);
  const auto prompt  = assistant.prompt(calls.tools(), format, {{"user", options.question}});
  TraceFile trace(
      options.trace, "call",
      {{"model", options.model.name}, {"question", options.question}, {"format", options.format}});
  td::DecodeOptions decode{
      .max_tokens = options.max_tokens, .temperature = options.temperature, .seed = options.seed};
  if (trace.is_on()) decode.trace = traced_alternatives;
  const td::DecodeOptions free = decode;
  decode.always_ends           = true;  // constrained answers are never cut
  const auto reader            = assistant.prefill();
  const auto begin             = std::chrono::steady_clock::now();
  reader->read(prompt);
  const double reading     = microseconds(std::chrono::steady_clock::now() - begin);
  const td::ModelRef model = reader->ref();
  std::vector<Column> columns{
      {"plain", "Plain decoding", answer_plainly(model, calls, prompt, free)},
      {"constrained", "Constrained decoding",
       options.no_repeated_calls
           ? answer_constrained(model, td::WithoutRepeats(calls), prompt, decode)
           : answer_constrained(model, calls, prompt, decode)}};
  if (options.orders > 0) {
    columns.push_back(answer_in_orders(options.orders, assistant, model, calls, prompt, decode));
  }
  if (options.drafts.is_on()) {
    columns.push_back({"speculative", "Speculative decoding, " + options.drafts.settings.drafter,
                       read_answer(calls, decode_with_drafts(assistant, drafting, calls, prompt,
                                                             decode, model))});
  }
  const Shared shared{.build = build, .prompt = prompt.size(), .reading = reading};
  if (trace.is_on()) write_trace(trace, assistant, shared, columns);
  if (!options.json) return print_report(options, calls.tools(), columns, shared);
  Json report{
      {"question", options.question}, {"prompt_tokens", prompt.size()}, {"prompt_us", reading}};
  for (const td::tools::Note& note : calls.tools().notes()) {
    if (!td::tools::is_given_up(note.reading)) continue;
    if (!report.contains("not_enforced")) report["not_enforced"] = Json::array();
    report["not_enforced"].push_back({{"tool", note.tool}, {"text", note.text}});
  }
  for (const Column& column : columns) {
    report[column.name]                          = report_json(column.answer);
    report[column.name]["decoding_us_per_token"] = decoding_us_per_token(column.answer.output);
    if (column.name == "constrained") {
      report[column.name]["constraint_us_per_token"] =
          per_token(column.answer.output.times.constraint, column.answer.output);
    } else if (column.name == "speculative") {
      report[column.name]["drafter"] = options.drafts.settings.drafter;
      report[column.name].update(drafts_json(column.answer.output));
    }
  }
  std::cout << report.text({.indent = 2}) << '\n';
}

void run_call(const CallOptions& options) {
  check_format(options.format);
  if (options.no_repeated_calls && options.drafts.is_on()) {
    throw td::Error(td::Errc::invalid_option, "--speculation",
                    "must be none with --no-repeated-calls");
  }
  const td::ToolSet tools = [&] {
    try {
      return td::ToolSet::parse(read_file(options.tools), {}, {},
                                parse_enforcement(options.enforcement));
    } catch (const td::Error& error) {
      if (error.code() == td::Errc::file_unreadable) throw;
      throw td::Error(error.code(), options.tools, error.what());
    }
  }();
  const auto assistant = load_target(options.model, options.drafts);
  run_call(options, tools, *assistant,
           load_sized_drafting(options.drafts, options.model, *assistant));
}

}  // namespace

void add_call(CommandLine& line) {
  auto options = std::make_shared<CallOptions>();
  Command sub =
      line.command("call", "Ask a model one question: plainly, constrained, speculatively");
  add_model_options(sub, options->model);
  sub.option("--tools", options->tools,
             "tool documents: JSON of OpenAI, Anthropic, MCP, Bedrock, Gemini, BFCL or API-Bank")
      .shows_default();
  sub.option("--format", options->format, "call format: " + format_values() + "; default: auto");
  sub.option("--choice", options->choice, "auto, none, required or a tool's name").shows_default();
  sub.option("--enforcement", options->enforcement,
             "of a tool that cannot be enforced: strict is an error, relax gives up the least that "
             "helps, drop leaves the tool out; what was given up is listed")
      .shows_default();
  add_reasoning_option(sub, options->reasoning);
  add_whitespace_option(sub, options->whitespace);
  sub.option("--temperature", options->temperature, "0 is greedy").shows_default();
  sub.option("--seed", options->seed, "of the sampling noise").shows_default();
  sub.option("--max-tokens", options->max_tokens, "most tokens of an answer").shows_default();
  add_draft_options(sub, options->drafts);
  sub.option("--orders", options->orders,
             "answer by vote over at most so many orders of a call's parameters, too; 0: do not")
      .shows_default()
      .within(0, 64);
  sub.flag("--no-repeated-calls", options->no_repeated_calls,
           "constrained, no call is made twice in a row");
  sub.flag("--json", options->json, "print one JSON object and nothing else");
  add_trace_option(sub, options->trace, "how each token of each answer came");
  sub.option("question", options->question,
             "what to ask; by default something about --tools' default");
  sub.runs([options] { run_call(*options); });
}

}  // namespace program
