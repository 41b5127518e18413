// The cost of a constraint: building it, its first mask, later masks and advancing, over shared
// tools.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/thread_pool.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/files.hpp>
#include <program/run_record.hpp>

namespace {

using namespace tooldecode;
using Json  = tooldecode::JsonValue;
using Clock = std::chrono::steady_clock;

std::string read_shared(const char* relative) {
  const char* root                 = std::getenv("TOOLDECODE_SHARED_DATA");
  const std::filesystem::path path = (root != nullptr ? root : "../shared/data");
  try {
    return program::read_file(path / relative);
  } catch (const Error& error) {
    std::fprintf(stderr, "needs shared data: %s (set TOOLDECODE_SHARED_DATA)\n", error.what());
    std::exit(1);
  }
}

// One function and one call, as its canonical tokens.
struct Case {
  ToolSet tools;
  std::vector<TokenId> tokens;
};

struct World {
  World()
      : tokenizer(parse_tokenizer(read_shared("vocab/qwen2.json.gz"), "qwen2")),
        cache(tokenizer.vocabulary()) {
    std::istringstream lines(read_shared("bfcl/simple_python.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json row = tooldecode::text::parse_json(line);
      if (row.value("call_valid", false) == false) continue;
      const std::vector<ToolCall> calls{
          {row["call_json"]["name"].get<std::string>(), row["call_json"]["arguments"]}};
      cases.push_back({ToolSet::from_json(row["functions"]),
                       tokenizer.encode(JsonCall::hermes().write(calls))});
    }
    // Verified before it is timed: each canonical call passes its own constraint.
    TokenMask mask(tokenizer.vocabulary().size());
    for (const Case& one : cases) {
      const ToolCallFSM calls{
          cache, one.tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
      auto state = calls.initial();
      for (const TokenId token : one.tokens) {
        calls.fill_mask(state, mask.words());
        const auto next = calls.advance(state, token);
        if (!next || !mask.contains(token))
          std::fprintf(stderr, "a canonical call is refused\n"), std::exit(1);
        state = *next;
      }
      if (!calls.is_accepting(state))
        std::fprintf(stderr, "a canonical call cannot end\n"), std::exit(1);
    }
  }
  Tokenizer tokenizer;
  VocabularyIndex cache;
  std::vector<Case> cases;
};

const World& world() {
  static const World all;
  return all;
}

double microseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void report(benchmark::State& state, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const double value : values) total += value;
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  state.counters["mean_us"] = total / static_cast<double>(values.size());
  state.counters["p50_us"]  = at(0.5);
  state.counters["p99_us"]  = at(0.99);
}

// The trie of 151,936 tokens: once per vocabulary.
void vocabulary(benchmark::State& state) {
  const World& all = world();
  for (auto _ : state) benchmark::DoNotOptimize(VocabularyIndex(all.tokenizer.vocabulary()));
}
BENCHMARK(vocabulary)->Unit(benchmark::kMillisecond)->Iterations(5);

// From a tool document to the first mask, in a vocabulary in which no string has been masked yet.
void first_in_vocabulary(benchmark::State& state) {
  const World& all = world();
  TokenMask mask(all.tokenizer.vocabulary().size());
  std::vector<double> times;
  for (auto _ : state) {
    const VocabularyIndex fresh(all.tokenizer.vocabulary());
    const auto start = Clock::now();
    const ToolCallFSM calls{
        fresh, all.cases[0].tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
    auto at = calls.initial();
    for (const TokenId token : all.cases[0].tokens) {
      calls.fill_mask(at, mask.words());
      at = *calls.advance(at, token);
    }
    times.push_back(microseconds(start));
  }
  report(state, times);
}
BENCHMARK(first_in_vocabulary)->Unit(benchmark::kMillisecond)->Iterations(5);

void build(benchmark::State& state) {
  const World& all = world();
  std::vector<double> times;
  for (auto _ : state) {
    for (const Case& one : all.cases) {
      const auto start = Clock::now();
      const ToolCallFSM calls{
          all.cache, one.tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
      times.push_back(microseconds(start));
    }
  }
  report(state, times);
}
BENCHMARK(build)->Unit(benchmark::kMillisecond)->Iterations(5);

void build_and_first_mask(benchmark::State& state) {
  const World& all = world();
  TokenMask mask(all.tokenizer.vocabulary().size());
  std::vector<double> times;
  for (auto _ : state) {
    for (const Case& one : all.cases) {
      const auto start = Clock::now();
      const ToolCallFSM calls{
          all.cache, one.tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
      calls.fill_mask(calls.initial(), mask.words());
      times.push_back(microseconds(start));
    }
  }
  report(state, times);
}
BENCHMARK(build_and_first_mask)->Unit(benchmark::kMillisecond)->Iterations(5);

// Masks and advances along a call. `cold`: each function's states are visited for the first time;
// `prepared`: the masks were prepared for 20 ms, as while a prompt is read; `warm`: as for the
// second call of a request.
enum class Visit { cold, prepared, warm };
void along_calls(benchmark::State& state, Visit visit, bool masks) {
  const World& all = world();
  TokenMask mask(all.tokenizer.vocabulary().size());
  std::vector<double> times;
  for (auto _ : state) {
    const VocabularyIndex fresh(all.tokenizer.vocabulary());
    for (const Case& one : all.cases) {
      const ToolCallFSM calls{
          fresh, one.tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
      if (visit == Visit::prepared) {
        std::atomic<bool> is_over = false;
        std::thread idle([&] { (void)calls.prepare(calls.initial(), {.cancelled = &is_over}); });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        is_over = true;
        idle.join();
      }
      for (int pass = visit == Visit::warm ? 0 : 1; pass < 2; ++pass) {
        auto at = calls.initial();
        for (const TokenId token : one.tokens) {
          const auto start = Clock::now();
          calls.fill_mask(at, mask.words());
          const double filled = microseconds(start);
          const auto middle   = Clock::now();
          at                  = *calls.advance(at, token);
          const double moved  = microseconds(middle);
          if (pass == 1) times.push_back(masks ? filled : moved);
        }
      }
    }
  }
  report(state, times);
}
BENCHMARK_CAPTURE(along_calls, mask_cold, Visit::cold, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_calls, mask_prepared, Visit::prepared, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(along_calls, mask_warm, Visit::warm, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_calls, advance_cold, Visit::cold, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_calls, advance_warm, Visit::warm, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

// Masks along a sentence and a call, where both text and calls may be written: calls of one format,
// or of all that models of its family fall back to.
void along_answers(benchmark::State& state, const char* formats, Visit visit) {
  const World& all              = world();
  const formats::AnyFormat form = format_set(formats).format;
  TokenMask mask(all.tokenizer.vocabulary().size());
  std::vector<double> times;
  for (auto _ : state) {
    const VocabularyIndex fresh(all.tokenizer.vocabulary());
    for (const Case& one : all.cases) {
      const ToolCallFSM calls{fresh, one.tools, form, {.choice = ToolChoice::automatic}};
      std::vector<TokenId> tokens = all.tokenizer.encode("I will look that up for you.\n");
      tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
      for (int pass = visit == Visit::warm ? 0 : 1; pass < 2; ++pass) {
        auto at = calls.initial();
        for (const TokenId token : tokens) {
          const auto start = Clock::now();
          calls.fill_mask(at, mask.words());
          if (pass == 1) times.push_back(microseconds(start));
          at = *calls.advance(at, token);
        }
      }
    }
  }
  report(state, times);
}
BENCHMARK_CAPTURE(along_answers, one_cold, "hermes", Visit::cold)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_answers, family_cold, "auto:qwen", Visit::cold)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_answers, one_warm, "hermes", Visit::warm)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);
BENCHMARK_CAPTURE(along_answers, family_warm, "auto:qwen", Visit::warm)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(5);

// The lower bound of a mask: writing V bits.
void copy_of_a_mask(benchmark::State& state) {
  const std::size_t words = mask_word_count(world().tokenizer.vocabulary().size());
  std::vector<std::uint32_t> from(words, 7), to(words);
  for (auto _ : state) {
    std::copy(from.begin(), from.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(8 * words));
}
BENCHMARK(copy_of_a_mask);

// One step of 256 sequences, each in its own place of its own call, by two threads: every row
// written, only what differs from the step before, and what copying the rows takes.
enum class Rows { filled, updated, copied };
void batch_of_256(benchmark::State& state, Rows rows) {
  constexpr std::size_t count = 256;
  const World& all            = world();
  const std::size_t words     = mask_word_count(all.tokenizer.vocabulary().size());
  std::vector<ToolCallFSM> calls;
  std::vector<ToolCallFSM::State> states;
  std::vector<std::size_t> at;
  const auto tokens_of = [&](std::size_t i) -> const std::vector<TokenId>& {
    return all.cases[i % all.cases.size()].tokens;
  };
  for (std::size_t i = 0; i < count; ++i) {
    calls.emplace_back(all.cache, all.cases[i % all.cases.size()].tools, JsonCall::hermes(),
                       ChoiceOptions{.choice = ToolChoice::required});
    states.push_back(calls[i].initial());
    at.push_back(0);
  }
  const auto step = [&](std::size_t i) {
    const std::vector<TokenId>& tokens = tokens_of(i);
    const bool is_over                 = at[i] == tokens.size();
    states[i] = is_over ? calls[i].initial() : *calls[i].advance(states[i], tokens[at[i]]);
    at[i]     = is_over ? 0 : at[i] + 1;
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t steps = 7 * i % tokens_of(i).size(); steps > 0; --steps) step(i);
  }
  std::vector<std::uint32_t> masks(count * words), from(8 * words, 7);
  const auto row = [&](std::size_t i) {
    return MaskView(std::span(masks).subspan(i * words, words));
  };
  std::vector<ToolCallFSM::State> shown(count);
  ThreadPool other(1);
  std::vector<double> times;
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) step(i);
    const auto start = Clock::now();
    other(count, [&](std::size_t i) {
      switch (rows) {
        case Rows::filled:
          return calls[i].constraint().fill_mask(states[i], row(i));
        case Rows::updated:
          return calls[i].constraint().update_mask(shown[i], states[i], row(i));
        case Rows::copied:
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i % 8 * words), words,
                      masks.begin() + static_cast<std::ptrdiff_t>(i * words));
      }
    });
    times.push_back(microseconds(start));
    shown = states;
  }
  report(state, times);
}
BENCHMARK_CAPTURE(batch_of_256, filled, Rows::filled)->Iterations(2000);
BENCHMARK_CAPTURE(batch_of_256, updated, Rows::updated)->Iterations(2000);
BENCHMARK_CAPTURE(batch_of_256, copied, Rows::copied)->Iterations(2000);

// Keeps what the console shows: microseconds per call, by benchmark name.
class Keeper : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    benchmark::ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      Json& entry = microseconds_[run.run_name.function_name];
      if (run.counters.find("mean_us") == run.counters.end()) {
        entry = {{"mean", 1e6 * run.cpu_accumulated_time / static_cast<double>(run.iterations)}};
        continue;
      }
      for (const char* what : {"mean", "p50", "p99"}) {
        entry[what] = run.counters.at(std::string(what) + "_us").value;
      }
    }
  }
  [[nodiscard]] const Json& microseconds() const { return microseconds_; }

 private:
  Json microseconds_ = Json::object();
};

}  // namespace

int main(int argc, char** argv) {
  std::string path;  // --json FILE, which Google Benchmark does not know
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) != "--json") continue;
    path = argv[i + 1];
    std::copy(argv + i + 2, argv + argc, argv + i);
    argc -= 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Keeper keeper;
  benchmark::RunSpecifiedBenchmarks(&keeper);
  if (path.empty()) return 0;
  const Json record = program::run_record();
  std::ofstream file(path);
  file << Json{{"made_by", record}, {"microseconds", keeper.microseconds()}}.text({.indent = 1})
       << '\n';
  if (file.flush()) return 0;
  std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  return 1;
}
