// The cost of a constraint in llama.cpp: its grammar, tooldecode's, and none, in one run with the
// same model, prompts and threads.
#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/research/classify.hpp>
#include <tooldecode/text/json_value.hpp>

#include <CLI/CLI.hpp>
#include <llama_cpp/chain.hpp>
#include <llama_cpp/json_grammar.hpp>
#include <ngram-map.h>
#include <program/command_line.hpp>
#include <program/drafts.hpp>
#include <program/gguf_assistant.hpp>
#include <program/models.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/rows.hpp>
#include <program/run_record.hpp>
#include <program/seconds.hpp>
#include <program/speculation.hpp>

namespace {

namespace td    = tooldecode;
using Json      = tooldecode::JsonValue;
using Clock     = std::chrono::steady_clock;
using Assistant = program::GgufAssistant;
using Prefilled = program::PrefilledModel<td::LlamaCppModel>;

struct Task {
  const Assistant& assistant;
  const program::Row& row;
  const td::ChoiceOptions& choice;
  Chain& chain;            // has read the prompt except its last token
  const Prefilled& model;  // has read the same
  const std::vector<td::TokenId>& prompt;
  std::size_t max_tokens;
};

struct Contender {
  std::string name;
  // Builds the constraint and returns a function that writes under it.
  std::function<std::function<Written()>(const Task&)> prepare;

  std::size_t calls = 0, tokens = 0, passes = 0, cut = 0, conforming = 0, right = 0, refused = 0;
  double build = 0, choosing = 0, seconds = 0;
  std::vector<std::string> texts{};
  // Reads the prompt before the time begins, if it is not read through Task::model.
  std::function<void(const std::vector<td::TokenId>&)> read{};
  bool needs_tools = false;

  [[nodiscard]] double per_call(double total) const {
    return 1000 * total / static_cast<double>(std::max<std::size_t>(1, calls));
  }
};

std::function<Written()> through_chain(const Task& task, Sampler sampler, bool token_first) {
  auto shared = std::shared_ptr<llama_sampler>(std::move(sampler));
  return [&task, shared, token_first] {
    return task.chain.write(shared.get(), token_first, task.max_tokens);
  };
}

// llama.cpp's own prompt lookup, with the least n-gram and the longest draft.
Draft ngram_draft(std::uint16_t least, std::uint16_t longest) {
  return [least, longest](const std::vector<llama_token>& tokens, llama_token last) {
    return common_ngram_simple_draft({least, longest}, tokens, last);
  };
}

Sampler own_grammar(const Task& task) {
  Sampler sampler(
      llama_sampler_init_grammar(task.chain.vocab(), json_grammar(task.row.tools).c_str(), "root"));
  if (!sampler) throw std::runtime_error("llama.cpp refuses its grammar");
  return sampler;
}

td::ToolCallFSM constrain(const Task& task) {
  return tooldecode::ToolCallFSM(task.assistant.masks, task.row.tools, task.row.format->format,
                                 task.choice);
}

Written written_by(const td::Output& output) {
  const auto& times = output.times;
  return {
      .tokens = output.tokens,
      .is_cut = output.finish != td::Finish::end,
      .choosing =
          std::chrono::duration<double>(times.constraint + times.sampling + times.drafting).count(),
      .passes = output.passes};
}

std::function<Written()> through_decoder(const Task& task, const std::string& drafter,
                                         bool always_ends) {
  const auto calls = std::make_shared<const td::ToolCallFSM>(constrain(task));
  return [&task, calls, drafter, always_ends] {
    const td::DecodeOptions options{.max_tokens  = task.max_tokens + (always_ends ? 1 : 0),
                                    .always_ends = always_ends};
    td::Output output;
    const auto draft = [&](const auto& drafts) {
      output = program::decode_with(task.model, *calls, drafts, task.prompt, options);
    };
    if (!program::TextDrafters(task.assistant).with(drafter, draft)) {
      output = td::Decoder{task.model, *calls}(task.prompt, options);
    }
    return written_by(output);
  };
}

std::function<Written()> through_drafts(const Task& task,
                                        std::shared_ptr<const program::Drafting> drafting) {
  const auto calls = std::make_shared<const td::ToolCallFSM>(constrain(task));
  return [&task, calls, drafting] {
    return written_by(program::decode_with_drafts(task.assistant, *drafting, *calls, task.prompt,
                                                  {.max_tokens = task.max_tokens}, task.model));
  };
}

// Drafts with layers, in a separate context, which has read the prompt when the time begins, as that
// of the others. The layer has not.
Contender layers_contender(const std::string& name, const std::string& drafter,
                           const program::ModelOptions& running) {
  using Model = program::PrefilledModel<td::ModelRef>;
  struct Layers {
    std::shared_ptr<const program::Assistant> assistant;
    program::Drafting drafting;
    Model model{drafting.layers->target.model, true};
  };
  program::DraftOptions drafts;
  drafts.settings.drafter = drafter;
  const auto assistant    = program::load_assistant(running);
  const std::shared_ptr<Layers> layers(
      new Layers{assistant, program::load_sized_drafting(drafts, running, *assistant)});
  return {.name    = "tooldecode, " + name + " drafted, sized",
          .prepare = [layers](const Task& task) -> std::function<Written()> {
            const auto calls = std::make_shared<const td::ToolCallFSM>(constrain(task));
            return [&task, layers, calls] {
              td::Output output;
              const program::Drafting& of = layers->drafting;
              of.layers->layers->with(
                  of.options.settings, calls->structural_tokens(), [&](const auto& made) {
                    output = program::decode_with(
                        layers->model, *calls,
                        td::SizedDrafter{made, of.sizes->costs, of.sizes->learnt}, task.prompt,
                        {.max_tokens = task.max_tokens});
                  });
              return written_by(output);
            };
          },
          .read = [layers](const std::vector<td::TokenId>& prompt) { layers->model.read(prompt); }};
}

// Of those that need no draft layers; all others need tools.
constexpr std::array<std::string_view, 4> on_text{
    "no grammar", "no grammar, its n-gram drafts", "tooldecode, forced tokens",
    "tooldecode, forced text and suffixes drafted, sized"};

std::vector<Contender> make_contenders(const Assistant& assistant,
                                       const program::ModelOptions& running) {
  program::DraftOptions drafts;
  drafts.settings.drafter = "forced+suffix";
  const auto drafting     = std::make_shared<const program::Drafting>(
      program::load_sized_drafting(drafts, {}, assistant));
  std::vector<Contender> contenders{
      {"no grammar",
       [](const Task& task) -> std::function<Written()> {
         return [&task] { return task.chain.write(nullptr, true, task.max_tokens); };
       }},
      {"llama.cpp, its grammar",
       [](const Task& task) { return through_chain(task, own_grammar(task), false); }},
      {"llama.cpp, its grammar, best token first",
       [](const Task& task) { return through_chain(task, own_grammar(task), true); }},
      {"llama.cpp, the same grammar by tooldecode",
       [](const Task& task) {
         td::Constraint grammar{task.assistant.masks,
                                td::Grammar::ebnf(json_grammar(task.row.tools))};
         return through_chain(task, Sampler(td::llama_cpp::make_sampler(std::move(grammar))),
                              false);
       }},
      {"llama.cpp, sampler of tooldecode",
       [](const Task& task) {
         return through_chain(task, Sampler(td::llama_cpp::make_sampler(constrain(task))), false);
       }},
      {"no grammar, its n-gram drafts",
       [](const Task& task) -> std::function<Written()> {
         return [&task] {
           return task.chain.write(nullptr, true, task.max_tokens, ngram_draft(3, 6));
         };
       }},
      {"its grammar, best token first, its n-gram drafts",
       [](const Task& task) -> std::function<Written()> {
         auto shared = std::shared_ptr<llama_sampler>(own_grammar(task));
         return [&task, shared] {
           return task.chain.write(shared.get(), true, task.max_tokens, ngram_draft(3, 6));
         };
       }},
      {"tooldecode, forced tokens",
       [](const Task& task) { return through_decoder(task, "", false); }},
      {"tooldecode, forced text drafted",
       [](const Task& task) { return through_decoder(task, "forced", false); }},
      {"tooldecode, forced text and lookup drafted",
       [](const Task& task) { return through_decoder(task, "forced+lookup", false); }},
      {"the same, answers always end",
       [](const Task& task) { return through_decoder(task, "forced+lookup", true); }},
      {"tooldecode, forced text and suffixes drafted, sized",
       [drafting](const Task& task) { return through_drafts(task, drafting); }},
  };
  for (Contender& one : contenders) {
    one.needs_tools = std::ranges::find(on_text, one.name) == on_text.end();
  }
  if (running.name != "smollm2") return contenders;  // the only one with layers here
  using Named = std::pair<const char*, const char*>;
  for (const auto& [name, drafter] :
       {Named{"EAGLE", "eagle"}, Named{"EAGLE-3", "eagle3"}, Named{"Medusa", "medusa"},
        Named{"EAGLE, lookup and forced text", "all"}}) {
    contenders.push_back(layers_contender(name, drafter, running));
  }
  return contenders;
}

void run(Contender& contender, const Task& task, const td::ToolCallFSM& judge) {
  auto start = Clock::now();
  Written written;
  double build = 0;
  try {
    if (contender.read) {
      contender.read({task.prompt.begin(), task.prompt.end() - 1});
      start = Clock::now();
    }
    const auto write = contender.prepare(task);
    build            = program::seconds_since(start);
    written          = write();
  } catch (const std::exception& error) {
    ++contender.refused;
    contender.texts.emplace_back();
    std::cerr << contender.name << ", " << task.row.id << ": " << error.what() << '\n';
    return;
  }
  contender.seconds += program::seconds_since(start);
  contender.build += build;
  contender.choosing += written.choosing;
  ++contender.calls;
  contender.tokens += written.tokens.size();
  contender.passes += written.passes;
  contender.cut += written.is_cut;
  const std::string text = task.assistant.tokenizer.vocabulary().answer_text(written.tokens);
  contender.conforming += !judge.find_refusal(text);
  contender.right +=
      td::classify(task.row.expected, text, *task.row.format, task.row.tools).error ==
      td::ErrorClass::correct;
  contender.texts.push_back(text);
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

struct Options {
  program::ModelOptions model{.name = "smollm2", .threads = 1};
  std::vector<std::string> data;
  std::string json;
  std::size_t limit      = 0;
  std::size_t max_tokens = 96;
};

// Without the time in which a constraint is built.
double ms_per_token(const Contender& c) {
  return 1000 * (c.seconds - c.build) / static_cast<double>(std::max<std::size_t>(1, c.tokens));
}

Json report_json(const std::vector<Contender>& contenders, double reading) {
  const Contender& plain = contenders[0];
  const double choice    = plain.choosing / static_cast<double>(plain.passes);
  const auto seconds_of  = [&](std::string_view name) {
    const auto found = std::ranges::find(contenders, name, &Contender::name);
    return found == contenders.end() ? plain.seconds : found->seconds;  // texts have no grammar
  };
  Json list = Json::array();
  for (const Contender& c : contenders) {
    // The cost of choosing beyond that of plain decoding, for the same number of tokens.
    std::size_t same = 0;
    for (std::size_t i = 0; i < c.texts.size(); ++i) same += c.texts[i] == plain.texts[i];
    const double constraint = c.build + c.choosing - choice * static_cast<double>(c.passes);
    list.push_back(
        {{"contender", c.name},
         {"calls", c.calls},
         {"refused", c.refused},
         {"cut", c.cut},
         {"conforming", c.conforming},
         {"right", c.right},
         {"same_as_plain", same},
         {"tokens_per_call", static_cast<double>(c.tokens) / static_cast<double>(c.calls)},
         {"passes_per_call", static_cast<double>(c.passes) / static_cast<double>(c.calls)},
         {"build_ms", c.per_call(c.build)},
         {"constraint_us_per_pass", 1e6 * (constraint - c.build) / static_cast<double>(c.passes)},
         {"constraint_share", constraint / c.seconds},
         {"constraint_share_with_prompt", constraint / (c.seconds + reading)},
         {"ms_per_call", c.per_call(c.seconds)},
         {"ms_per_token", ms_per_token(c)},
         {"tokens_per_second_to_plain", ms_per_token(plain) / ms_per_token(c)},
         {"ms_per_call_with_prompt", c.per_call(c.seconds + reading)},
         {"time_to_grammar", c.seconds / seconds_of("llama.cpp, its grammar")},
         {"time_to_token_first",
          c.seconds / seconds_of("llama.cpp, its grammar, best token first")}});
  }
  return list;
}

void print(const Json& list) {
  std::cout
      << "| contender | calls | cut | conform | right | tokens | passes | build ms | constraint us/pass | "
         "its share of a call | with the prompt | ms/call | ms/token | speed / no grammar | time / grammar | time / best token first |\n"
         "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
         "---: | ---: | ---: |\n";
  const auto number = [](const Json& value, int digits) {
    return fixed(value.get<double>(), digits);
  };
  const auto percent = [](const Json& share) { return fixed(100 * share.get<double>(), 1) + " %"; };
  for (const Json& c : list) {
    std::cout << "| " << c["contender"].get<std::string>() << " | " << c["calls"] << " | "
              << c["cut"] << " | " << c["conforming"] << " | " << c["right"] << " | "
              << number(c["tokens_per_call"], 1) << " | " << number(c["passes_per_call"], 1)
              << " | " << number(c["build_ms"], 2) << " | "
              << number(c["constraint_us_per_pass"], 1) << " | " << percent(c["constraint_share"])
              << " | " << percent(c["constraint_share_with_prompt"]) << " | "
              << number(c["ms_per_call"], 1) << " | " << number(c["ms_per_token"], 1) << " | "
              << number(c["tokens_per_second_to_plain"], 2) << " | "
              << number(c["time_to_grammar"], 3) << " | " << number(c["time_to_token_first"], 3)
              << " |\n";
  }
}

void run_all(const Options& options, const Assistant& assistant) {
  std::vector<program::Row> rows;
  program::LeftOut left_out;
  for (const std::string& path : options.data)
    program::read_rows(path, options.limit, rows, left_out);
  const bool is_text = std::ranges::all_of(rows, [](const auto& row) { return row.tools.empty(); });
  std::erase_if(rows,
                [&](const program::Row& row) { return row.expected.size() != (is_text ? 0 : 1); });

  const td::LlamaCppOptions settings{.cells   = static_cast<std::uint32_t>(options.model.context),
                                     .threads = options.model.threads};
  const std::unique_ptr<llama_model, decltype(&llama_model_free)> model(
      llama_model_load_from_file(assistant.place.c_str(), llama_model_default_params()),
      llama_model_free);
  if (!model) throw std::runtime_error("llama.cpp does not load " + assistant.place.string());
  Chain chain(model.get(), settings);

  auto contenders = make_contenders(assistant, options.model);
  if (is_text) std::erase_if(contenders, [](const Contender& one) { return one.needs_tools; });
  double reading = 0;
  program::Progress progress(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    program::Row& row        = rows[i];
    row.format               = &program::format_named("json");
    td::ChoiceOptions choice = row.choice;
    choice.choice            = is_text ? td::ToolChoice::none : td::ToolChoice::required;
    choice.max_calls         = 1;  // llama.cpp's grammar allows one
    choice.whitespace        = td::SchemaOptions{}.whitespace;
    std::optional<td::ToolCallFSM> judge;  // with any white space, as in llama.cpp's grammars
    try {
      judge.emplace(
          tooldecode::ToolCallFSM(assistant.masks, row.tools, row.format->format, choice));
    } catch (const td::Error& error) {
      left_out.add(error, row.id);
      continue;
    }
    choice.whitespace = 0;
    const auto prompt = assistant.prompt(row.tools, *row.format, row.messages);
    const auto start  = Clock::now();
    chain.read(prompt);
    reading += program::seconds_since(start);
    const Prefilled prefilled{assistant.model, {prompt.begin(), prompt.end() - 1}};
    const Task task{assistant, row, choice, chain, prefilled, prompt, options.max_tokens};
    for (std::size_t turn = 0; turn < contenders.size(); ++turn)
      run(contenders[(i + turn) % contenders.size()], task, *judge);
    progress.advance();
  }
  progress.finish();
  if (contenders[0].calls == 0)
    throw std::runtime_error("no row can be used\n" + left_out.report());

  const Json list = report_json(contenders, reading);
  print(list);
  std::cout << "\nThe prompt takes " << fixed(contenders[0].per_call(reading), 0) << " ms.";
  std::size_t same = 0;
  if (!is_text) {
    for (std::size_t i = 0; i < contenders[1].texts.size(); ++i)
      same += !contenders[1].texts[i].empty() && contenders[1].texts[i] == contenders[3].texts[i];
    std::cout << " Of the same grammar, " << same << " texts of " << contenders[1].calls
              << " are the same by llama.cpp and by tooldecode.";
  }
  std::cout << '\n' << left_out.report();
  if (!options.json.empty()) {
    const Json report{{"made_by", program::run_record()},
                      {"prompt_ms", contenders[0].per_call(reading)},
                      {"same_texts", same},
                      {"left_out", left_out.count()},
                      {"contenders", list}};
    std::ofstream(options.json) << report.text({.indent = 2}) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The cost of a constraint in llama.cpp: its grammar, tooldecode's, and none"};
  Options options;
  program::Command command(app);
  program::add_model_options(command, options.model);
  app.add_option("--data", options.data,
                 "JSONL (or .gz) rows as `tooldecode eval` reads; those of one call count, or all "
                 "if none has tools: texts")
      ->required();
  app.add_option("--limit", options.limit, "first rows of each file only; 0: all");
  app.add_option("--max-tokens", options.max_tokens, "most tokens of an answer")
      ->capture_default_str();
  app.add_option("--json", options.json, "write the numbers to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto loaded     = program::load_assistant(options.model);
    const auto* assistant = dynamic_cast<const Assistant*>(loaded.get());
    if (assistant == nullptr) {
      throw td::Error(td::Errc::invalid_option, "--model", "must be one that llama.cpp runs");
    }
    run_all(options, *assistant);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
