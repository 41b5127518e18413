// Checks on a real model that a batch writes the same tokens with drafts and without.
//
//   benchmark_draft_equality --model FILE.gguf --eagle FILE --prompts FILE.jsonl --corpus DIR [--json OUT]
//
// Prompts are those of benchmark_fr_spec. The target is the library's own LlamaModel, whose rows do
// not depend on the rest of a pass. Where two answers diverge, the logits of their tokens
// distinguish a near-tie from an error. At a temperature both runs use the prompt's seed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <CLI/CLI.hpp>
#include <program/files.hpp>
#include <program/progress.hpp>
#include <program/run_record.hpp>

namespace {

namespace td = tooldecode;
using Json   = tooldecode::JsonValue;
using Tokens = std::vector<td::TokenId>;
using Head   = td::FrequencyRankedHead;

constexpr float near_tie = 1e-3F;  // the largest gap of two logits that counts as a tie

struct Options {
  std::string model, eagle, prompts, corpus, json;
  std::size_t tokens = 100'000, max_tokens = 320, batch = 16, budget = 6, group = 48;
  double temperature = 0;
};

struct Prompt {
  std::string domain;
  Tokens tokens;
  Json functions;  // null: free text
};

// The answers of one domain, or of all.
struct Compared {
  std::size_t answers = 0, tokens = 0, near_ties = 0, different = 0;
};

struct Way {
  std::size_t passes = 0, tokens = 0, drafted = 0, accepted = 0;
};

std::vector<Prompt> read_prompts(const std::string& file) {
  std::map<std::string, std::vector<Prompt>> domains;
  std::istringstream lines(program::read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const Json row            = tooldecode::text::parse_json(line);
    const std::string& domain = row.at("domain").string();
    domains[domain].push_back({domain, row.at("tokens").get<std::vector<tooldecode::TokenId>>(),
                               row.value("functions", Json())});
  }
  // Domains take turns, so that all have answers if there are enough tokens.
  std::vector<Prompt> prompts;
  for (std::size_t i = 0, before = 1; prompts.size() != std::exchange(before, prompts.size());
       ++i) {
    for (auto& [name, rows] : domains) {
      if (i < rows.size()) prompts.push_back(std::move(rows[i]));
    }
  }
  return prompts;
}

Head ranked_head(const td::LlamaModel& target, const td::Tokenizer& tokenizer,
                 const std::string& corpus) {
  td::TokenCounts counts(target.vocabulary_size());
  for (const char* part : {"code", "dialogue", "math", "prose", "tools"}) {
    std::istringstream text(
        program::read_file(std::filesystem::path(corpus) / (part + std::string(".txt.gz"))));
    counts += td::count_tokens(tokenizer, text);
  }
  const td::FrequencyRanks ranks(counts.counts(), tokenizer.vocabulary(), "all of the corpus");
  return {target.lm_head(),
          ranks.first(target.vocabulary_size() / 4),
          {.weights = td::WeightType::scaled_byte}};
}

class Equality {
 public:
  explicit Equality(const Options& options)
      : options_(options),
        target_(td::LlamaModel::load(options.model)),
        tokenizer_(td::load_tokenizer(options.model)),
        masks_(tokenizer_.vocabulary()),
        eagle_(td::EagleModel::load(target_, options.eagle)),
        head_(ranked_head(target_, tokenizer_, options.corpus)),
        lookup_(masks_),
        forced_([this](std::string_view text) { return tokenizer_.encode(text); }) {}
  Equality(const Equality&)            = delete;
  Equality& operator=(const Equality&) = delete;

  void compare(std::span<const Prompt> prompts) {
    std::vector<Prompt> free, calls;
    for (const Prompt& prompt : prompts)
      (prompt.functions.is_null() ? free : calls).push_back(prompt);
    const auto ends = tokenizer_.vocabulary().end_tokens();
    compare<td::Unconstrained>(free, [&](const Prompt&) {
      return td::Unconstrained{target_.vocabulary_size(), {ends.begin(), ends.end()}};
    });
    compare<td::ToolCallFSM>(calls, [&](const Prompt& prompt) {
      return td::ToolCallFSM(masks_, td::ToolSet::from_json(prompt.functions), td::PythonCall{},
                             {.choice = td::ToolChoice::required});
    });
  }

  [[nodiscard]] const std::map<std::string, Compared>& domains() const { return domains_; }
  [[nodiscard]] Compared all() const {
    Compared sum;
    for (const auto& [name, one] : domains_) {
      sum.answers += one.answers, sum.tokens += one.tokens;
      sum.near_ties += one.near_ties, sum.different += one.different;
    }
    return sum;
  }
  [[nodiscard]] const Way& plain() const { return plain_; }
  [[nodiscard]] const Way& drafted() const { return drafted_; }

 private:
  template <class C, class MakeConstraint>
  void compare(const std::vector<Prompt>& prompts, const MakeConstraint& constraint_of) {
    std::vector<C> constraints;
    for (const Prompt& prompt : prompts) constraints.push_back(constraint_of(prompt));
    const auto plain = write(prompts, constraints, td::DrafterGroup<>{}, plain_);
    const td::EagleDrafter layer{
        eagle_, head_, {.depth = 4, .width = 3, .budget = options_.budget}};
    const auto drafted = write(prompts, constraints,
                               td::DrafterGroup{td::DrafterGroupOptions{.budget = options_.budget},
                                                layer, lookup_, forced_},
                               drafted_);
    for (std::size_t i = 0; i < prompts.size(); ++i) add(prompts[i], plain[i], drafted[i]);
  }

  template <class C, class D>
  std::vector<td::Output> write(const std::vector<Prompt>& prompts,
                                const std::vector<C>& constraints, const D& drafter, Way& way) {
    std::vector<td::Output> outputs(prompts.size());
    td::ContinuousBatch<td::LlamaModel, C, D> batch{
        target_, {.max_batch = options_.batch, .prefix_cache = 1024}};
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      batch.add({.prompt     = prompts[i].tokens,
                 .constraint = constraints[i],
                 .options    = {.max_tokens  = options_.max_tokens,
                                .temperature = static_cast<float>(options_.temperature),
                                .seed        = i},
                 .drafter    = drafter,
                 .on_end     = [&outputs, i](const td::Output& output) -> td::AfterTurn {
                   outputs[i] = output;
                   return td::Leave{};
                 }});
    }
    while (batch.step()) {}
    way.passes += batch.counts().passes;
    way.tokens += batch.counts().generated_tokens;
    way.drafted += batch.counts().drafted_tokens;
    way.accepted += batch.counts().accepted_tokens;
    return outputs;
  }

  void add(const Prompt& prompt, const td::Output& one, const td::Output& other) {
    Compared& domain = domains_[prompt.domain];
    ++domain.answers;
    domain.tokens += one.tokens.size();
    if (one.tokens == other.tokens && one.finish == other.finish) return;
    const auto [a, b] = std::ranges::mismatch(one.tokens, other.tokens);
    Tokens before     = prompt.tokens;
    before.insert(before.end(), one.tokens.begin(), a);
    auto cache = target_.make_cache();
    std::vector<float> logits(target_.vocabulary_size());
    target_.forward(cache, before, logits);
    const auto logit = [&](auto at, const Tokens& all) {
      if (at != all.end()) return logits[static_cast<std::size_t>(*at)];
      float best = -INFINITY;
      for (const td::TokenId end : tokenizer_.vocabulary().end_tokens())
        best = std::max(best, logits[static_cast<std::size_t>(end)]);
      return best;
    };
    const float gap = std::abs(logit(a, one.tokens) - logit(b, other.tokens));
    ++(gap <= near_tie ? domain.near_ties : domain.different);
    std::cout << prompt.domain << ": answers part after " << a - one.tokens.begin()
              << " tokens, logits " << gap << " apart\n";
  }

  const Options& options_;
  td::LlamaModel target_;
  td::Tokenizer tokenizer_;
  td::VocabularyIndex masks_;
  td::EagleModel eagle_;
  Head head_;
  td::SuffixDrafter lookup_;
  td::JumpForwardDrafter forced_;
  std::map<std::string, Compared> domains_;
  Way plain_, drafted_;
};

Json to_json(const Compared& one) {
  return {{"answers", one.answers},
          {"tokens", one.tokens},
          {"near_ties", one.near_ties},
          {"different", one.different}};
}

Json to_json(const Way& way) {
  return {{"passes", way.passes},
          {"tokens", way.tokens},
          {"drafted", way.drafted},
          {"accepted", way.accepted}};
}

int run(const Options& options) {
  const std::vector<Prompt> prompts = read_prompts(options.prompts);
  Equality equality(options);
  program::Progress progress(prompts.size());
  for (std::size_t i = 0; i < prompts.size() && equality.all().tokens < options.tokens;
       i += options.group) {
    const std::size_t count = std::min(options.group, prompts.size() - i);
    equality.compare(std::span(prompts).subspan(i, count));
    for (std::size_t n = 0; n < count; ++n) progress.advance();
  }
  progress.finish();
  const auto row = [](const std::string& name, const Compared& one) {
    std::cout << "| " << name << " | " << one.answers << " | " << one.tokens << " | "
              << one.near_ties << " | " << one.different << " |\n";
  };
  std::cout << "| domain | answers | tokens | near-ties | different |\n"
               "| --- | ---: | ---: | ---: | ---: |\n";
  Json domains = Json::object();
  for (const auto& [name, one] : equality.domains()) {
    row(name, one);
    domains[name] = to_json(one);
  }
  row("all", equality.all());
  std::cout << "\nA batch of " << options.batch << " takes " << equality.plain().passes
            << " passes without drafts and " << equality.drafted().passes
            << " with them, which hold " << equality.drafted().accepted << " of the tokens.\n";
  if (!options.json.empty()) {
    const Json whole{{"question", "does a batch with drafts write what one without them writes"},
                     {"made_by", program::run_record()},
                     {"target", "LlamaModel, F32 arithmetic"},
                     {"drafts", "EAGLE with V/4 8-bit rows, lookup, forced text"},
                     {"temperature", options.temperature},
                     {"max_tokens", options.max_tokens},
                     {"batch", options.batch},
                     {"near_tie_is_at_most", near_tie},
                     {"domains", std::move(domains)},
                     {"all", to_json(equality.all())},
                     {"plain", to_json(equality.plain())},
                     {"drafted", to_json(equality.drafted())}};
    std::ofstream file(options.json);
    file << whole.text({.indent = 1}) << '\n';
    if (!file.flush()) throw std::runtime_error(options.json + ": cannot be written");
  }
  return equality.all().different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Checks that a batch writes the same tokens with drafts and without, on a real model"};
  app.add_option("--model", options.model, "GGUF file of a Llama model")->required();
  app.add_option("--eagle", options.eagle, "its EAGLE layer, safetensors")->required();
  app.add_option("--prompts", options.prompts, "JSONL: domain, tokens, functions")->required();
  app.add_option("--corpus", options.corpus, "directory of <domain>.txt.gz for token ranks")
      ->required();
  app.add_option("--tokens", options.tokens, "no prompt starts after so many tokens")
      ->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "maximum tokens of an answer")
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "temperature of the target")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "answers that are written together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--budget", options.budget, "draft tokens of a tree")->capture_default_str();
  app.add_option("--group", options.group, "prompts that are compared before others start")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "write the numbers to a file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
