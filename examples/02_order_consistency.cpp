// One call, decoded under several orders of its parameters; each value is put to the vote.
//
// Adds: OrderConsistencySampler around a Decoder. Required keys are supplied and not generated, the
// orders run side by side over one prompt, and equal values count as equal however they are
// written.
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/tools/python_call.hpp>

#include <program/answer.hpp>

namespace td = tooldecode;

namespace {

std::string shown(const td::Choice& choice) {
  return choice.value ? choice.value->dump() : "left out";
}

void run() {
  const program::Assistant assistant(program::example_data("tiny"));
  const td::ToolSet tools = td::ToolSet::parse(R"([{
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
  const td::ToolCallFSM calls{assistant.masks, tools, td::PythonCall{}};
  const td::Decoder decode{assistant.model, calls};

  const td::OrderConsistencySampler consistent{decode, {.max_orders = 6, .adaptive = false}};
  const auto prompt =
      program::make_prompt(assistant.tokenizer, tools, "python",
                           {{"user", "Please rent a car for five days in Lisbon from Friday on."}});
  const td::Consensus answer = consistent(prompt);

  std::cout << assistant.tokenizer.decode(answer.output.tokens) << "\n\n";
  for (const td::CallVote& call : answer.calls) {
    for (const td::Candidate& candidate : call.candidates) {
      std::cout << "order " << candidate.order << ':';
      for (const td::CandidateValue& value : candidate.values) {
        std::cout << "  " << value.key << '=' << value.value.dump();
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
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "02_order_consistency: " << error.what() << '\n';
    return 1;
  }
}
