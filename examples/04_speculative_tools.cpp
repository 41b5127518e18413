// Runs a tool while its call is still being written, and an engine continues after a cached result.
//
// Adds: ToolExecutor, ClientSpeculator, ToolCache, EngineSpeculator. If a quick guess is right, its
// tool is already running; if it is wrong, nothing changes, because such tools are read-only.
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode.hpp>
#include <tooldecode/execute.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

namespace {

void run(const std::filesystem::path& directory) {
  const auto model              = td::LlamaModel::load(directory);
  const td::Tokenizer tokenizer = td::load_tokenizer(directory);
  const td::ToolSet tools       = td::ToolSet::parse(R"([
    {"name": "get_weather", "description": "Weather forecast for a city.",
     "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}},
                     "required": ["city"]}, "annotations": {"readOnlyHint": true}},
    {"name": "book_table", "description": "Reserve a table at a restaurant.",
     "inputSchema": {"type": "object", "properties": {"restaurant": {"type": "string"},
       "guests": {"type": "integer", "minimum": 1}}, "required": ["restaurant", "guests"]}}])");
  const td::ToolCallFSM calls{tokenizer.vocabulary(), tools, td::PythonCall{}};
  const std::string head =
      "<|begin|><|tools|>format: python\nget_weather(city: string): Weather forecast for a city.\n"
      "book_table(restaurant: string, guests: integer): Reserve a table at a restaurant.\n<|user|>";
  const auto tokens = [&](const std::string& text) {
    return tokenizer.encode(text + "<|assistant|>", {.parse_special = true});
  };
  const td::ToolCall guess{"get_weather", {{"city", "Oslo"}}};  // from a small model in production

  //! [client]
  std::promise<void> guessed;  // the model waits for it, so that every run prints the same
  td::ToolExecutor executor{[&](const td::ToolCall& call, std::stop_token) {
                              if (call.name == "get_weather") guessed.set_value();
                              return "done: " + call.canonical_text();
                            },
                            tools};
  const auto ask_model = [&](const auto& prompt, std::stop_token) {
    guessed.get_future().wait();
    const std::string text =
        tokenizer.vocabulary().answer_text(td::Decoder{model, calls}(prompt).tokens);
    return td::Reply{text, calls.parse(text)};
  };
  const auto ask_quickly = [&](const auto&, std::stop_token) { return td::Reply{"", {guess}}; };
  td::ClientSpeculator<std::vector<td::TokenId>> speculate{
      {ask_model, {ask_quickly}}, executor, {.policy = td::SpeculationPolicy{tools}}};
  for (const char* question : {"What is the weather in Oslo?", "Book a table for two at Roma."}) {
    guessed                   = {};
    const td::ClientTurn turn = speculate(tokens(head + question));
    std::cout << question << "\n  " << turn.reply.text << '\n';
    for (const td::ToolResult& result : turn.results) std::cout << "  " << result.output << '\n';
    std::cout << "  started early " << turn.counts.started << ", used " << turn.counts.hits
              << ", wasted " << turn.counts.wasted << '\n';
  }
  //! [client]

  //! [engine]
  td::ToolCache cache;  // cached calls are verified as drafts and their results are read at once
  td::EngineSpeculator engine{model, &cache, [&](auto, auto results) {
                                return tokens("<|end|><|user|>" + results[0].output);
                              }};
  const auto prompt = tokens(head + "What is the weather in Oslo?");
  const auto answer = [&](const std::string& id) {
    td::EngineReply reply;
    engine.submit({.id = id, .prompt = prompt, .calls = calls, .max_turns = 2},
                  {.on_reply = [&](td::EngineReply done) { reply = std::move(done); }});
    engine.run();
    std::cout << id << ": " << reply.turns.size() << " turn(s) in the engine, the call in "
              << reply.turns[0].output.passes << " forward passes\n";
    return reply.turns[0].output.tokens;
  };
  guessed                   = {};
  const td::Execution early = executor.start(guess);
  early.result().wait();  // otherwise the sequence waits for it
  cache.insert("with one", {guess, executor.key(guess), early.result()});
  const auto plain = answer("without a cached result");
  std::cout << (answer("with one") == plain ? "the same call\n" : "NOT the same call\n");
  //! [engine]
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/tiny");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "04_speculative_tools: " << error.what() << '\n';
    return 1;
  }
}
