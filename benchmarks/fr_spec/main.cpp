// Measures FR-Spec on a real model: what a pruned draft head costs in acceptance, what it saves in
// time, and where a round spends its time, for each prompt against plain decoding.
//
//   benchmark_fr_spec --model FILE.gguf --eagle FILE --prompts FILE.jsonl --corpus DIR [--json OUT]
//
// A prompt is a line {"domain", "tokens", "functions"}; if it has functions, the answer must be calls
// of them. The target is the library's own LlamaModel, whose answers do not depend on the number of
// tokens in a pass. So a speculative answer must equal the plain one, token for token.
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "prompts.hpp"
#include "report.hpp"
#include <CLI/CLI.hpp>
#include <program/progress.hpp>
#include <program/run_record.hpp>

namespace {

using namespace fr_spec;

int run(const Options& options) {
  const std::vector<Prompt> prompts = read_prompts(options.prompts, options.limit);
  Bench bench(options);
  Domains domains;
  program::Progress progress(prompts.size());
  const auto begin = std::chrono::steady_clock::now();
  for (const Prompt& prompt : prompts) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (options.minutes > 0 && elapsed.count() > 60 * options.minutes) break;
    Domain& domain       = domains[prompt.domain];
    const bool is_timed  = domain.replayed.size() < options.timed;
    const Measured found = prompt.functions.is_null() ? bench.measure_free(prompt, is_timed)
                                                      : bench.measure_calls(prompt, is_timed);
    domain.add(found);
    progress.advance();
  }
  progress.finish();
  Json found               = report(options, bench, domains);
  const std::size_t differ = found.at("answers_that_differ").get<std::size_t>();
  if (!options.plots.empty()) draw(found, options.plots);
  if (!options.json.empty()) {
    Json whole{{"question", "what a pruned draft head costs and saves"},
               {"made_by", program::run_record()}};
    whole.update(found);
    std::ofstream file(options.json);
    file << whole.text({.indent = 1}) << '\n';
    if (!file.flush()) throw std::runtime_error(options.json + ": cannot be written");
  }
  return differ == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"The costs and savings of a pruned draft head, on a real model"};
  app.add_option("--model", options.model, "GGUF file of a Llama model")->required();
  app.add_option("--eagle", options.eagle, "its EAGLE layer, safetensors")->required();
  app.add_option("--eagle3", options.eagle3, "its EAGLE-3 layer and head, safetensors");
  app.add_option("--medusa", options.medusa, "its Medusa heads, safetensors");
  app.add_option("--prompts", options.prompts, "JSONL: domain, tokens, functions")->required();
  app.add_option("--corpus", options.corpus, "directory of <domain>.txt.gz for token ranks")
      ->required();
  app.add_option("--rows", options.rows, "rows of the draft's head, 0 for all")->delimiter(',');
  app.add_option("--depth", options.tree.depth, "levels of a timed tree")->capture_default_str();
  app.add_option("--width", options.tree.width, "nodes of a level that grow children")
      ->capture_default_str();
  app.add_option("--budget", options.tree.budget, "draft tokens of a tree")->capture_default_str();
  app.add_option("--min-probability", options.tree.min_probability,
                 "minimum probability of a verified path")
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "temperature of the target")
      ->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "maximum tokens of an answer")
      ->capture_default_str();
  app.add_option("--limit", options.limit, "prompts of each domain; 0 is all");
  app.add_option("--timed", options.timed, "prompts of each domain that are also timed")
      ->capture_default_str();
  app.add_option("--minutes", options.minutes,
                 "no prompt starts after so many minutes; 0: no limit");
  app.add_option("--json", options.json, "write the numbers to a file");
  app.add_option("--plots", options.plots, "write two charts to a directory");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
