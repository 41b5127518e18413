// FR-Spec's questions of a real model: what a pruned draft head costs in acceptance, what it saves in
// time, and where a round's time goes, prompt by prompt against plain decoding.
//
//   benchmark_fr_spec --model FILE.gguf --eagle FILE --prompts FILE.jsonl --corpus DIR [--json OUT]
//
// A prompt is a line {"domain", "tokens", "functions"}: with functions, their calls constrain the
// answer. The target is the library's own LlamaModel in F32, whose answers do not depend on how many
// tokens a pass has, so that a speculative answer must be the plain one, token for token.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/coverage_estimate.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/forced_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/sized_head_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include "timed.hpp"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <program/files.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/run_record.hpp>

namespace {

namespace td = tooldecode;
using Json   = nlohmann::ordered_json;
using Half   = Eigen::bfloat16;
using Byte8  = td::model::ScaledByte;

struct Options {
  std::string model, eagle, prompts, corpus, json, weights = "int8";
  bool fixed        = false;
  std::size_t depth = 6, width = 4, budget = 16, limit = 0, max_tokens = 128;
  double min_probability = 0.05, temperature = 0;
  std::vector<std::size_t> rows{0, 32'768, 16'384, 8'192, 4'096};
};

struct Prompt {
  std::string domain;
  std::vector<td::TokenId> tokens;
  Json functions;  // null: free text
};

// One way to decode.
struct Way {
  std::string name;
  bool eagle        = false;
  std::size_t k     = 0;  // rows of the draft's head
  bool with_context = false, with_text = false, chooses_rows = false;
};

// What a way took for one prompt.
struct Run {
  std::size_t tokens = 0, passes = 0, rounds = 0, drafted = 0;
  double seconds = 0, target = 0, drafting = 0, layer = 0, head = 0;
  bool differs = false;
};

// Sums over prompts, which are drawn with repetition for intervals.
struct Sums {
  double tokens = 0, passes = 0, seconds = 0, prompts = 0;
  void add(const Run& run) {
    tokens += static_cast<double>(run.tokens);
    passes += static_cast<double>(run.passes);
    seconds += run.seconds;
    ++prompts;
  }
  // Tokens of a pass, the first of which is the prompt's and gives one in any case.
  [[nodiscard]] double acceptance() const { return (tokens - prompts) / (passes - prompts); }
  [[nodiscard]] double rate() const { return tokens / seconds; }
};

std::vector<Prompt> read_prompts(const Options& options) {
  std::vector<Prompt> prompts;
  std::map<std::string, std::size_t> counts;
  std::istringstream lines(program::read_file(options.prompts));
  for (std::string line; std::getline(lines, line);) {
    const Json row           = Json::parse(line);
    const std::string domain = row.at("domain");
    if (options.limit != 0 && ++counts[domain] > options.limit) continue;
    prompts.push_back({domain, row.at("tokens"), row.value("functions", Json())});
  }
  return prompts;
}

// How often each token occurs in each part of the corpus.
std::map<std::string, td::TokenCounts> count_corpus(const td::Tokenizer& tokenizer,
                                                    const std::filesystem::path& folder) {
  std::map<std::string, td::TokenCounts> counts;
  for (const char* domain : {"code", "dialogue", "math", "prose", "tools"}) {
    std::istringstream text(program::read_file(folder / (std::string(domain) + ".txt.gz")));
    counts.emplace(domain, td::count_tokens(tokenizer, text));
  }
  return counts;
}

// All that a run needs, and one head for each domain that others have ranked.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        target_(td::LlamaModel::load(options.model)),
        tokenizer_(td::load_tokenizer(options.model)),
        masks_(tokenizer_.vocabulary()),
        lookup_(masks_),
        forced_([this](std::string_view text) { return tokenizer_.encode(text); }),
        eagle_(td::EagleModel::load(target_, options.eagle)),
        costs_(td::TreeCosts::measure(target_, tokenizer_.encode(sample_text))),
        corpus_(count_corpus(tokenizer_, options.corpus)) {}

  [[nodiscard]] const td::TreeCosts& costs() const { return costs_; }

  // Runs all ways on one prompt; the first is plain decoding.
  std::vector<Run> run(const Prompt& prompt, const std::vector<Way>& ways) {
    const program::PrefilledModel model{target_, prompt.tokens};
    if (prompt.functions.is_null()) {
      const auto ends = tokenizer_.vocabulary().end_tokens();
      return run_all(prompt, ways, model,
                     td::Unconstrained{target_.vocabulary_size(), {ends.begin(), ends.end()}});
    }
    const td::ToolSet tools = td::ToolSet::from_json(prompt.functions);
    return run_all(
        prompt, ways, model,
        td::ToolCallFSM(masks_, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}));
  }

 private:
  // Behind which passes are timed, as long as a prompt.
  static constexpr std::string_view sample_text =
      "A pass of one token reads every weight of a model once and does next to nothing with it, so that "
      "a few more tokens in the same pass come for little more than their arithmetic.";

  template <class M, class C>
  std::vector<Run> run_all(const Prompt& prompt, const std::vector<Way>& ways, const M& model,
                           const C& constraint) {
    const td::DecodeOptions settings{.max_tokens  = options_.max_tokens,
                                     .temperature = static_cast<float>(options_.temperature)};
    std::vector<Run> runs;
    std::vector<td::TokenId> plain;
    for (const Way& way : ways) {
      Run run;
      const auto start        = std::chrono::steady_clock::now();
      const td::Output output = decode(way, model, constraint, prompt, settings, run);
      run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      run.tokens  = output.tokens.size() + (output.finish == td::Finish::end ? 1 : 0);
      run.passes  = output.passes;
      run.rounds  = output.drafts.rounds;
      run.drafted = output.drafts.nodes;
      // With its head, whose rows are multiplied when a token is chosen.
      const td::PhaseTimes& times = output.times;
      run.target =
          std::chrono::duration<double>(times.prefill + times.model + times.sampling).count();
      run.drafting = std::chrono::duration<double>(times.drafting).count();
      if (runs.empty()) plain = output.tokens;
      run.differs = output.tokens != plain;
      runs.push_back(run);
    }
    return runs;
  }

  template <class M, class C>
  td::Output decode(const Way& way, const M& model, const C& constraint, const Prompt& prompt,
                    const td::DecodeOptions& settings, Run& run) {
    const auto with = [&](const auto& drafter) {
      return td::Decoder{model, constraint,
                         td::TreeSpeculation{drafter, td::TreeVerifier{td::Walk{}}}}(prompt.tokens,
                                                                                     settings);
    };
    if (!way.eagle && !way.with_text)
      return td::Decoder{model, constraint}(prompt.tokens, settings);
    // As large as pays, learnt from prompt to prompt; or always as large as may be.
    auto& learnt = learnt_[way.name + prompt.domain];
    if (!learnt) learnt = std::make_shared<td::draft::AcceptanceEstimate>();
    const auto sized = [&](const auto& drafter) {
      if (options_.fixed) return with(drafter);
      return with(td::SizedDrafter{drafter, costs_, learnt});
    };
    const td::DrafterGroupOptions group{.budget          = options_.budget,
                                        .min_probability = options_.min_probability};
    if (!way.eagle) return sized(td::DrafterGroup{group, lookup_, forced_});
    const auto draft = [&](const auto& head) {
      const fr_spec::TimedDraft layer{eagle_, run.layer};
      const td::EagleDrafter eagle{
          layer, fr_spec::TimedHead{head, run.head},
          td::EagleOptions{
              .depth           = options_.depth,
              .width           = options_.width,
              .budget          = options_.budget,
              .min_probability = options_.min_probability,
              .context = way.with_context ? std::optional(tokenizer_.vocabulary()) : std::nullopt}};
      if (way.chooses_rows) {
        auto& coverage = coverage_[way.name + prompt.domain];
        if (!coverage) {
          coverage = std::make_shared<td::draft::CoverageEstimate>(
              td::draft::HeadCosts::measure(head, options_.width));
        }
        return sized(td::SizedHeadDrafter{eagle, coverage});
      }
      if (!way.with_text) return sized(eagle);
      return sized(td::DrafterGroup{group, eagle, lookup_, forced_});
    };
    if (options_.weights == "int8") return draft(head<Byte8>(prompt.domain).first(rows_of(way)));
    if (options_.weights == "bf16") return draft(head<Half>(prompt.domain).first(rows_of(way)));
    return draft(head<float>(prompt.domain).first(rows_of(way)));
  }

  [[nodiscard]] std::size_t rows_of(const Way& way) const {
    return way.k == 0 ? target_.vocabulary_size() : way.k;
  }

  // Ranked by every part of the corpus but the prompt's own.
  template <class W>
  const td::FrequencyRankedHead<W, float>& head(const std::string& domain) {
    auto& heads      = std::get<std::map<std::string, td::FrequencyRankedHead<W, float>>>(heads_);
    const auto found = heads.find(domain);
    if (found != heads.end()) return found->second;
    td::TokenCounts counts(target_.vocabulary_size());
    for (const auto& [part, own] : corpus_) {
      if (!domain.starts_with(part)) counts += own;
    }
    const td::FrequencyRanks ranks(counts.counts(), tokenizer_.vocabulary(), "all but " + domain);
    return heads
        .emplace(domain,
                 td::FrequencyRankedHead<W, float>(target_.lm_head(), ranks.first(ranks.size())))
        .first->second;
  }

  const Options& options_;
  td::LlamaModel target_;
  td::Tokenizer tokenizer_;
  td::VocabularyIndex masks_;
  td::PromptLookupDrafter lookup_;
  td::ForcedDrafter forced_;
  td::EagleModel eagle_;
  td::TreeCosts costs_;
  std::map<std::string, std::shared_ptr<td::draft::AcceptanceEstimate>> learnt_;
  std::map<std::string, std::shared_ptr<td::draft::CoverageEstimate>> coverage_;
  std::map<std::string, td::TokenCounts> corpus_;
  std::tuple<std::map<std::string, td::FrequencyRankedHead<Byte8, float>>,
             std::map<std::string, td::FrequencyRankedHead<Half, float>>,
             std::map<std::string, td::FrequencyRankedHead<float, float>>>
      heads_;
};

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

void print_line(const std::vector<std::string>& cells) {
  std::cout << '|';
  for (const std::string& cell : cells) std::cout << ' ' << cell << " |";
  std::cout << '\n';
}

void print_head(const std::vector<std::string>& names, std::size_t left = 1) {
  print_line(names);
  std::cout << '|';
  for (std::size_t i = 0; i < names.size(); ++i) std::cout << (i < left ? " --- |" : " ---: |");
  std::cout << '\n';
}

// The middle 95 % of a figure over prompts that are drawn with repetition.
template <class Figure>
std::array<double, 2> interval(std::size_t prompts, const Figure& figure) {
  std::mt19937 random{1};
  std::vector<double> values;
  std::vector<std::size_t> drawn(prompts);
  for (int round = 0; round < 1000; ++round) {
    for (std::size_t& one : drawn) one = random() % prompts;
    values.push_back(figure(drawn));
  }
  std::sort(values.begin(), values.end());
  return {values[25], values[974]};
}

using Runs = std::vector<std::vector<Run>>;  // [prompts][ways]

Sums sums_of(const Runs& runs, std::size_t way, std::span<const std::size_t> prompts) {
  Sums sums;
  for (const std::size_t p : prompts) sums.add(runs[p][way]);
  return sums;
}

// Everything of one domain, a row for each way.
Json report_domain(const std::string& domain, const Runs& runs, const std::vector<Way>& ways) {
  std::vector<std::size_t> all(runs.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::optional<std::size_t> whole;
  for (std::size_t w = 0; w < ways.size(); ++w) {
    if (ways[w].name == "eagle, all rows") whole = w;
  }
  std::cout << "\n" << domain << ", " << runs.size() << " prompts\n\n";
  print_head({"drafter", "acceptance length", "95 %", "retention", "tokens/s", "to plain", "95 %",
              "to all rows", "drafted a round", "target", "layer", "head", "other drafting", "rest",
              "differ"});
  Json table = Json::array();
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const Sums sums  = sums_of(runs, w, all);
    const Sums plain = sums_of(runs, 0, all);
    const auto ends  = interval(runs.size(), [&](std::span<const std::size_t> drawn) {
      return sums_of(runs, w, drawn).acceptance();
    });
    const auto gains = interval(runs.size(), [&](std::span<const std::size_t> drawn) {
      return sums_of(runs, w, drawn).rate() / sums_of(runs, 0, drawn).rate();
    });
    Run total;
    std::size_t differ = 0;
    for (const auto& prompt : runs) {
      const Run& run = prompt[w];
      total.rounds += run.rounds, total.drafted += run.drafted;
      total.target += run.target, total.layer += run.layer, total.head += run.head;
      total.drafting += run.drafting;
      differ += run.differs;
    }
    const double rounds  = std::max(1.0, sums.passes - sums.prompts);
    const double milli   = 1000 / rounds;
    const double rest    = sums.seconds - total.target - total.drafting;
    const bool has_whole = whole && ways[w].eagle && !ways[w].with_text;
    const Sums base      = has_whole ? sums_of(runs, *whole, all) : Sums{};
    Json row{{"way", ways[w].name},
             {"rows", ways[w].chooses_rows ? Json("chosen") : Json(ways[w].k)},
             {"context", ways[w].with_context},
             {"prompts", runs.size()},
             {"tokens", sums.tokens},
             {"passes", sums.passes},
             {"acceptance_length", sums.acceptance()},
             {"acceptance_length_ci95", ends},
             {"retention", has_whole ? Json(sums.acceptance() / base.acceptance()) : Json()},
             {"tokens_per_second", sums.rate()},
             {"to_plain", sums.rate() / plain.rate()},
             {"to_plain_ci95", gains},
             {"to_all_rows", has_whole ? Json(sums.rate() / base.rate()) : Json()},
             {"drafted_per_round", static_cast<double>(total.drafted) / rounds},
             {"ms_per_round",
              {{"target", milli * total.target},
               {"draft_layer", milli * total.layer},
               {"draft_head", milli * total.head},
               {"other_drafting", milli * (total.drafting - total.layer - total.head)},
               {"rest", milli * rest}}},
             {"answers_that_differ", differ}};
    const Json& time = row["ms_per_round"];
    const auto range = [](const std::array<double, 2>& two) {
      return fixed(two[0], 2) + " to " + fixed(two[1], 2);
    };
    print_line({ways[w].name, fixed(sums.acceptance(), 2), range(ends),
                has_whole ? fixed(100 * row["retention"].get<double>(), 1) + " %" : "",
                fixed(sums.rate(), 1), fixed(sums.rate() / plain.rate(), 2), range(gains),
                has_whole ? fixed(row["to_all_rows"].get<double>(), 2) : "",
                fixed(row["drafted_per_round"].get<double>(), 1),
                fixed(time["target"].get<double>(), 1), fixed(time["draft_layer"].get<double>(), 1),
                fixed(time["draft_head"].get<double>(), 1),
                fixed(time["other_drafting"].get<double>(), 1),
                fixed(time["rest"].get<double>(), 1), std::to_string(differ)});
    table.push_back(std::move(row));
  }
  return {{"domain", domain}, {"prompts", runs.size()}, {"ways", std::move(table)}};
}

std::vector<Way> make_ways(const Options& options) {
  std::vector<Way> ways{{.name = "plain"}, {.name = "lookup, forced", .with_text = true}};
  for (const std::size_t k : options.rows) {
    const std::string name = k == 0 ? "eagle, all rows" : "eagle, " + std::to_string(k) + " rows";
    ways.push_back({.name = name, .eagle = true, .k = k});
    if (k == 8'192) {
      ways.push_back({.name = name + ", context", .eagle = true, .k = k, .with_context = true});
      ways.push_back({.name         = name + ", context, lookup, forced",
                      .eagle        = true,
                      .k            = k,
                      .with_context = true,
                      .with_text    = true});
    }
  }
  ways.push_back({.name = "eagle, K chosen", .eagle = true, .chooses_rows = true});
  return ways;
}

int run_all(const Options& options) {
  const std::vector<Prompt> prompts = read_prompts(options);
  const std::vector<Way> ways       = make_ways(options);
  Bench bench(options);
  std::cout << "A pass of the target takes, in ms:";
  Json passes = Json::object();
  for (const std::size_t n : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    passes[std::to_string(n)] = 1000 * bench.costs().pass(n);
    std::cout << "  " << n << " tokens " << fixed(1000 * bench.costs().pass(n), 1);
  }
  std::cout << '\n' << std::flush;
  std::map<std::string, Runs> runs;
  program::Progress progress(prompts.size());
  for (const Prompt& prompt : prompts) {
    runs[prompt.domain].push_back(bench.run(prompt, ways));
    progress.advance();
  }
  progress.finish();
  Json domains       = Json::array();
  std::size_t differ = 0;
  for (const auto& [domain, own] : runs) domains.push_back(report_domain(domain, own, ways));
  for (const Json& domain : domains) {
    for (const Json& way : domain["ways"]) differ += way["answers_that_differ"].get<std::size_t>();
  }
  std::cout << '\n' << differ << " answers differ from plain decoding\n";
  if (!options.json.empty()) {
    std::ofstream(options.json) << Json{{"question", "what a pruned draft head costs and saves"},
                                        {"made_by", program::run_record()},
                                        {"target", "LlamaModel in F32"},
                                        {"draft_head", options.weights},
                                        {"tree",
                                         {{"sized", !options.fixed},
                                          {"depth", options.depth},
                                          {"width", options.width},
                                          {"budget", options.budget}}},
                                        {"ms_of_a_pass", std::move(passes)},
                                        {"temperature", options.temperature},
                                        {"ranks", "of the corpus without the prompt's domain"},
                                        {"answers_that_differ", differ},
                                        {"domains", std::move(domains)}}
                                       .dump(1)
                                << '\n';
  }
  return differ == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"What a pruned draft head costs and saves, on a real model"};
  app.add_option("--model", options.model, "GGUF file of a Llama model")->required();
  app.add_option("--eagle", options.eagle, "its EAGLE layer, safetensors")->required();
  app.add_option("--prompts", options.prompts, "JSONL: domain, tokens, functions")->required();
  app.add_option("--corpus", options.corpus, "folder of <domain>.txt.gz that rank tokens")
      ->required();
  app.add_option("--rows", options.rows, "rows of the draft's head, 0 for all")->delimiter(',');
  app.add_option("--weights", options.weights, "of the draft's head")
      ->check(CLI::IsMember({"int8", "bf16", "f32"}))
      ->capture_default_str();
  app.add_flag("--fixed", options.fixed, "trees as large as may be, in place of as large as pays");
  app.add_option("--depth", options.depth, "levels of a tree")->capture_default_str();
  app.add_option("--width", options.width, "nodes that a level grows from")->capture_default_str();
  app.add_option("--budget", options.budget, "draft tokens of a tree")->capture_default_str();
  app.add_option("--min-probability", options.min_probability, "of a path that is verified")
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "of the target")->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "of an answer")->capture_default_str();
  app.add_option("--limit", options.limit, "prompts of each domain; 0 is all");
  app.add_option("--json", options.json, "write the numbers to a file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run_all(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
