// Checks that runs which should write the same tokens do: the embedded model with the library's
// arithmetic and with llama.cpp's, and SmolLM2's speculative answers beside its plain ones. Where
// two runs diverge, the logits of the two tokens distinguish an error from a near-tie, which
// another order of sums may decide differently.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/model/llama_weights.hpp>
#include <tooldecode/model/safetensors.hpp>
#include <tooldecode/text/json_value.hpp>

#include <CLI/CLI.hpp>
#include <program/command_line.hpp>
#include <program/gguf_assistant.hpp>
#include <program/models.hpp>
#include <program/prefilled_model.hpp>
#include <program/progress.hpp>
#include <program/rows.hpp>
#include <program/run_record.hpp>
#include <program/speculation.hpp>
#include <support/numbered_gguf.hpp>

namespace {

namespace td   = tooldecode;
using Json     = tooldecode::JsonValue;
using Tokens   = std::vector<td::TokenId>;
using Embedded = program::EmbeddedAssistant;
using Real     = program::GgufAssistant;

struct NearTie {
  std::string row;
  std::size_t at = 0;  // number of equal tokens before it
  std::string tokens;
  float gap = 0;
};

// One pair of runs, over all rows.
struct Comparison {
  std::string runs;
  float near_tie         = 0;  // the largest gap of two logits that counts as a tie
  std::size_t rows       = 0;
  std::size_t tokens     = 0;
  std::size_t same       = 0;
  std::size_t first_pass = 0;  // of the first run, of the second
  std::size_t other_pass = 0;
  std::vector<NearTie> near_ties{};
  std::vector<NearTie> different{};

  // Compares two answers; the logits are those of a model that reads token by token.
  template <class M>
  void add(const td::Vocabulary& vocabulary, const M& model, const std::string& row,
           const Tokens& prompt, const td::Output& first, const td::Output& other) {
    ++rows;
    tokens += first.tokens.size();
    first_pass += first.passes;
    other_pass += other.passes;
    const auto [a, b] = std::ranges::mismatch(first.tokens, other.tokens);
    if (a == first.tokens.end() && b == other.tokens.end() && first.finish == other.finish) {
      ++same;
      return;
    }
    Tokens before = prompt;
    before.insert(before.end(), first.tokens.begin(), a);
    auto cache = model.make_cache();
    std::vector<float> logits(model.vocabulary_size());
    model.forward(cache, before, logits);
    const auto chosen = [&](auto at, const Tokens& all) {
      if (at != all.end()) return *at;
      return *std::ranges::max_element(vocabulary.end_tokens(), {}, [&](td::TokenId end) {
        return logits[static_cast<std::size_t>(end)];
      });
    };
    const td::TokenId one = chosen(a, first.tokens), two = chosen(b, other.tokens);
    const float gap =
        std::abs(logits[static_cast<std::size_t>(one)] - logits[static_cast<std::size_t>(two)]);
    auto& list = gap <= near_tie ? near_ties : different;
    list.push_back({row, static_cast<std::size_t>(a - first.tokens.begin()),
                    std::string(vocabulary.name(one)) + " " + std::string(vocabulary.name(two)),
                    gap});
  }
};

struct Options {
  std::string embedded  = program::example_data("tiny").string();
  std::string dialogues = program::example_data("tiny/heldout.jsonl").string();
  program::ModelOptions model{.name = "smollm2", .threads = 1};
  std::vector<std::string> data;
  std::string json;
  std::size_t limit      = 0;
  std::size_t max_tokens = 96;
};

// The embedded model in llama.cpp, from the same weights in F32 and with the same token ids.
td::LlamaCppModel by_llama_cpp(const Embedded& assistant) {
  const td::LlamaConfig& config = assistant.model.config();
  const auto weights            = td::model::LlamaWeights::read(
      td::SafeTensors::load(assistant.place / "model.safetensors"), config);
  const td::test::TemporaryFile file("tooldecode_equality.gguf",
                                     td::test::numbered_gguf(config, weights));
  return td::LlamaCppModel::load(file.path(), {.cells           = 4096,
                                               .cache_type      = GGML_TYPE_F32,
                                               .flash_attention = LLAMA_FLASH_ATTN_TYPE_DISABLED});
}

std::vector<program::Row> read(std::span<const std::string> files, std::size_t limit) {
  std::vector<program::Row> rows;
  program::LeftOut left_out;
  for (const std::string& path : files) program::read_rows(path, limit, rows, left_out);
  std::cout << left_out.report();
  return rows;
}

std::vector<Comparison> compare_engines(const Options& options, const Embedded& assistant) {
  const td::LlamaCppModel engine = by_llama_cpp(assistant);
  const auto ends                = assistant.tokenizer.vocabulary().end_tokens();
  std::vector<Comparison> result{{"embedded model, free: own arithmetic, llama.cpp", 1e-3F},
                                 {"embedded model, constrained: own arithmetic, llama.cpp", 1e-3F}};
  const auto rows = read({&options.dialogues, 1}, options.limit);
  program::Progress progress(rows.size());
  for (const program::Row& row : rows) {
    const Tokens prompt = assistant.prompt(row.tools, *row.format, row.messages);
    const auto compare  = [&](Comparison& into, const auto& constraint,
                             const td::DecodeOptions& decode) {
      into.add(assistant.tokenizer.vocabulary(), assistant.model, row.id, prompt,
                td::Decoder{assistant.model, constraint}(prompt, decode),
                td::Decoder{engine, constraint}(prompt, decode));
    };
    compare(result[0], td::Unconstrained{assistant.model.vocabulary_size()},
            {.max_tokens = options.max_tokens, .end_tokens = {ends.begin(), ends.end()}});
    compare(result[1],
            tooldecode::ToolCallFSM(assistant.masks, row.tools, row.format->format, row.choice),
            {.max_tokens = options.max_tokens});
    progress.advance();
  }
  progress.finish();
  return result;
}

Comparison compare_speculation(const Options& options, const Real& assistant) {
  Comparison result{"SmolLM2, constrained: plain, speculative (forced text and lookup)", 0.25F};
  const auto rows = read(options.data, options.limit);
  const program::TextDrafters text(assistant);
  program::Progress progress(rows.size());
  for (const program::Row& row : rows) {
    td::ChoiceOptions choice = row.choice;
    choice.choice            = td::ToolChoice::required;
    const auto calls =
        tooldecode::ToolCallFSM(assistant.masks, row.tools, row.format->format, choice);
    const Tokens prompt = assistant.prompt(row.tools, *row.format, row.messages);
    const program::PrefilledModel model{assistant.model, {prompt.begin(), prompt.end() - 1}};
    const td::DecodeOptions decode{.max_tokens = options.max_tokens};
    result.add(assistant.tokenizer.vocabulary(), model, row.id, prompt,
               td::Decoder{model, calls}(prompt, decode),
               program::decode_with(model, calls, text.both(), prompt, decode));
    progress.advance();
  }
  progress.finish();
  return result;
}

Json to_json(const Comparison& comparison) {
  const auto list = [](const std::vector<NearTie>& places) {
    Json result = Json::array();
    for (const NearTie& place : places) {
      result.push_back({{"row", place.row},
                        {"behind_tokens", place.at},
                        {"tokens", place.tokens},
                        {"gap", place.gap}});
    }
    return result;
  };
  return {{"runs", comparison.runs},
          {"rows", comparison.rows},
          {"tokens", comparison.tokens},
          {"same", comparison.same},
          {"near_tie_is_at_most", comparison.near_tie},
          {"near_ties", list(comparison.near_ties)},
          {"different", list(comparison.different)},
          {"passes", {comparison.first_pass, comparison.other_pass}}};
}

void print(const std::vector<Comparison>& comparisons) {
  std::cout << "| runs | answers | tokens | the same | near-ties | different | passes |\n"
               "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Comparison& c : comparisons) {
    std::cout << "| " << c.runs << " | " << c.rows << " | " << c.tokens << " | " << c.same << " | "
              << c.near_ties.size() << " | " << c.different.size() << " | " << c.first_pass << ", "
              << c.other_pass << " |\n";
  }
  for (const Comparison& c : comparisons) {
    for (const auto* list : {&c.near_ties, &c.different}) {
      for (const NearTie& place : *list) {
        std::cout << (list == &c.different ? "different: " : "near-tie: ") << place.row
                  << ", behind " << place.at << " tokens: " << place.tokens << ", logits "
                  << place.gap << " apart\n";
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Checks which answers are equal, token for token: two engines, plain and speculative"};
  Options options;
  program::Command command(app);
  program::add_model_options(command, options.model);
  app.add_option("--dialogues", options.dialogues, "rows for the embedded model")
      ->capture_default_str();
  app.add_option(
         "--data", options.data,
         "JSONL (or .gz) rows as `tooldecode eval` reads, for the model that llama.cpp runs")
      ->required();
  app.add_option("--limit", options.limit, "first rows of each file only; 0: all");
  app.add_option("--max-tokens", options.max_tokens, "most tokens of an answer")
      ->capture_default_str();
  app.add_option("--json", options.json, "write the numbers to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    auto comparisons      = compare_engines(options, program::load_embedded(options.embedded));
    const auto loaded     = program::load_assistant(options.model);
    const auto* assistant = dynamic_cast<const Real*>(loaded.get());
    if (assistant == nullptr) {
      throw td::Error(td::Errc::invalid_option, "--model", "must be one that llama.cpp runs");
    }
    comparisons.push_back(compare_speculation(options, *assistant));
    print(comparisons);
    if (!options.json.empty()) {
      Json list = Json::array();
      for (const Comparison& c : comparisons) list.push_back(to_json(c));
      std::ofstream(options.json)
          << Json{{"made_by", program::run_record()}, {"comparisons", list}}.text({.indent = 2})
          << '\n';
    }
    return std::ranges::all_of(comparisons, [](const auto& c) { return c.different.empty(); }) ? 0
                                                                                               : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
