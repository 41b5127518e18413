// Speculative output equals plain output in tokens and probabilities on the embedded model: every
// drafter, every size of the draft vocabulary, with and without constraint.
//
// TOOLDECODE_PROMPTS=FIRST:COUNT selects other prompts than the few of an ordinary run, of 1,800:
// each held-out dialogue in both call formats.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <tooldecode/decode/decoder.hpp>

#include <program/model_assistant.hpp>
#include <program/prefilled_model.hpp>
#include <program/rows.hpp>
#include <program/speculation.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

struct Range {
  std::size_t first = 0;
  std::size_t count = 4;
};

Range asked_range() {
  Range range;
  if (const char* text = std::getenv("TOOLDECODE_PROMPTS")) {
    std::size_t colon = 0;
    range.first       = std::stoul(text, &colon);
    range.count       = std::stoul(text + colon + 1);
  }
  return range;
}

struct Comparison {
  std::size_t outputs = 0, tokens = 0, mismatches = 0;

  template <class C>
  void run(const program::PrefilledModel<td::LlamaModel>& model,
           const program::Speculation& speculate, const C& constraint,
           std::span<const td::TokenId> prompt, const td::DecodeOptions& options) {
    const td::Output plain = td::Decoder{model, constraint}(prompt, options);
    const auto compare     = [&](const program::DraftSettings& drafts) {
      INFO(drafts.drafter << ", " << drafts.k << " tokens, temperature " << options.temperature);
      const td::Output drafted = speculate(model, constraint, prompt, options, drafts);
      const bool equal =
          drafted.tokens == plain.tokens && drafted.log_probabilities == plain.log_probabilities &&
          drafted.finish == plain.finish && drafted.forced_tokens == plain.forced_tokens;
      CHECK(equal);
      CHECK(drafted.passes <= plain.passes);
      ++outputs;
      tokens += drafted.tokens.size();
      mismatches += !equal;
    };
    for (const char* drafter : {"forced", "lookup", "forced+lookup"}) {
      compare({.drafter = drafter});
    }
    for (const char* drafter : {"eagle", "medusa", "all"}) {
      // All of the vocabulary, a half, a quarter, an eighth and a sixteenth take turns.
      const std::size_t part = std::size_t{1} << (outputs / 3 % 5);
      compare({.drafter      = drafter,
               .k            = part == 1 ? 0 : model.vocabulary_size() / part,
               .with_context = outputs % 2 == 0});
    }
  }
};

}  // namespace

TEST_CASE("TreeSpeculation on the held-out dialogues gives the plain output") {
  const Range range = asked_range();
  const program::EmbeddedAssistant assistant =
      program::load_embedded(program::example_data("tiny"));
  const program::Speculation speculate{
      assistant, td::FrequencyRanks::load(program::example_data("tiny/ranks.json"))};
  std::vector<program::Row> rows;
  program::LeftOut left_out;
  for (const char* file : {"tiny/heldout.jsonl", "tiny/heldout_many.jsonl"}) {
    program::read_rows(program::example_data(file), 0, rows, left_out);
  }
  const auto ends = assistant.tokenizer.vocabulary().end_tokens();
  const td::Unconstrained any{assistant.model.vocabulary_size(), {ends.begin(), ends.end()}};
  Comparison comparison;
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    const program::Row& row = rows.at(i % rows.size());
    INFO("prompt " << i << ", row " << row.id);
    const bool is_other = i >= rows.size();
    const program::Format& format =
        program::format_named(is_other == (row.format->name == "python") ? "hermes" : "python");
    const td::ToolCallFSM calls(assistant.masks, row.tools, format.format, row.choice);
    const auto prompt =
        program::make_prompt(assistant.tokenizer, row.tools, format.name, row.messages);
    const program::PrefilledModel model{assistant.model, prompt};
    for (const float temperature : {0.0F, 0.7F, 1.0F}) {
      const td::DecodeOptions options{.max_tokens = 120, .temperature = temperature, .seed = i};
      comparison.run(model, speculate, calls, prompt, options);
      comparison.run(model, speculate, any, prompt, options);
    }
  }
  std::cout << range.count << " prompts, " << comparison.outputs << " speculative outputs, "
            << comparison.tokens << " tokens, " << comparison.mismatches << " mismatches\n";
}
