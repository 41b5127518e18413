// One call, decoded several tokens per forward pass; the answer is the plain one, token for token.
//
// Adds: TreeSpeculation. An EAGLE layer drafts a tree over the quarter of the vocabulary that is
// frequent here, the syntax of these calls and the words of this prompt; lookup and forced text add
// what needs no model; the target verifies all of it in one pass, and only what it would have
// written itself is kept.
#include <exception>
#include <iostream>
#include <string>

#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/forced_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/tools/python_call.hpp>

#include <program/answer.hpp>

namespace td = tooldecode;

namespace {

void run() {
  const program::Assistant assistant(program::example_data("tiny"));
  const td::Vocabulary& vocabulary = assistant.tokenizer.vocabulary();
  const td::ToolSet tools          = td::ToolSet::parse(R"([{
    "name": "book_hotel",
    "description": "Book a hotel room.",
    "parameters": {
      "type": "object",
      "properties": {
        "city": {"type": "string"},
        "nights": {"type": "integer", "minimum": 1},
        "breakfast": {"type": "boolean"}
      },
      "required": ["city", "nights", "breakfast"]
    }
  }])");
  const td::ToolCallFSM calls{assistant.masks, tools, td::PythonCall{}, {.whitespace = 0}};

  const auto ranks = td::FrequencyRanks::load(program::example_data("tiny/ranks.json"));
  const auto words = ranks.first(vocabulary.size() / 4).with(calls.structural_tokens());
  const td::FrequencyRankedHead head{assistant.model.lm_head(), words};
  const auto layer =
      td::EagleModel::load(assistant.model, program::example_data("tiny/eagle.safetensors"));
  const td::EagleDrafter eagle{layer, head, {.depth = 6, .width = 4, .context = vocabulary}};
  const td::PromptLookupDrafter lookup{assistant.masks};
  const td::ForcedDrafter forced{
      [&](std::string_view text) { return assistant.tokenizer.encode(text); }};

  const td::Decoder plain{assistant.model, calls};
  const td::Decoder fast{
      assistant.model, calls,
      td::TreeSpeculation{td::DrafterGroup{eagle, lookup, forced}, td::TreeVerifier{td::Walk{}}}};

  const auto prompt = program::make_prompt(
      assistant.tokenizer, tools, "python",
      {{"user", "Please book a hotel in Lisbon for three nights, with breakfast."}});
  for (const float temperature : {0.0F, 1.0F}) {
    const td::DecodeOptions options{.temperature = temperature, .seed = 7};
    const td::Output slow  = plain(prompt, options);
    const td::Output quick = fast(prompt, options);
    std::cout << "temperature " << temperature << ": " << assistant.tokenizer.decode(quick.tokens)
              << "\n  " << (quick.tokens == slow.tokens ? "the same" : "NOT the same")
              << " as plain decoding, in " << quick.passes << " forward passes instead of "
              << slow.passes << "\n  accepted by depth:";
    for (std::size_t depth = 0; depth < quick.drafts.tried.size(); ++depth) {
      std::cout << ' ' << quick.drafts.accepted[depth] << '/' << quick.drafts.tried[depth];
    }
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "03_tree_speculation: " << error.what() << '\n';
    return 1;
  }
}
