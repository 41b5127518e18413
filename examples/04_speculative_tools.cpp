// A tool that runs while the model still writes its call, and an engine that goes on over the
// result.
//
// Adds: ToolExecutor, ClientSpeculator, ToolCache, EngineSpeculator. Tools are slow; a guess at the
// next call is quick. What the guess is right about has been running for as long as the model took,
// and what it is wrong about changes nothing: only tools that say they are read-only are guessed
// at.
#include <exception>
#include <future>
#include <iostream>
#include <stop_token>
#include <string>
#include <vector>

#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/tools/python_call.hpp>

#include <program/answer.hpp>

namespace td = tooldecode;

namespace {

using Prompt = std::vector<td::TokenId>;

void run() {
  const program::Assistant assistant(program::example_data("tiny"));
  const td::ToolSet tools = td::ToolSet::parse(R"([
    {"name": "get_weather", "description": "Weather forecast for a city.",
     "inputSchema": {"type": "object", "properties": {"city": {"type": "string"},
                     "days": {"type": "integer", "minimum": 1, "default": 3}},
                     "required": ["city"]},
     "annotations": {"readOnlyHint": true}},
    {"name": "book_table", "description": "Reserve a table at a restaurant.",
     "inputSchema": {"type": "object", "properties": {"restaurant": {"type": "string"},
                     "guests": {"type": "integer", "minimum": 1}},
                     "required": ["restaurant", "guests"]}}
  ])");
  const td::ToolCallFSM calls{assistant.masks, tools, td::PythonCall{}, {.whitespace = 0}};
  const auto ask = [&](const std::string& question) {
    return program::make_prompt(assistant.tokenizer, tools, "python", {{"user", question}});
  };

  // The client's side. A real guess is a small model's; this one believes that it is always about
  // the weather in Oslo. The main model waits for it here, so that every run prints the same.
  std::promise<void> guessed;
  td::ToolExecutor executor{[&](const td::ToolCall& call, std::stop_token) {
                              if (call.name == "get_weather") guessed.set_value();
                              return "done: " + call.canonical_text();
                            },
                            tools};
  const td::Decoder decode{assistant.model, calls};
  td::ClientSpeculator<Prompt> speculate{
      {.main =
           [&](const Prompt& prompt, std::stop_token) {
             guessed.get_future().wait();
             const std::string text = assistant.tokenizer.decode(decode(prompt).tokens);
             return td::Reply{text, calls.parse(text)};
           },
       .speculators = {[](const Prompt&, std::stop_token) {
         return td::Reply{"", {{"get_weather", {{"city", "Oslo"}}}}};
       }}},
      executor,
      {.policy = td::SpeculationPolicy{tools}}};
  for (const char* question :
       {"What is the weather in Oslo?", "Please book a table for two at Roma."}) {
    guessed                   = {};
    const td::ClientTurn turn = speculate(ask(question));
    std::cout << question << "\n  " << turn.reply.text << '\n';
    for (const td::ToolResult& result : turn.results) std::cout << "  " << result.output << '\n';
    std::cout << "  started early " << turn.counts.started << ", of use " << turn.counts.hits
              << ", wasted " << turn.counts.wasted << '\n';
  }

  // The engine's side: the client has put the guessed call's result into the engine's cache. The
  // call is verified as a draft, and the sequence stays in the batch and reads the result.
  const td::ToolCall guess{"get_weather", {{"city", "Oslo"}}};
  td::ToolCache cache;
  guessed                   = {};
  const td::Execution early = executor.start(guess);
  const auto answer         = [&](const std::string& id) {
    td::EngineSpeculator engine{assistant.model, &cache, [&](auto made, auto results) {
                                  return program::result_tokens(assistant.tokenizer, made, results);
                                }};
    td::EngineReply reply;
    engine.submit({.id        = id,
                           .prompt    = ask("What is the weather in Oslo?"),
                           .calls     = calls,
                           .options   = {.max_tokens = 40},
                           .max_turns = 2},
                          {.on_reply = [&](td::EngineReply done) { reply = std::move(done); }});
    engine.run();
    std::cout << id << ": " << reply.turns.size() << " turn(s) in the engine, the call in "
              << reply.turns[0].output.passes << " forward passes\n";
    return reply.turns[0].output.tokens;
  };
  std::cout << "What is the weather in Oslo?\n  ";
  const auto plain = answer("without a cached result");
  cache.insert("with one", {guess, executor.key(guess), early.result()});
  std::cout << "  ";
  const auto cached = answer("with one");
  std::cout << "  the calls are " << (plain == cached ? "" : "NOT ") << "the same\n";
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "04_speculative_tools: " << error.what() << '\n';
    return 1;
  }
}
