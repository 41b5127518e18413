// The compared ways to decode, and the measurements of a way for a prompt.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fr_spec {

struct TreeShape {
  std::size_t depth, width, budget;
  double min_probability;
};
// EAGLE-2's tree with the paper's settings (section 4.1).
inline constexpr TreeShape paper_tree{.depth = 6, .width = 10, .budget = 60, .min_probability = 0};

struct Options {
  std::string model, eagle, eagle3, medusa, prompts, corpus, json, plots;
  // Replayed answers use the paper's tree; timed ones use trees as large as pays off, within this
  // one.
  TreeShape tree{.depth = 6, .width = 6, .budget = 30, .min_probability = 0.01};
  std::size_t limit = 0, timed = 4, max_tokens = 64;
  double temperature = 0, minutes = 0;
  std::vector<std::size_t> rows{0, 32'768, 16'384, 12'288, 8'192, 4'096};
};

enum class Layer { none, eagle, eagle3, medusa };

struct Way {
  std::string name;
  Layer layer       = Layer::none;
  std::size_t k     = 0;      // rows of the draft's head, 0 for all (EAGLE-3: all of its own)
  bool with_context = false;  // plus the rows of the prompt's tokens
  bool with_text    = false;  // lookup and jump-forward strings beside the layer
  bool chooses_rows = false;  // K as large as pays off
  bool has_own_head = true;   // 8-bit rows; else the target's head, as in the paper

  [[nodiscard]] bool drafts() const { return layer != Layer::none || with_text; }
};

// A way's measurements for one prompt. Target and layer have read the prompt before; the layer's
// time for this is only in `reading`.
struct Run {
  std::size_t tokens = 0, passes = 0, rounds = 0, drafted = 0;
  double seconds = 0, target = 0, drafting = 0, layer = 0, head = 0, reading = 0;
  bool differs = false;
};

struct Measured {
  std::vector<Run> replayed, timed;  // timed is empty for prompts that are not timed
  std::vector<std::size_t> covered;  // of the answer's tokens, by Options::rows; then all
  std::size_t near_ties = 0;
};

inline std::string name_of(const char* layer, std::size_t k, std::size_t vocabulary) {
  if (k == 0) return std::string(layer) + ", K = V";
  if (4 * k == vocabulary) return std::string(layer) + ", K = V/4";
  return std::string(layer) + ", K = " + std::to_string(k / 1024) + "k";
}

// Replayed answers measure acceptance, with trees of one size.
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

// Timed ways choose how much they draft; the first is plain decoding.
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
