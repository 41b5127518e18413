// tooldecode eval: the dialogues held out from training, answered plainly and under the constraint.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/tools/value_reader.hpp>

#include <nlohmann/json.hpp>
#include <program/answer.hpp>
#include <program/commands.hpp>
#include <program/files.hpp>

namespace program {
namespace {

namespace td = tooldecode;
using Json   = nlohmann::ordered_json;

struct EvalOptions {
  std::string model      = example_data("tiny").string();
  std::string data       = example_data("tiny/heldout.jsonl").string();
  std::size_t limit      = 0;
  std::size_t jobs       = 2;
  std::size_t max_tokens = 160;
};

// One row of the table, summed over dialogues.
struct Score {
  std::size_t rows = 0, correct = 0, format = 0, tool = 0, key = 0, conforming = 0, tokens = 0,
              passes = 0;
  double seconds     = 0;

  void operator+=(const Score& other) {
    rows += other.rows, correct += other.correct, format += other.format, tool += other.tool;
    key += other.key, conforming += other.conforming, tokens += other.tokens;
    passes += other.passes, seconds += other.seconds;
  }
};

Score score(const Answer& answer, const std::vector<td::ToolCall>& expected,
            const td::ToolSet& tools) {
  Score result{.rows       = 1,
               .correct    = answer.parses && answer.calls == expected,
               .format     = !answer.parses,
               .conforming = answer.valid,
               .tokens     = answer.output.tokens.size(),
               .passes     = answer.output.passes,
               .seconds    = std::chrono::duration<double>(answer.output.times.total()).count()};
  for (const td::ToolCall& call : answer.calls) {
    const auto tool = tools.find(call.name);
    if (!tool) {
      result.tool = 1;
      continue;
    }
    const Json& parameters = tools[*tool].parameters;
    const Json properties  = parameters.value("properties", Json::object());
    for (const auto& [key, value] : call.arguments.items()) {
      if (!properties.contains(key)) result.key = 1;
    }
  }
  return result;
}

enum Method : std::size_t { plain, constrained };
enum Group : std::size_t { seen, held_out, no_call };
using Table = std::array<std::array<Score, 3>, 2>;

void evaluate(const Assistant& assistant, const Json& row, std::size_t max_tokens, Table& table) {
  const Format& format = format_named(row.at("format").get<std::string>());
  const auto tools     = td::ToolSet::from_json(row.at("tools"));
  const auto calls =
      format.constrain(assistant.masks, tools, parse_choice(row.at("choice").get<std::string>()));
  std::vector<Message> messages;
  for (const Json& message : row.at("messages")) {
    messages.push_back({message.at("role"), message.at("content")});
  }
  const auto prompt = make_prompt(assistant.tokenizer, tools, format.name, messages);
  std::vector<td::ToolCall> expected;
  for (const Json& call : row.at("calls")) {
    expected.push_back({call.at("name").get<std::string>(), call.at("arguments")});
  }
  const Group group = expected.empty() ? no_call : row.at("seen") == true ? seen : held_out;
  const td::DecodeOptions options{.max_tokens = max_tokens};
  table[plain][group] += score(answer_plainly(assistant, calls, prompt, options), expected, tools);
  table[constrained][group] +=
      score(answer_constrained(assistant, calls, prompt, options), expected, tools);
}

void print_table(const Table& table) {
  const std::array<const char*, 2> methods{"plain greedy", "constrained"};
  const std::array<const char*, 3> groups{"seen tools", "held-out tools", "no call needed"};
  std::cout << "| method | dialogues | rows | correct | format errors | unknown tools | unknown "
               "keys | conforming | tokens | passes | ms per answer |\n"
               "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  std::cout << std::fixed << std::setprecision(1);
  const auto line = [&](const char* method, const char* group, const Score& s) {
    if (s.rows == 0) return;
    const auto rows = static_cast<double>(s.rows);
    std::cout << "| " << method << " | " << group << " | " << s.rows << " | " << s.correct << " ("
              << 100.0 * static_cast<double>(s.correct) / rows << " %) | " << s.format << " | "
              << s.tool << " | " << s.key << " | " << s.conforming << " | " << s.tokens << " | "
              << s.passes << " | " << 1000.0 * s.seconds / rows << " |\n";
  };
  for (const Method method : {plain, constrained}) {
    Score all;
    for (const Group group : {seen, held_out, no_call}) {
      line(methods[method], groups[group], table[method][group]);
      all += table[method][group];
    }
    line(methods[method], "all", all);
  }
}

void run_eval(const EvalOptions& options) {
  if (options.jobs == 0) throw td::Error(td::Errc::invalid_option, "--jobs", "must be 1 or more");
  const Assistant assistant(options.model);
  std::vector<Json> rows;
  std::istringstream lines(read_file(options.data));
  for (std::string line; std::getline(lines, line);) {
    if (options.limit != 0 && rows.size() == options.limit) break;
    if (!line.empty()) rows.push_back(td::parse_json(line));
  }
  std::cerr << rows.size() << " dialogues, " << options.jobs << " threads\n";
  Table table;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  const auto start = std::chrono::steady_clock::now();
  auto shown       = start;
  const auto work  = [&] {
    Table mine;
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      try {
        evaluate(assistant, rows[i], options.max_tokens, mine);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        failure = std::make_exception_ptr(
            td::Error(td::Errc::malformed_document, "row " + std::to_string(i), error.what()));
        return;
      }
      const std::lock_guard lock(mutex);
      if (std::chrono::steady_clock::now() - shown > std::chrono::seconds(2)) {
        shown = std::chrono::steady_clock::now();
        std::cerr << "  " << i + 1 << " of " << rows.size() << " ...\n";
      }
    }
    const std::lock_guard lock(mutex);
    for (std::size_t m = 0; m < table.size(); ++m) {
      for (std::size_t g = 0; g < table[m].size(); ++g) table[m][g] += mine[m][g];
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t j = 0; j < options.jobs; ++j) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  print_table(table);
  std::cerr << "done in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
            << " s\n";
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options  = std::make_shared<EvalOptions>();
  CLI::App* sub = app.add_subcommand(
      "eval", "Answer the held-out dialogues plainly and constrained; print one table");
  sub->add_option("--model", options->model, "model directory")->capture_default_str();
  sub->add_option("--data", options->data, "JSONL of dialogues")->capture_default_str();
  sub->add_option("--limit", options->limit, "first dialogues only; 0: all")->capture_default_str();
  sub->add_option("--jobs", options->jobs, "threads")->capture_default_str();
  sub->add_option("--max-tokens", options->max_tokens, "most tokens of an answer")
      ->capture_default_str();
  sub->callback([options] { run_eval(*options); });
}

}  // namespace program
