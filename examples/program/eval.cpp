// tooldecode eval: compares decoding methods on rows with known answers, and classifies the errors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/research/argument_types.hpp>
#include <tooldecode/research/classify.hpp>

#include <program/answer_file.hpp>
#include <program/answer_trace.hpp>
#include <program/assistant.hpp>
#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/drafts.hpp>
#include <program/formats.hpp>
#include <program/methods.hpp>
#include <program/models.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/readings.hpp>
#include <program/reports.hpp>
#include <program/rows.hpp>
#include <program/run_record.hpp>
#include <program/scores.hpp>
#include <program/seconds.hpp>
#include <program/shots.hpp>
#include <program/trace_file.hpp>

namespace program {
namespace {

namespace td = tooldecode;

using Clock = std::chrono::steady_clock;

struct EvalOptions {
  ModelOptions model;
  std::vector<std::string> data{example_data("tiny/heldout.jsonl").string()};
  std::vector<std::string> methods{"greedy",         "beam",        "self-consistency", "tooldec",
                                   "tooldec-schema", "constrained", "tool-decoding"};
  std::vector<std::size_t> orders{1, 4, 6, 9, 12};
  std::vector<std::string> only_orders;
  std::string json, plot, answers, row, choice, format;
  std::vector<std::string> trace;
  DraftOptions drafts;
  std::size_t jobs       = 1;
  std::size_t limit      = 0;
  std::size_t max_tokens = 160;
  std::size_t whitespace = 0;
  bool keep_prefix       = false;
  bool resume            = false;
  std::uint64_t seed     = 1;
};

// One row's answers, one for each method; empty if the row cannot be used. The order of methods
// rotates from row to row. A constrained method builds its constraint again for each row, within
// its own time. The model reads the prompt once, which counts for each method.
std::vector<Result> evaluate(const Assistant& assistant, AnyPrefilledModel& model,
                             const std::vector<Method>& methods, const Row& row, std::size_t index,
                             const td::DecodeOptions& options, AnswerFile& answers,
                             TraceFile& trace) {
  const auto prompt = assistant.prompt(row.tools, *row.format, row.messages);
  if (prompt.size() >= assistant.model_ref().context_length()) {
    throw td::Error(td::Errc::limit_exceeded, "", "the prompt is longer than the model's context");
  }
  const auto begin = Clock::now();
  model.read(prompt);
  const td::ModelRef after = model.ref();
  const double reading     = seconds_since(begin);
  std::vector<Result> results(methods.size());
  std::vector<std::string> texts(methods.size());
  std::vector<td::Verdict> verdicts(methods.size());
  const auto constrain = [&](const td::ToolSet& tools) {
    return td::ToolCallFSM(assistant.masks, tools, row.format->format, row.choice);
  };
  const auto judge = constrain(row.tools);  // reads calls for methods without a constraint
  for (std::size_t turn = 0; turn < methods.size(); ++turn) {
    const std::size_t m              = (index + turn) % methods.size();
    td::DecodeOptions method_options = options;
    method_options.temperature       = methods[m].temperature;
    method_options.always_ends       = methods[m].constrained && !methods[m].may_be_cut;
    const auto start                 = Clock::now();
    const auto calls                 = !methods[m].constrained ? judge
                                       : methods[m].types_only ? constrain(td::tools::with_types_only(row.tools))
                                                               : constrain(row.tools);
    const auto [output, votes] =
        methods[m].prepare(after, assistant.tokenizer, calls)(prompt, method_options);
    const double seconds = reading + seconds_since(start);
    texts[m]             = assistant.tokenizer.vocabulary().answer_text(output.tokens);
    verdicts[m]          = td::classify(row.expected, texts[m], *row.format, row.tools);
    results[m] = {verdicts[m].error, seconds, output.passes, output.tokens.size(), reading};
    if (!trace.is_on()) continue;
    AnswerTrace answer(assistant.tokenizer.vocabulary(), methods[m].name);
    answer.add(output);
    answer.add(votes);
    answer.set("verdict", td::name(verdicts[m].error));
    answer.set("difference", verdicts[m].difference);
    trace.add(answer);
  }
  answers.add(row.id, texts, verdicts, results);
  return results;
}

std::vector<std::vector<Result>> evaluate_all(const Assistant& assistant,
                                              const std::vector<Method>& methods,
                                              const std::vector<Row>& rows,
                                              const EvalOptions& options, LeftOut& left_out,
                                              TraceFile& trace) {
  std::vector<std::vector<Result>> results(rows.size());
  Progress progress(rows.size());
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::vector<std::string> names;
  for (const auto& method : methods) names.push_back(method.name);
  // For `auto`, what was chosen.
  const std::string format = options.format == automatic_format && !rows.empty()
                                 ? rows.front().format->name
                                 : options.format;
  AnswerFile answers(options.answers,
                     {{"model", options.model.name},
                      {"shots", options.model.shots},
                      {"shots_from", options.model.shots > 0 ? options.model.shots_from : ""},
                      {"keep_prefix", options.keep_prefix},
                      {"max_tokens", options.max_tokens},
                      {"choice", options.choice},
                      {"format", format},
                      {"whitespace", options.whitespace},
                      {"seed", options.seed}},
                     std::move(names), options.resume);
  const auto work = [&] {
    decltype(assistant.prefill()) model;
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      try {
        if (auto known = answers.find(rows[i].id)) {
          results[i] = *std::move(known);
        } else {
          if (!model || !options.keep_prefix) model = assistant.prefill();
          td::DecodeOptions decode{.max_tokens = options.max_tokens,
                                   .seed       = options.seed + 1000 * i};
          if (trace.is_on()) decode.trace = traced_alternatives;
          results[i] = evaluate(assistant, *model, methods, rows[i], i, decode, answers, trace);
        }
      } catch (const td::Error& error) {
        const std::lock_guard lock(mutex);
        left_out.add(error, rows[i].id);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
        return;
      }
      const std::lock_guard lock(mutex);
      progress.advance();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t j = 0; j < options.jobs; ++j) threads.emplace_back(work);
  threads.clear();
  progress.finish();
  if (failure) std::rethrow_exception(failure);
  return results;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw td::Error(td::Errc::file_unreadable, path, "cannot be written");
  }
}

void run_eval(const EvalOptions& options, const Assistant& assistant,
              const std::vector<Method>& methods) {
  std::vector<Row> rows;
  LeftOut left_out;
  for (const std::string& path : options.data) read_rows(path, options.limit, rows, left_out);
  const Format* const format = options.format.empty() ? nullptr : &assistant.format(options.format);
  for (Row& row : rows) {
    if (!options.choice.empty()) row.choice = parse_choice(options.choice);
    if (format != nullptr) row.format = format;
    row.choice.whitespace = static_cast<std::uint32_t>(options.whitespace);
  }
  const Shots shown =
      read_shots(options.model.shots_from, static_cast<std::size_t>(options.model.shots));
  std::erase_if(rows, [&](const Row& row) {  // examples of the prompt are not questions
    return std::ranges::find(shown.rows, row.id, &Row::id) != shown.rows.end();
  });
  if (!options.row.empty()) {
    std::erase_if(rows, [&](const Row& row) { return row.id != options.row; });
    if (rows.empty()) throw td::Error(td::Errc::invalid_option, "--row", "no row " + options.row);
  }
  if (!options.trace.empty() && rows.size() != 1) {
    throw td::Error(td::Errc::invalid_option, "--trace",
                    "needs one row and not " + std::to_string(rows.size()) +
                        ": --row ID, or --limit 1 and one file");
  }
  TraceFile trace(
      options.trace, "eval",
      {{"model", options.model.name},
       {"row", rows.empty() ? Json(nullptr) : Json(rows.front().id)},
       {"question", rows.empty() ? Json(nullptr) : Json(rows.front().messages.back().content)}});
  for (const std::string& path : {options.json, options.plot}) {
    if (!path.empty()) write_file(path, "");  // fail before the work
  }
  const auto results = evaluate_all(assistant, methods, rows, options, left_out, trace);
  if (trace.is_on()) trace.write();

  Report report{.seed = options.seed, .left_out = left_out.count()};
  for (const auto& method : methods) report.scores.push_back({method.name, method.orders});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (results[i].empty()) continue;
    report.groups.push_back(rows[i].group);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      report.scores[m].rows.push_back(results[i][m]);
    }
  }
  if (report.groups.empty()) {
    throw td::Error(td::Errc::malformed_document, "", "no row can be used\n" + left_out.report());
  }
  ReadingCounts readings;
  for (const Row& row : rows) readings.add(row.tools);
  std::cout << tables(report) << left_out.report() << readings.text();
  if (!options.json.empty()) {
    const Json document{{"made_by", run_record()},
                        {"seed", report.seed},
                        {"left_out", report.left_out},
                        {"methods", to_json(report)}};
    write_file(options.json, document.text({.indent = 2}) + '\n');
  }
  if (!options.plot.empty()) write_file(options.plot, draw_svg(to_plot(report)));
}

void run_eval(const EvalOptions& options) {
  if (options.resume && options.answers.empty())
    throw td::Error(td::Errc::invalid_option, "--resume", "must come with --answers FILE");
  if (options.drafts.is_on() &&
      std::ranges::find(options.methods, "speculative") == options.methods.end()) {
    throw td::Error(td::Errc::invalid_option, "--speculation",
                    "must come with --method speculative, which drafts");
  }
  check_format(options.format);
  const auto assistant    = load_target(options.model, options.drafts);
  const Drafting drafting = load_sized_drafting(options.drafts, options.model, *assistant);
  Speculate speculate;
  if (options.drafts.is_on()) {
    speculate = [&](const auto& model, const auto& calls, auto prompt, const auto& decode) {
      return decode_with_drafts(*assistant, drafting, calls, prompt, decode, model);
    };
  }
  run_eval(options, *assistant,
           make_methods(options.methods, options.orders, options.only_orders, speculate));
}

}  // namespace

void add_eval(CommandLine& line) {
  auto options = std::make_shared<EvalOptions>();
  Command sub  = line.command(
      "eval", "Compare decoding methods on rows with known answers: accuracy, errors, cost");
  sub.option("--data", options->data,
             "JSONL (or .gz) rows: dialogues, BFCL or API-Bank; default: the embedded model's "
             "held-out dialogues");
  sub.option(
         "--method", options->methods,
         "greedy, sampling, beam, self-consistency, constrained, tool-decoding; tooldec, "
         "which knows the types of arguments only, tooldec-prompted, which asks for each name by "
         "a separate prompt, tooldec-schema, which knows all; "
         "fuzzy-matching and backtrace, greedy with names mended, in Python's syntax; "
         "speculative, constrained with the drafts of --speculation")
      .delimiter(',')
      .shows_default();
  sub.option("--oc", options->orders, "at most so many orders, for tool-decoding")
      .delimiter(',')
      .shows_default();
  sub.option(
         "--order", options->only_orders,
         "for tool-decoding too: one order alone, documented, reversed or shuffled; of tools with "
         "three or more required parameters, the vote of these is --oc 3")
      .delimiter(',');
  options->model.threads = 1;  // one per job
  options->model.shots   = usual_shots;
  add_model_options(sub, options->model);
  sub.option("--json", options->json, "write the numbers to this file");
  sub.option("--answers", options->answers,
             "write what each method wrote, and how it was judged, to this JSONL file");
  sub.flag("--resume", options->resume,
           "go on where --answers FILE ends: rows that it has by all methods are not asked again");
  sub.option("--plot", options->plot, "draw accuracy against time into this SVG file");
  sub.option("--jobs", options->jobs, "threads; times mean something with 1 only")
      .within(1, 1024)
      .shows_default();
  sub.option("--limit", options->limit, "first rows of each file only; 0: all").shows_default();
  sub.option("--row", options->row, "the row of this id only");
  sub.option("--choice", options->choice,
             "auto, none, required or a tool's name, for all rows; default: what each row says");
  sub.option("--format", options->format,
             "call format, for all rows: " + format_values() +
                 "; default: what each row says, or Python's");
  add_whitespace_option(sub, options->whitespace);
  add_draft_options(sub, options->drafts);
  add_trace_option(sub, options->trace, "how each token of each method's answer to one row came");
  sub.option("--max-tokens", options->max_tokens, "most tokens of an answer").shows_default();
  sub.flag("--keep-prefix", options->keep_prefix,
           "do not read again what a row's prompt begins with as the last row's did; times are "
           "then of what differs");
  sub.option("--seed", options->seed, "of sampling and of the intervals").shows_default();
  sub.runs([options] { run_eval(*options); });
}

}  // namespace program
