// The fuzz targets without libFuzzer: seeded mutations of fixtures, in every build.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include <fuzz/mutate.hpp>
#include <fuzz/targets.hpp>
#include <nlohmann/json.hpp>
#include <program/completions.hpp>
#include <program/formats.hpp>
#include <program/openai.hpp>
#include <program/responses.hpp>
#include <support/catch.hpp>

namespace {

using namespace tooldecode;

// Runs the seeds unchanged, then mutations: every second mutation of JSON by nodes, the others by
// bytes.
void replay(std::string_view name, unsigned mutations) {
  const fuzz::Target& target = *fuzz::find_target(name);
  const fuzz::Seeds seeds    = target.seeds();
  const auto run             = [&](const std::string& text) {
    INFO(nlohmann::json(text)
                         .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                         .substr(0, 2000));
    CHECK(target.run(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()) == 0);
  };
  for (const std::string& text : seeds) run(text);
  for (unsigned seed = 0; seed < mutations; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::string& text  = seeds[random() % seeds.size()];
    const std::string& other = seeds[random() % seeds.size()];
    const auto a             = nlohmann::ordered_json::parse(text, nullptr, false);
    const auto b             = nlohmann::ordered_json::parse(other, nullptr, false);
    if (seed % 2 == 0 || a.is_discarded() || b.is_discarded()) {
      run(fuzz::mutate_text(text, other, random));
    } else {
      run(fuzz::mutate_json(a, b, random).dump());
    }
  }
}

}  // namespace

TEST_CASE("Mutated schemas give an Error or a constraint") {
  replay("json_schema", 200);
}
TEST_CASE("Mutated patterns give an Error or an automaton") {
  replay("regex", 300);
}
TEST_CASE("Mutated grammars give an Error or an automaton") {
  replay("grammar_text", 1000);
}
TEST_CASE("Mutated Lark grammars give an Error or an automaton") {
  replay("lark_text", 600);
}
TEST_CASE("Mutated structural tags give an Error or a constraint") {
  replay("structural_tag", 1000);
}
TEST_CASE("Mutated calls and values give an Error or read back the same after writing") {
  replay("call_text", 500);
}
TEST_CASE("Mutated tokenizer files give an Error or a tokenizer") {
  replay("tokenizer_files", 400);
}
TEST_CASE("Mutated model files give an Error or a model") {
  replay("model_files", 1000);
}
TEST_CASE("Mutated tool documents give an Error or tools") {
  replay("tool_documents", 300);
}
TEST_CASE("Mutated chat requests give a client error or a chat") {
  replay("chat_requests", 600);
}

// Mutations of what a parser refuses at once would test nothing.
TEST_CASE("Each parser of chat requests takes some seeds whole") {
  const program::Format& format = program::format_named("hermes");
  std::size_t dialogues = 0, items = 0, texts = 0, tokens = 0;
  for (const std::string& text : fuzz::find_target("chat_requests")->seeds()) {
    INFO(text);
    const program::Json body = program::parse_exact_body(text);
    if (body.contains("messages")) {
      dialogues += program::parse_chat(body, format, 1000).messages.size();
    } else if (body.contains("input")) {
      items += program::parse_response(body, format, 1000).messages.size();
    } else if (body.contains("prompt")) {
      const auto prompt = *program::parse_completion(body, format, 1000).prompt;
      texts += prompt.text.size();
      tokens += prompt.tokens.size();
    }
  }
  CHECK(dialogues >= 8);
  CHECK(items >= 5);  // what is said to the system may be within other messages
  CHECK(texts == 5);
  CHECK(tokens == 6);
}

TEST_CASE("Seeds are written to folders in ./corpus for libFuzzer", "[.corpus]") {
  for (const fuzz::Target& target : fuzz::targets) {
    const auto folder = std::filesystem::path("corpus") / target.name;
    std::filesystem::create_directories(folder);
    std::size_t number = 0;
    for (const std::string& text : target.seeds()) {
      std::ofstream(folder / std::to_string(number++), std::ios::binary) << text;
    }
  }
}
