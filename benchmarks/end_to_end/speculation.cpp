// What drafts gain end to end: tokens per forward pass for each drafter, and what a smaller draft
// vocabulary costs, on the held-out dialogues of the embedded model.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include <CLI/CLI.hpp>
#include <program/files.hpp>
#include <program/model_assistant.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/rows.hpp>
#include <program/run_record.hpp>
#include <program/speculation.hpp>

namespace {

namespace td = tooldecode;
using Json   = tooldecode::JsonValue;
using program::DraftSettings;
using program::Speculation;
using PrefilledModel = program::PrefilledModel<td::LlamaModel>;

struct Contender {
  std::string name;
  bool constrained               = true;
  const Speculation* speculation = nullptr;  // null: plain decoding
  DraftSettings drafts{};

  std::size_t answers = 0, tokens = 0, passes = 0, mismatches = 0;
  double milliseconds = 0;
  td::DraftCounts counts{};

  // Tokens per pass, without the prompt's pass, which gives one token in any case.
  [[nodiscard]] double acceptance_length() const {
    return static_cast<double>(tokens - answers) /
           static_cast<double>(std::max<std::size_t>(1, passes - answers));
  }
  [[nodiscard]] double tokens_per_pass() const {
    return static_cast<double>(tokens) / static_cast<double>(std::max<std::size_t>(1, passes));
  }
};

// Runs all contenders on one prompt. A speculative one must write what the plain one of its kind
// writes.
template <class C>
void run(std::vector<Contender>& contenders, bool constrained, const PrefilledModel& model,
         const C& constraint, std::span<const td::TokenId> prompt,
         const td::DecodeOptions& options) {
  std::optional<td::Output> plain;
  for (Contender& contender : contenders) {
    if (contender.constrained != constrained) continue;
    const auto start = std::chrono::steady_clock::now();
    const td::Output output =
        contender.speculation == nullptr
            ? td::Decoder{model, constraint}(prompt, options)
            : (*contender.speculation)(model, constraint, prompt, options, contender.drafts);
    contender.milliseconds +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    ++contender.answers;
    contender.tokens += output.tokens.size() + (output.finish == td::Finish::end ? 1 : 0);
    contender.passes += output.passes;
    contender.counts += output.drafts;
    if (!plain) plain = output;
    contender.mismatches += output.tokens != plain->tokens;
  }
}

void run_rows(const program::EmbeddedAssistant& assistant, const std::vector<program::Row>& rows,
              std::vector<Contender>& contenders) {
  program::Progress progress(rows.size());
  const auto ends = assistant.tokenizer.vocabulary().end_tokens();
  const td::Unconstrained any{assistant.model.vocabulary_size(), {ends.begin(), ends.end()}};
  for (const program::Row& row : rows) {
    const auto calls =
        tooldecode::ToolCallFSM(assistant.masks, row.tools, row.format->format, row.choice);
    const auto prompt =
        program::make_prompt(assistant.tokenizer, row.tools, row.format->name, row.messages);
    const PrefilledModel model{assistant.model, prompt};
    const td::DecodeOptions options{.max_tokens = 160};
    run(contenders, true, model, calls, prompt, options);
    run(contenders, false, model, any, prompt, options);
    progress.advance();
  }
  progress.finish();
}

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

void print_head(const std::vector<std::string>& names) {
  print_line(names);
  std::cout << "| ---";
  for (std::size_t i = 1; i < names.size(); ++i) std::cout << " | ---:";
  std::cout << " |\n";
}

void print_drafters(const std::vector<Contender>& contenders, Json& report) {
  const Contender& plain = contenders.front();
  std::cout << "\nTool calls, constrained, greedy, " << plain.answers << " answers, "
            << plain.tokens << " tokens. Times are without the target's pass over the prompt.\n\n";
  print_head({"drafter", "passes", "tokens per pass", "against plain", "drafted per pass",
              "accepted at depth 1", "2", "3", "4", "5", "6", "ms per answer", "time / plain",
              "mismatches"});
  for (const Contender& c : contenders) {
    if (!c.constrained) continue;
    std::vector<std::string> cells{
        c.name, std::to_string(c.passes), fixed(c.tokens_per_pass(), 2),
        fixed(c.tokens_per_pass() / plain.tokens_per_pass(), 2),
        fixed(static_cast<double>(c.counts.nodes) / static_cast<double>(c.passes - c.answers), 1)};
    for (std::size_t d = 0; d < 6; ++d) {
      const bool tried = d < c.counts.tried.size() && c.counts.tried[d] > 0;
      cells.push_back(tried ? fixed(100 * static_cast<double>(c.counts.accepted[d]) /
                                        static_cast<double>(c.counts.tried[d]),
                                    0) +
                                  " %"
                            : "");
    }
    cells.push_back(fixed(c.milliseconds / static_cast<double>(c.answers), 1));
    cells.push_back(fixed(c.milliseconds / plain.milliseconds, 2));
    cells.push_back(std::to_string(c.mismatches));
    print_line(cells);
    report.push_back({{"drafter", c.name},
                      {"answers", c.answers},
                      {"tokens", c.tokens},
                      {"passes", c.passes},
                      {"drafted", c.counts.nodes},
                      {"tried", c.counts.tried},
                      {"accepted", c.counts.accepted},
                      {"milliseconds", c.milliseconds},
                      {"mismatches", c.mismatches}});
  }
}

// Bytes that a round of this many levels reads in BF16: the target, and for each level the draft's
// layer and the rows of its head.
double round_bytes(const td::LlamaConfig& config, double levels, std::size_t k) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const double attention =
      2 * hidden * static_cast<double>((config.heads + config.key_value_heads) * config.head_size);
  const double layer  = attention + 3 * hidden * static_cast<double>(config.intermediate_size);
  const double head   = hidden * static_cast<double>(config.vocabulary_size);
  const double target = static_cast<double>(config.layers) * layer + head;
  const double draft  = layer + 2 * hidden * hidden + hidden * static_cast<double>(k);
  return 2 * (target + levels * draft);
}

void print_sweep(const std::vector<Contender>& contenders, bool constrained,
                 const program::EmbeddedAssistant& assistant, Json& report) {
  std::cout
      << "\nEAGLE drafts by the share of the vocabulary, " << (constrained ? "constrained" : "free")
      << ", greedy: tokens per verifying pass. Break-even is the retention at which the bytes that "
         "are spared make up for it, with as many levels as the trees that were verified "
         "have on average.\n\n";
  print_head({"ranks", "context", "K", "acceptance length", "retention", "levels", "break-even",
              "drafted per pass", "mismatches"});
  double whole = 0;
  for (const Contender& c : contenders) {
    if (c.constrained != constrained || c.speculation == nullptr) continue;
    const std::size_t all = assistant.model.vocabulary_size();
    const std::size_t k   = c.drafts.k == 0 ? all : c.drafts.k;
    if (k == all) whole = c.acceptance_length();
    const double levels =
        static_cast<double>(c.counts.levels) / static_cast<double>(c.passes - c.answers);
    const auto bytes = [&](std::size_t rows) {
      return round_bytes(assistant.model.config(), levels, rows);
    };
    print_line(
        {c.name, c.drafts.with_context ? "yes" : "no",
         std::to_string(k) + " (" +
             fixed(100.0 * static_cast<double>(k) / static_cast<double>(all), 2) + " %)",
         fixed(c.acceptance_length(), 3), fixed(100 * c.acceptance_length() / whole, 1) + " %",
         fixed(levels, 2), fixed(100 * bytes(k) / bytes(all), 1) + " %",
         fixed(static_cast<double>(c.counts.nodes) / static_cast<double>(c.passes - c.answers), 1),
         std::to_string(c.mismatches)});
    report.push_back({{"ranks", c.name},
                      {"constrained", constrained},
                      {"context", c.drafts.with_context},
                      {"k", k},
                      {"acceptance_length", c.acceptance_length()},
                      {"retention", c.acceptance_length() / whole},
                      {"levels", levels},
                      {"break_even", bytes(k) / bytes(all)},
                      {"mismatches", c.mismatches}});
  }
}

// Text of another domain: books and documentation.
std::optional<td::FrequencyRanks> count_prose(const program::EmbeddedAssistant& assistant) {
  const char* root = std::getenv("TOOLDECODE_SHARED_DATA");
  const auto path =
      std::filesystem::path(root != nullptr ? root : "../shared/data") / "corpus/prose.txt.gz";
  if (!std::filesystem::exists(path)) {
    std::cerr << "SKIPPED: off-domain ranks need " << path.string()
              << " (set TOOLDECODE_SHARED_DATA)\n";
    return std::nullopt;
  }
  std::istringstream text(program::read_file(path));
  const auto counts = td::count_tokens(assistant.tokenizer, text);
  return td::FrequencyRanks(counts.counts(), assistant.tokenizer.vocabulary(), "prose");
}

int run_all(std::size_t limit, std::size_t sweep_rows, const std::string& ranks,
            const std::string& json) {
  const program::EmbeddedAssistant assistant =
      program::load_embedded(program::example_data("tiny"));
  std::vector<program::Row> rows;
  program::LeftOut left_out;
  for (const char* file : {"tiny/heldout.jsonl", "tiny/heldout_many.jsonl"}) {
    program::read_rows(program::example_data(file), limit, rows, left_out);
  }
  std::erase_if(rows, [](const program::Row& row) { return row.expected.empty(); });

  const Speculation in_domain{assistant, td::FrequencyRanks::load(ranks)};
  const std::size_t all = assistant.model.vocabulary_size();
  Json report{{"rows", rows.size()}};

  std::vector<Contender> drafters{{.name = "none"}};
  for (const auto name : program::drafter_names) {
    drafters.push_back({.name        = std::string(name),
                        .speculation = &in_domain,
                        .drafts      = {.drafter = std::string(name), .k = all / 4}});
  }
  run_rows(assistant, rows, drafters);
  print_drafters(drafters, report["drafters"] = Json::array());

  std::vector<Contender> sizes;
  std::optional<Speculation> off_domain;
  if (sweep_rows > 0) {
    std::vector<program::Row> fewer;
    const std::size_t count = std::min(sweep_rows, rows.size());
    for (std::size_t i = 0; i < count; ++i) fewer.push_back(rows[i * rows.size() / count]);
    if (const auto prose = count_prose(assistant)) off_domain.emplace(assistant, *prose);
    const Speculation* other = off_domain ? &*off_domain : nullptr;
    for (const bool constrained : {false, true}) {
      sizes.push_back({.name = "plain", .constrained = constrained});
      for (const Speculation* speculation : {&in_domain, std::as_const(other)}) {
        if (speculation == nullptr) continue;
        for (const bool context : {false, true}) {
          for (const std::size_t part : {1U, 2U, 4U, 8U, 16U}) {
            if (part == 1 && (context || speculation != &in_domain)) continue;
            sizes.push_back({.name        = speculation == &in_domain ? "in-domain" : "off-domain",
                             .constrained = constrained,
                             .speculation = speculation,
                             .drafts      = {.drafter      = "eagle",
                                             .k            = part == 1 ? 0 : all / part,
                                             .with_context = context}});
          }
        }
      }
    }
    run_rows(assistant, fewer, sizes);
    report["sweep"] = {{"rows", fewer.size()}, {"eagle_levels_at_most", program::eagle_depth}};
    Json& table = report["sizes"] = Json::array();
    print_sweep(sizes, false, assistant, table);
    print_sweep(sizes, true, assistant, table);
  }

  std::size_t mismatches = 0;
  for (const auto* group : {&drafters, &sizes}) {
    for (const Contender& contender : *group) mismatches += contender.mismatches;
  }
  std::cout << '\n' << mismatches << " answers differ from plain decoding\n";
  report["made_by"] = program::run_record();
  if (!json.empty()) std::ofstream(json) << report.text({.indent = 1}) << '\n';
  return mismatches == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tokens per forward pass of every drafter, and acceptance by draft vocabulary"};
  std::size_t limit      = 0;
  std::size_t sweep_rows = 120;
  std::string json, ranks = program::example_data("tiny/ranks.json").string();
  app.add_option("--limit", limit, "rows of each file; 0 is all");
  app.add_option("--sweep-rows", sweep_rows, "rows for the sizes of the draft vocabulary")
      ->capture_default_str();
  app.add_option("--ranks", ranks, "frequency ranks of this domain");
  app.add_option("--json", json, "write the numbers to a file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run_all(limit, sweep_rows, ranks, json);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
