// The ways to decode that are compared, the prompts, and what a way took for one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>

namespace fr_spec {

using Json = tooldecode::JsonValue;

struct TreeShape {
  std::size_t depth, width, budget;
  double min_probability;
};
// EAGLE-2's, as the paper has it (section 4.1).
inline constexpr TreeShape paper_tree{.depth = 6, .width = 10, .budget = 60, .min_probability = 0};

struct Options {
  std::string model, eagle, eagle3, medusa, prompts, corpus, json, plots;
  // Answers that are known already are followed by the paper's trees; those that are paid for are as
  // large as pays, within this.
  TreeShape tree{.depth = 6, .width = 6, .budget = 30, .min_probability = 0.01};
  std::size_t limit = 0, timed = 4, max_tokens = 64;
  double temperature = 0, minutes = 0;
  std::vector<std::size_t> rows{0, 32'768, 16'384, 12'288, 8'192, 4'096};
};

struct Prompt {
  std::string domain;
  std::vector<tooldecode::TokenId> tokens;
  Json functions;         // null: free text
  std::size_t place = 0;  // within its domain
};

enum class Layer { none, eagle, eagle3, medusa };

struct Way {
  std::string name;
  Layer layer       = Layer::none;
  std::size_t k     = 0;      // rows of the draft's head, 0 for all (EAGLE-3: all of its own)
  bool with_context = false;  // and those of the prompt's tokens
  bool with_text    = false;  // lookup and forced text beside the layer
  bool chooses_rows = false;  // K by what pays
  bool has_own_head = true;   // of 8-bit rows; else the target's, as the paper's drafts have it

  [[nodiscard]] bool drafts() const { return layer != Layer::none || with_text; }
};

// What a way took for one prompt, which target and layer have read before: what the layer takes for
// that is in `reading` alone.
struct Run {
  std::size_t tokens = 0, passes = 0, rounds = 0, drafted = 0;
  double seconds = 0, target = 0, drafting = 0, layer = 0, head = 0, reading = 0;
  bool differs = false;
};

// One prompt's runs, by ways.
struct Measured {
  std::vector<Run> replayed, timed;  // timed: empty where only some prompts are
  std::vector<std::size_t> covered;  // of the answer's tokens, by Options::rows; then all
  std::size_t near_ties = 0;
};

inline std::string name_of(const char* layer, std::size_t k, std::size_t vocabulary) {
  if (k == 0) return std::string(layer) + ", K = V";
  if (4 * k == vocabulary) return std::string(layer) + ", K = V/4";
  return std::string(layer) + ", K = " + std::to_string(k / 1024) + "k";
}

// Replayed answers show how long accepted drafts are, with trees of one size.
inline std::vector<Way> replayed_ways(const Options& options, std::size_t vocabulary) {
  std::vector<Way> ways{{.name = "none"}, {.name = "lookup, forced", .with_text = true}};
  for (const std::size_t k : options.rows) {
    const std::string name = name_of("EAGLE", k, vocabulary);
    ways.push_back({.name = name, .layer = Layer::eagle, .k = k});
    if (k == 0) continue;
    ways.push_back(
        {.name = name + ", context", .layer = Layer::eagle, .k = k, .with_context = true});
  }
  ways.push_back({.name         = "EAGLE, K = V/4, context, lookup, forced",
                  .layer        = Layer::eagle,
                  .k            = vocabulary / 4,
                  .with_context = true,
                  .with_text    = true});
  if (!options.eagle3.empty())
    ways.push_back({.name = "EAGLE-3, its own rows", .layer = Layer::eagle3});
  for (const std::size_t k : options.rows) {
    if (options.medusa.empty()) break;
    ways.push_back({.name = name_of("Medusa", k, vocabulary), .layer = Layer::medusa, .k = k});
  }
  return ways;
}

// Timed ones choose how much they draft; the first is plain decoding.
inline std::vector<Way> timed_ways(const Options& options, std::size_t vocabulary) {
  std::vector<Way> ways{
      {.name = "plain"},
      {.name = "lookup, forced", .with_text = true},
      {.name = "EAGLE, the target's head", .layer = Layer::eagle, .has_own_head = false}};
  for (const std::size_t k : options.rows)
    ways.push_back({.name = name_of("EAGLE", k, vocabulary), .layer = Layer::eagle, .k = k});
  ways.push_back({.name = "EAGLE, K chosen", .layer = Layer::eagle, .chooses_rows = true});
  ways.push_back({.name         = "EAGLE, K = V/4, context, lookup, forced",
                  .layer        = Layer::eagle,
                  .k            = vocabulary / 4,
                  .with_context = true,
                  .with_text    = true});
  if (!options.eagle3.empty())
    ways.push_back({.name = "EAGLE-3, its own rows", .layer = Layer::eagle3});
  if (options.medusa.empty()) return ways;
  for (const std::size_t k : {std::size_t{0}, vocabulary / 4})
    ways.push_back({.name = name_of("Medusa", k, vocabulary), .layer = Layer::medusa, .k = k});
  return ways;
}

}  // namespace fr_spec
