// The fuzz targets without libFuzzer: seeded mutations of fixtures, under every build.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <fuzz/mutate.hpp>
#include <fuzz/seeds.hpp>
#include <nlohmann/json.hpp>
#include <support/catch.hpp>

// Each target's entry point; the build gives every one a name of its own.
extern "C" {
int fuzz_json_schema(const std::uint8_t* data, std::size_t size);
int fuzz_regex(const std::uint8_t* data, std::size_t size);
int fuzz_grammar_text(const std::uint8_t* data, std::size_t size);
int fuzz_call_text(const std::uint8_t* data, std::size_t size);
int fuzz_tokenizer_files(const std::uint8_t* data, std::size_t size);
int fuzz_tool_documents(const std::uint8_t* data, std::size_t size);
int fuzz_chat_requests(const std::uint8_t* data, std::size_t size);
}

namespace {

using namespace tooldecode;
using Target = int (*)(const std::uint8_t*, std::size_t);

// The seeds as they are, then mutations: of JSON every second one by nodes, the others by bytes.
void replay(Target target, const fuzz::Seeds& seeds, unsigned mutations) {
  const auto run = [&](const std::string& text) {
    INFO(nlohmann::json(text)
             .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
             .substr(0, 2000));
    CHECK(target(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()) == 0);
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

TEST_CASE("Mutated schemas give an Error or a machine") {
  replay(fuzz_json_schema, fuzz::schema_seeds(), 200);
}
TEST_CASE("Mutated patterns give an Error or a machine") {
  replay(fuzz_regex, fuzz::pattern_seeds(), 300);
}
TEST_CASE("Mutated grammars give an Error or a machine") {
  replay(fuzz_grammar_text, fuzz::grammar_seeds(), 1000);
}
TEST_CASE("Mutated calls and values give an Error or what reads back") {
  replay(fuzz_call_text, fuzz::call_seeds(), 500);
}
TEST_CASE("Mutated tokenizer files give an Error or a tokenizer") {
  replay(fuzz_tokenizer_files, fuzz::tokenizer_seeds(), 400);
}
TEST_CASE("Mutated tool documents give an Error or tools") {
  replay(fuzz_tool_documents, fuzz::document_seeds(), 300);
}
TEST_CASE("Mutated chat requests give an error for the client or a chat") {
  replay(fuzz_chat_requests, fuzz::chat_seeds(), 600);
}

TEST_CASE("The seeds as folders of files in ./corpus, for libFuzzer", "[.corpus]") {
  const auto write = [](const std::string& target, const fuzz::Seeds& seeds) {
    const auto folder = std::filesystem::path("corpus") / target;
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
    }
  };
  write("json_schema", fuzz::schema_seeds());
  write("regex", fuzz::pattern_seeds());
  write("grammar_text", fuzz::grammar_seeds());
  write("call_text", fuzz::call_seeds());
  write("tokenizer_files", fuzz::tokenizer_seeds());
  write("tool_documents", fuzz::document_seeds());
  write("chat_requests", fuzz::chat_seeds());
}
