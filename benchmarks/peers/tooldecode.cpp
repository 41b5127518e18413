// tooldecode over the rows of a workload, see common.py: a new constraint for each schema, one
// thread.
//
//   tooldecode tokens ROWS VOCABULARY              writes the rows with the tokens of their texts
//   tooldecode WORKLOAD ROWS VOCABULARY FIRST      measures
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace {

using namespace tooldecode;
using Json  = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string read_all(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw Error(Errc::file_unreadable, path, "cannot be opened");
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (int n; (n = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  gzclose(file);
  return text;
}

std::int64_t nanoseconds(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Calls `use` with each row and its number.
template <class Use>
void for_rows(const std::string& path, Use use) {
  const std::string all = read_all(path);
  std::size_t number    = 0;
  for (std::size_t at = 0; at < all.size(); ++number) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    use(number, std::string_view(all).substr(at, end - at));
    at = end + 1;
  }
}

void write_tokens(const std::string& rows, const Tokenizer& tokenizer) {
  for_rows(rows, [&](std::size_t, std::string_view line) {
    Json row = Json::parse(line);
    for (Json& test : row["tests"]) {
      test["tokens"] = tokenizer.encode(test["text"].get<std::string>());
    }
    std::cout << row.dump() << '\n';
  });
}

struct Times {
  std::int64_t first = 0;
  std::vector<std::int64_t> masks, advances;
};

Json measure(const Json& row, const MaskCache& cache, const SchemaOptions& options) {
  const std::string schema = row["schema"].dump();
  Times times;
  std::vector<bool> accepted;
  TokenMask mask(cache.vocabulary().size());
  const TokenId end = cache.vocabulary().end_tokens()[0];
  try {
    auto start            = Clock::now();
    const auto constraint = JsonSchemaConstraint::parse(cache, schema, options);
    constraint.fill_mask(constraint.initial(), mask.words());
    times.first   = nanoseconds(start);
    bool is_first = true;
    for (const Json& test : row["tests"]) {
      auto tokens = test["tokens"].get<std::vector<TokenId>>();
      tokens.push_back(end);
      auto state = constraint.initial();
      bool fits  = true;
      for (const TokenId token : tokens) {
        if (!is_first) {
          start = Clock::now();
          constraint.fill_mask(state, mask.words());
          times.masks.push_back(nanoseconds(start));
        }
        is_first = false;
        fits     = mask.contains(token);
        if (!fits || token == end) break;
        start           = Clock::now();
        const auto next = constraint.advance(state, token);
        times.advances.push_back(nanoseconds(start));
        fits = next.has_value();
        if (!fits) break;
        state = *next;
      }
      accepted.push_back(fits);
    }
  } catch (const Error& error) {
    return {{"refused", std::string(name(error.code())) + ": " + error.what()}};
  }
  return {{"build_first_mask_ns", times.first},
          {"mask_ns", times.masks},
          {"advance_ns", times.advances},
          {"accepted", accepted}};
}

// What the clock itself takes.
std::int64_t overhead() {
  std::vector<std::int64_t> times;
  for (int i = 0; i < 4000; ++i) times.push_back(nanoseconds(Clock::now()));
  std::nth_element(times.begin(), times.begin() + 2000, times.end());
  return times[2000];
}

void run(const std::string& workload, const std::string& rows, const Tokenizer& tokenizer,
         std::size_t first) {
  const bool free_spacing = workload == "jsonschemabench";
  const SchemaOptions options{.documented_order = workload == "bfcl",
                              .whitespace       = free_spacing ? SchemaOptions{}.whitespace : 0};
  std::optional<Json> warm;
  for_rows(std::filesystem::path(rows).replace_filename("warm.jsonl"),
           [&](std::size_t, std::string_view line) { warm = Json::parse(line); });
  const auto start = Clock::now();
  const MaskCache cache(tokenizer.vocabulary());
  (void)measure(*warm, cache, options);
  const auto vocabulary_ms   = static_cast<double>(nanoseconds(start)) / 1e6;
  const std::int64_t nothing = overhead();
  std::cout << Json{{"overhead_ns", {{"build", nothing}, {"mask", nothing}, {"advance", nothing}}},
                    {"vocabulary_ms", vocabulary_ms}}
            << std::endl;
  for_rows(rows, [&](std::size_t number, std::string_view line) {
    if (number < first) return;
    Json result   = measure(Json::parse(line), cache, options);
    result["row"] = number;
    std::cout << result.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3) {
    std::fprintf(stderr, "see benchmarks/peers/run.sh\n");
    return 2;
  }
  try {
    const Tokenizer tokenizer = parse_tokenizer(read_all(arguments[2]), arguments[2]);
    if (arguments[0] == "tokens") {
      write_tokens(arguments[1], tokenizer);
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
