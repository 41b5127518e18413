// FR-Spec over llama.cpp: what fewer rows of the draft's head cost in acceptance and save in time. The
// draft is an EAGLE layer of the target or a smaller model, each with the same 8-bit rows of a head.
//
//   benchmark_pruned_drafts --model NAME --eagle FILE | --draft-model NAME --prompts FILE.jsonl
//                           --corpus DIR [--json OUT]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <CLI/CLI.hpp>
#include <fr_spec/corpus.hpp>
#include <fr_spec/prompts.hpp>
#include <fr_spec/timed.hpp>
#include <program/command_line.hpp>
#include <program/gguf_assistant.hpp>
#include <program/models.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/run_record.hpp>
#include <program/speculation.hpp>

namespace {

namespace td    = tooldecode;
using Json      = td::JsonValue;
using Clock     = std::chrono::steady_clock;
using Prefilled = program::PrefilledModel<td::ModelRef>;
using fr_spec::Corpus, fr_spec::Prompt, fr_spec::TimedDraft, fr_spec::TimedHead;

struct Options {
  program::ModelOptions model{.name = "qwen-coder-0.5b", .threads = 1};
  std::string eagle, draft_model, prompts, corpus, json;
  std::vector<std::size_t> rows{0, 65'536, 32'768, 16'384, 8'192};
  std::size_t limit = 0, max_tokens = 128;
  std::size_t depth = 6, width = 1;
  double min_probability = 0.1, minutes = 0;
};

struct Sums {
  std::size_t answers = 0, tokens = 0, passes = 0, rounds = 0, drafted = 0, same = 0;
  double seconds = 0, target = 0, drafting = 0, head = 0;

  void operator+=(const Sums& other) {
    answers += other.answers;
    tokens += other.tokens;
    passes += other.passes;
    rounds += other.rounds;
    drafted += other.drafted;
    same += other.same;
    seconds += other.seconds;
    target += other.target;
    drafting += other.drafting;
    head += other.head;
  }
};

struct Way {
  std::string name;
  bool drafts = true;
  bool is_own = false;                                // the draft model's own head
  std::optional<std::size_t> rows;                    // 0: all
  std::map<std::string, Sums> found = {};             // by domain
  Json each                         = Json::array();  // (tokens, passes, seconds) of each answer
};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        target_(load(options.model)),
        states_(target_->draft_target(false)),
        corpus_(options.corpus, target_->tokenizer),
        prefilled_(states_.model, !options.eagle.empty()),
        costs_(target_->measure_costs()) {
    if (options.eagle.empty() == options.draft_model.empty()) {
      throw td::Error(td::Errc::invalid_option, "--eagle",
                      "must be given, or --draft-model, and not both");
    }
    ways.push_back({.name = "plain", .drafts = false});
    if (options.eagle.empty()) {
      program::ModelOptions running = options.model;
      running.name                  = options.draft_model;
      smaller_                      = load(running);
      smaller_ends_.emplace(smaller_->draft_target(false));
      read_.emplace(smaller_->model);
      ways.push_back({.name = "llama.cpp's head", .is_own = true});
    } else {
      eagle_.emplace(td::EagleModel::load(*states_.ends, options.eagle));
    }
    for (const std::size_t k : options.rows) {
      ways.push_back({.name = k == 0 ? "K = V" : "K = " + std::to_string(k), .rows = k});
    }
  }
  Bench(const Bench&)            = delete;
  Bench& operator=(const Bench&) = delete;

  void measure(const Prompt& prompt) {
    prefilled_.read(prompt.tokens);
    if (read_) read_->read({prompt.tokens.begin(), prompt.tokens.end() - 1});
    const auto& tokenizer = target_->tokenizer;
    if (prompt.functions.is_null()) {
      const auto ends = tokenizer.vocabulary().end_tokens();
      return measure(prompt,
                     td::Unconstrained{tokenizer.vocabulary().size(), {ends.begin(), ends.end()}});
    }
    measure(prompt,
            td::ToolCallFSM(target_->masks, td::ToolSet::from_json(prompt.functions),
                            target_->format("auto").format, {.choice = td::ToolChoice::required}));
  }

  std::vector<Way> ways;

 private:
  static std::shared_ptr<const program::GgufAssistant> load(const program::ModelOptions& options) {
    auto loaded =
        std::dynamic_pointer_cast<const program::GgufAssistant>(program::load_assistant(options));
    if (!loaded)
      throw td::Error(td::Errc::invalid_option, options.name, "must be a model of llama.cpp");
    return loaded;
  }

  template <td::ConstraintPolicy C>
  void measure(const Prompt& prompt, const C& constraint) {
    static_cast<void>(head_of(prompt.domain));  // made before the time begins
    std::vector<td::Output> outputs(ways.size());
    std::vector<Sums> sums(ways.size());
    for (std::size_t i = 0; i < ways.size(); ++i) {  // they take turns at being first
      const std::size_t w = (i + turn_) % ways.size();
      outputs[w]          = run(ways[w], prompt, constraint, sums[w]);
    }
    ++turn_;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      sums[w].same = outputs[w].tokens == outputs[0].tokens;
      ways[w].found[prompt.domain] += sums[w];
      ways[w].each.push_back(
          Json::Array{sums[w].tokens, sums[w].passes, std::round(1e6 * sums[w].seconds) / 1e6});
    }
  }

  template <td::ConstraintPolicy C>
  td::Output run(const Way& way, const Prompt& prompt, const C& constraint, Sums& sums) {
    const td::DecodeOptions settings{.max_tokens = options_.max_tokens};
    td::Output output;
    double layer = 0, reading = 0;
    const auto draft = [&](const auto& drafter) {
      auto& learnt = learnt_[way.name + prompt.domain];
      if (!learnt) learnt = std::make_shared<td::draft::AcceptanceEstimate>();
      output =
          program::decode_with(prefilled_, constraint, td::SizedDrafter{drafter, costs_, learnt},
                               prompt.tokens, settings);
    };
    const td::ModelDrafterOptions chain{.depth           = options_.depth,
                                        .width           = options_.width,
                                        .budget          = 32,
                                        .min_probability = options_.min_probability};
    const auto start = Clock::now();
    if (!way.drafts) {
      output = td::Decoder{prefilled_, constraint}(prompt.tokens, settings);
    } else if (way.is_own) {
      draft(td::ModelDrafter{*read_, smaller_->tokenizer.vocabulary(),
                             target_->tokenizer.vocabulary(), chain});
    } else {
      const auto& whole = head_of(prompt.domain);
      const TimedHead head{*way.rows == 0 ? whole : whole.first(*way.rows), sums.head};
      if (eagle_) {
        const TimedDraft timed{*eagle_, layer, reading};
        draft(td::EagleDrafter{timed,
                               head,
                               {.depth           = options_.depth,
                                .width           = options_.width,
                                .budget          = 32,
                                .min_probability = options_.min_probability}});
      } else {
        draft(td::ModelDrafter{*read_, smaller_->tokenizer.vocabulary(),
                               target_->tokenizer.vocabulary(), head, chain});
      }
    }
    sums.seconds  = seconds(Clock::now() - start) - reading;
    sums.answers  = 1;
    sums.tokens   = output.tokens.size();
    sums.passes   = output.passes;
    sums.rounds   = output.drafts.rounds;
    sums.drafted  = output.drafts.nodes;
    sums.target   = seconds(output.times.prefill + output.times.model + output.times.sampling);
    sums.drafting = seconds(output.times.drafting) - reading;
    return output;
  }

  const td::FrequencyRankedHead& head_of(const std::string& domain) {
    const std::string part = Corpus::part_of(domain);
    auto& head             = heads_[part];
    if (!head) {
      const td::FrequencyRanks ranks = corpus_.ranks_without(part);
      const auto& ends               = smaller_ends_ ? *smaller_ends_->ends : *states_.ends;
      head.emplace(ends.lm_head(), ranks.first(ranks.size()),
                   td::FrequencyRankedHeadOptions{.weights = td::WeightType::scaled_byte});
    }
    return *head;
  }

  const Options& options_;
  std::shared_ptr<const program::GgufAssistant> target_, smaller_;
  program::DraftTarget states_;
  std::optional<program::DraftTarget> smaller_ends_;
  Corpus corpus_;
  Prefilled prefilled_;
  std::optional<program::PrefilledModel<td::LlamaCppModel>> read_;
  std::optional<td::EagleModel> eagle_;
  td::TreeCosts costs_;
  std::map<std::string, std::optional<td::FrequencyRankedHead>> heads_;
  std::map<std::string, std::shared_ptr<td::draft::AcceptanceEstimate>> learnt_;
  std::size_t turn_ = 0;
};

Json json_of(const Sums& sums, const Sums& plain, const Sums& whole) {
  const auto per   = [](double a, double b) { return b == 0 ? 0 : a / b; };
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  // Answers may part where tokens are almost equally likely, so times are compared per token.
  const auto speed = [&](const Sums& one) { return per(count(one.tokens), one.seconds); };
  return {{"answers", sums.answers},
          {"same_as_plain", sums.same},
          {"tokens", sums.tokens},
          {"passes", sums.passes},
          {"rounds", sums.rounds},
          {"drafted", sums.drafted},
          {"seconds", sums.seconds},
          {"target_seconds", sums.target},
          {"drafting_seconds", sums.drafting},
          {"head_seconds", sums.head},
          {"tokens_per_pass", per(count(sums.tokens), count(sums.passes))},
          {"speed_to_plain", per(speed(sums), speed(plain))},
          {"speed_to_all_rows", per(speed(sums), speed(whole))}};
}

Json report(const Bench& bench) {
  const auto whole =
      std::ranges::find_if(bench.ways, [](const Way& way) { return way.rows == 0U; });
  Json list = Json::array();
  for (const Way& way : bench.ways) {
    Sums all, all_plain, all_whole;
    Json domains = Json::object();
    for (const auto& [domain, sums] : way.found) {
      const Sums& plain = bench.ways[0].found.at(domain);
      const Sums& rows  = whole == bench.ways.end() ? Sums{} : whole->found.at(domain);
      domains[domain]   = json_of(sums, plain, rows);
      all += sums;
      all_plain += plain;
      all_whole += rows;
    }
    Json row{{"way", way.name}};
    if (way.rows) row["rows"] = *way.rows;
    row["all"]     = json_of(all, all_plain, all_whole);
    row["domains"] = std::move(domains);
    row["each"]    = way.each;
    list.push_back(std::move(row));
  }
  return list;
}

void print(const Json& list) {
  const auto number = [](const Json& value) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(2) << value.get<double>();
    return out.str();
  };
  std::cout << "| draft | answers | same as plain | tokens | tokens of a pass | s | of it drafts | "
               "their head | speed / plain | / K = V |\n"
               "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Json& row : list) {
    const Json& all = row.at("all");
    std::cout << "| " << row.at("way").string() << " | " << all.at("answers") << " | "
              << all.at("same_as_plain") << " | " << all.at("tokens") << " | "
              << number(all.at("tokens_per_pass")) << " | " << number(all.at("seconds")) << " | "
              << number(all.at("drafting_seconds")) << " | " << number(all.at("head_seconds"))
              << " | " << number(all.at("speed_to_plain")) << " | "
              << number(all.at("speed_to_all_rows")) << " |\n";
  }
}

void run(const Options& options) {
  const auto prompts = fr_spec::read_prompts(options.prompts, options.limit);
  Bench bench(options);
  program::Progress progress(prompts.size());
  const auto begin = Clock::now();
  for (const Prompt& prompt : prompts) {
    if (options.minutes > 0 && seconds(Clock::now() - begin) > 60 * options.minutes) break;
    bench.measure(prompt);
    progress.advance();
  }
  progress.finish();
  const Json list = report(bench);
  print(list);
  if (options.json.empty()) return;
  const Json whole{{"question", "what fewer rows of a draft's head cost and save over llama.cpp"},
                   {"made_by", program::run_record()},
                   {"draft", options.eagle.empty() ? options.draft_model : "EAGLE"},
                   {"ways", list}};
  std::ofstream file(options.json);
  file << whole.text({.indent = 1}) << '\n';
  if (!file.flush()) throw std::runtime_error(options.json + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What a pruned draft head costs and saves over llama.cpp"};
  Options options;
  program::Command command(app);
  program::add_model_options(command, options.model);
  app.add_option("--eagle", options.eagle, "the model's EAGLE layer, safetensors");
  app.add_option("--draft-model", options.draft_model, "a smaller model of the same vocabulary");
  app.add_option("--prompts", options.prompts, "JSONL: domain, tokens, functions")->required();
  app.add_option("--corpus", options.corpus, "directory of <domain>.txt.gz for token ranks")
      ->required();
  app.add_option("--rows", options.rows, "rows of the draft's head, 0 for all")->delimiter(',');
  app.add_option("--limit", options.limit, "prompts of each domain; 0 is all");
  app.add_option("--max-tokens", options.max_tokens, "most tokens of an answer")
      ->capture_default_str();
  app.add_option("--depth", options.depth, "levels of a tree")->capture_default_str();
  app.add_option("--width", options.width, "nodes of a level with children")->capture_default_str();
  app.add_option("--min-probability", options.min_probability, "of a path that is verified")
      ->capture_default_str();
  app.add_option("--minutes", options.minutes,
                 "no prompt starts after so many minutes; 0: no limit");
  app.add_option("--json", options.json, "write the numbers to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
