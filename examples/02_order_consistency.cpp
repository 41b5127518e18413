// Decodes one call under several orders of its parameters and takes a majority vote on each value.
//
// Adds: OrderConsistencySampler around a Decoder. Required keys are inserted, not generated, the
// orders run side by side after one prompt, and equal values count as equal however they are
// written.
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>

#include <tooldecode/decode.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

namespace {

std::string shown(const td::Choice& choice) {
  return choice.value ? choice.value->text() : "left out";
}

void run(const std::filesystem::path& directory) {
  const auto model              = td::LlamaModel::load(directory);
  const td::Tokenizer tokenizer = td::load_tokenizer(directory);
  const td::ToolSet tools       = td::ToolSet::parse(R"([{
    "name": "rent_car",
    "description": "Rent a car.",
    "parameters": {
      "type": "object",
      "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "start_date": {"type": "string"},
        "insurance": {"type": "boolean"}
      },
      "required": ["city", "days", "start_date"]
    }
  }])");
  const auto prompt             = tokenizer.encode(
      "<|begin|><|tools|>format: python\n"
                  "rent_car(city: string, days: integer, start_date: string, insurance?: boolean): Rent a car.\n"
                  "<|user|>Please rent a car for five days in Lisbon from Friday on.<|assistant|>",
      {.parse_special = true});

  //! [consistency]
  const td::ToolCallFSM calls{tokenizer.vocabulary(), tools, td::PythonCall{}};
  const td::OrderConsistencySampler consistent{model, calls, {.max_orders = 6, .adaptive = false}};
  const td::Consensus answer = consistent(prompt);

  std::cout << tokenizer.decode(answer.output.tokens) << "\n\n";
  for (const td::CallVote& call : answer.calls) {
    for (const td::Candidate& candidate : call.candidates) {
      std::cout << "order " << candidate.order << ':';
      for (const td::CandidateValue& value : candidate.values) {
        std::cout << "  " << value.key << '=' << value.value.text();
      }
      std::cout << '\n';
    }
    std::cout << '\n';
    for (const td::ParameterVote& vote : call.parameters) {
      std::cout << std::left << std::setw(12) << vote.key;
      for (const td::Choice& choice : vote.choices) {
        std::cout << "  " << shown(choice) << " (" << choice.votes << ')';
      }
      std::cout << '\n';
    }
  }
  //! [consistency]
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/tiny");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "02_order_consistency: " << error.what() << '\n';
    return 1;
  }
}
