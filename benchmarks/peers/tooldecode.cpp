// Runs tooldecode on the rows of a workload (see contender.py): a new constraint for each row, one
// thread.
//
//   tooldecode tokens ROWS VOCABULARY              writes the rows with the tokens of their texts
//   tooldecode threads ROWS VOCABULARY             masks per second of one thread and of two
//   tooldecode WORKLOAD ROWS VOCABULARY FIRST      measures
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/files.hpp>
#include <program/run_record.hpp>
#include <unistd.h>

namespace {

using namespace tooldecode;
using namespace tooldecode::text;
using namespace tooldecode::tools;
using Json  = tooldecode::JsonValue;
using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

template <class Use>
void for_rows(const std::string& path, Use use) {
  const std::string all = program::read_file(path);
  std::size_t number    = 0;
  for (std::size_t at = 0; at < all.size(); ++number) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    use(number, std::string_view(all).substr(at, end - at));
    at = end + 1;
  }
}

void write_tokens(const std::string& rows, const Tokenizer& tokenizer) {
  for_rows(rows, [&](std::size_t, std::string_view line) {
    Json row = tooldecode::text::parse_json(line);
    for (Json& test : row["tests"]) {
      test["tokens"] = tokenizer.encode(test["text"].get<std::string>());
    }
    std::cout << row.text() << '\n';
  });
}

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Spelling {
  bool documented_order    = true;
  bool every_spelling      = false;  // the suite's texts were not written by a model
  std::uint32_t whitespace = 0;
};
Spelling spelling(std::string_view workload) {
  if (workload == "jsonschemabench" || workload == "test_suite" || workload == "bfcl_default") {
    return {false, workload == "test_suite", SchemaOptions{}.whitespace};
  }
  return {workload != "bfcl_any_order", false, 0};
}

Constraint build_schema(const VocabularyIndex& cache, const std::string& schema,
                        const Spelling& spelling,
                        const std::map<std::string, JsonValue>& documents) {
  return Constraint(cache,
                    Grammar::json_schema(schema, {.documented_order = spelling.documented_order,
                                                  .whitespace       = spelling.whitespace,
                                                  .every_spelling   = spelling.every_spelling,
                                                  .rules            = {.documents = documents}}));
}
ToolLibrary<JsonCall> make_library(const VocabularyIndex& cache, const Spelling& spelling) {
  return ToolLibrary(cache, JsonCall::bare(),
                     {.parallel         = false,
                      .documented_order = spelling.documented_order,
                      .whitespace       = spelling.whitespace});
}

using Text = std::vector<TokenId>;

// Repeats five masks and the four tokens between them.
template <class C>
std::vector<std::int64_t> chains(const C& constraint, const std::vector<Text>& texts) {
  std::vector<std::int64_t> times;
  TokenMask mask(constraint.vocabulary_size());
  for (const Text& text : texts) {
    auto state = constraint.initial();
    for (std::size_t at = 0; at + 4 < text.size(); at += 5) {
      const auto start = Clock::now();
      for (std::size_t i = 0; i < 4; ++i) {
        constraint.fill_mask(state, mask.words());
        state = *constraint.advance(state, text[at + i]);
      }
      constraint.fill_mask(state, mask.words());
      times.push_back(nanoseconds(start));
      state = *constraint.advance(state, text[at + 4]);
    }
  }
  return times;
}

template <class C>
Json jump_forward(const C& constraint, const std::vector<Text>& texts, const Tokenizer& tokenizer) {
  const FastForwardTokens find(constraint.vocabulary_index(),
                               [&](std::string_view text) { return tokenizer.encode(text); });
  std::int64_t asked = 0, right = 0, wrong = 0;
  for (const Text& text : texts) {
    auto state = constraint.initial();
    std::string before;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const std::vector<TokenId> ahead = find(constraint, state, before);
      ++asked;
      right += !ahead.empty() && ahead[0] == text[at];
      wrong +=
          ahead.size() > text.size() - at ||
          !std::equal(ahead.begin(), ahead.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
      state = *constraint.advance(state, text[at]);
      before += tokenizer.decode(std::span(&text[at], 1));
    }
  }
  return {{"asked", asked}, {"right", right}, {"wrong", wrong}};
}

// What has seen the vocabulary, and other rows. States and masks are shared by structure, so chains
// have a separate cache: the measurement of single masks has not visited their states.
struct Engine {
  Engine(const Tokenizer& from, const std::string& workload)
      : tokenizer(&from),
        cache(from.vocabulary()),
        written(spelling(workload)),
        library(make_library(cache, written)),
        chained(workload.starts_with("bfcl") ? std::optional<VocabularyIndex>(from.vocabulary())
                                             : std::nullopt) {}

  const Tokenizer* tokenizer;
  VocabularyIndex cache;
  Spelling written;
  ToolLibrary<JsonCall> library;  // of known tools, if a row replaces one of them
  ToolSet tools;
  std::optional<VocabularyIndex> chained;
};

// Measures a row; `build` makes its constraint on a cache.
template <class Build>
Json measure(const Json& row, const Engine& engine, Build build) {
  const Tokenizer& tokenizer = *engine.tokenizer;
  std::int64_t first         = 0;
  std::vector<std::int64_t> masks, advances;
  std::vector<bool> accepted;
  std::vector<Text> conforming;
  TokenMask mask(tokenizer.vocabulary().size());
  const TokenId end  = tokenizer.vocabulary().end_tokens()[0];
  const auto memory  = resident_bytes();
  auto start         = Clock::now();
  const auto machine = build(engine.cache);
  machine.fill_mask(machine.initial(), mask.words());
  first         = nanoseconds(start);
  bool is_first = true;
  for (const Json& test : row["tests"]) {
    auto tokens = test["tokens"].get<Text>();
    tokens.push_back(end);
    auto state = machine.initial();
    bool fits  = true;
    for (const TokenId token : tokens) {
      if (!is_first) {
        start = Clock::now();
        machine.fill_mask(state, mask.words());
        masks.push_back(nanoseconds(start));
      }
      is_first = false;
      fits     = mask.contains(token);
      if (!fits || token == end) break;
      start           = Clock::now();
      const auto next = machine.advance(state, token);
      advances.push_back(nanoseconds(start));
      fits = next.has_value();
      if (!fits) break;
      state = *next;
    }
    accepted.push_back(fits);
    tokens.pop_back();
    if (fits && test.value("valid", false)) conforming.push_back(std::move(tokens));
  }
  Json result{{"build_first_mask_ns", first},
              {"mask_ns", masks},
              {"advance_ns", advances},
              {"accepted", accepted},
              {"memory_bytes", std::max(std::int64_t{0}, resident_bytes() - memory)}};
  if (engine.chained) {
    result["chain_ns"] = chains(build(*engine.chained), conforming);
    result["forced"]   = jump_forward(machine, conforming, tokenizer);
  }
  return result;
}

Json measure(const Json& row, Engine& engine) {
  try {
    if (row.contains("replaced")) {
      const auto index       = row["replaced"].get<std::size_t>();
      const std::string tool = row["tools"][index].text();
      return measure(row, engine, [&](const VocabularyIndex&) {
        return engine.library.machine(
            std::make_shared<const ToolSet>(engine.tools.with(index, parse_json(tool))),
            ToolChoice::required);
      });
    }
    if (row.contains("tools")) {
      const std::string tools = row["tools"].text();
      if (row.value("untimed", false)) {
        engine.tools = ToolSet::parse(tools);
        return measure(row, engine, [&](const VocabularyIndex&) {
          return engine.library.machine(engine.tools, ToolChoice::required);
        });
      }
      return measure(row, engine, [&](const VocabularyIndex& cache) {
        return make_library(cache, engine.written)
            .machine(std::make_shared<const ToolSet>(ToolSet::parse(tools)), ToolChoice::required);
      });
    }
    const std::string schema = row["schema"].text();
    std::map<std::string, JsonValue> documents;
    if (row.contains("documents")) {
      for (const auto& [uri, document] : row["documents"].items()) documents.emplace(uri, document);
    }
    return measure(row, engine, [&](const VocabularyIndex& cache) {
      return build_schema(cache, schema, engine.written, documents);
    });
  } catch (const Error& error) {
    if (error.code() == Errc::unsatisfiable_schema) return {{"unsatisfiable", error.what()}};
    return {{"refused", std::string(name(error.code())) + ": " + error.what()}};
  }
}

// The time of the clock itself.
std::int64_t overhead() {
  std::vector<std::int64_t> times;
  for (int i = 0; i < 4000; ++i) times.push_back(nanoseconds(Clock::now()));
  std::nth_element(times.begin(), times.begin() + 2000, times.end());
  return times[2000];
}

void run(const std::string& workload, const std::string& rows, const Tokenizer& tokenizer,
         std::size_t first) {
  std::optional<Json> warm;
  for_rows(std::filesystem::path(rows).replace_filename("warm.jsonl"),
           [&](std::size_t, std::string_view line) { warm = tooldecode::text::parse_json(line); });
  const auto start = Clock::now();
  (void)measure(*warm, *std::make_unique<Engine>(tokenizer, "warm"));
  const auto vocabulary_ms = static_cast<double>(nanoseconds(start)) / 1e6;
  Engine engine(tokenizer, workload);
  (void)measure(*warm, engine);
  const std::int64_t nothing = overhead();
  std::cout
      << Json{{"overhead_ns",
               {{"build", nothing}, {"mask", nothing}, {"advance", nothing}, {"chain", nothing}}},
              {"vocabulary_ms", vocabulary_ms}}
      << std::endl;
  for_rows(rows, [&](std::size_t number, std::string_view line) {
    const Json row        = tooldecode::text::parse_json(line);
    const bool is_untimed = row.value("untimed", false);
    if (number < first && !is_untimed) return;
    Json result = measure(row, engine);
    if (is_untimed) result = {{"untimed", true}};
    result["row"] = number;
    std::cout << result.text({.ascii = true}) << std::endl;
  });
}

// Threads walk the calls of the first row's tools through one constraint for one second.
void run_threads(const std::string& rows, const Tokenizer& tokenizer) {
  std::optional<Json> row;
  for_rows(rows, [&](std::size_t number, std::string_view line) {
    if (number == 0) row = tooldecode::text::parse_json(line);
  });
  const ToolCallFSM calls = make_library(VocabularyIndex(tokenizer.vocabulary()), {})
                                .machine(ToolSet::from_json((*row)["tools"]), ToolChoice::required);
  const auto walk = [&](const std::atomic<bool>& stop) {
    TokenMask mask(tokenizer.vocabulary().size());
    std::int64_t masks = 0;
    do {
      for (const Json& test : (*row)["tests"]) {
        if (!test["valid"].get<bool>()) continue;
        auto state = calls.initial();
        for (const Json& token : test["tokens"]) {
          calls.fill_mask(state, mask.words());
          ++masks;
          state = *calls.advance(state, token.get<TokenId>());
        }
      }
    } while (!stop);
    return masks;
  };
  (void)walk(true);
  Json result;
  for (const int count : {1, 2}) {
    std::atomic<bool> stop          = false;
    std::atomic<std::int64_t> masks = 0;
    const auto start                = Clock::now();
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&] { masks += walk(stop); });
    std::this_thread::sleep_for(std::chrono::seconds(2));
    stop = true;
    threads.clear();
    result[std::to_string(count)] =
        static_cast<double>(masks) / (static_cast<double>(nanoseconds(start)) / 1e9);
  }
  std::cout << result << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"record"}) {
    std::cout << program::run_record() << std::endl;
    return 0;
  }
  if (arguments.size() < 3) {
    std::fprintf(stderr, "see benchmarks/peers/run.sh\n");
    return 2;
  }
  try {
    const Tokenizer tokenizer = parse_tokenizer(program::read_file(arguments[2]), arguments[2]);
    if (arguments[0] == "tokens") {
      write_tokens(arguments[1], tokenizer);
    } else if (arguments[0] == "threads") {
      run_threads(arguments[1], tokenizer);
    } else {
      run(arguments[0], arguments[1], tokenizer,
          arguments.size() > 3 ? std::stoul(arguments[3]) : 0);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tooldecode: %s\n", error.what());
    return 2;
  }
}
