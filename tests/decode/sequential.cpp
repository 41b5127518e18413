#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

using Tokens              = std::vector<td::TokenId>;
constexpr std::size_t few = 40;

}  // namespace

TEST_CASE(
    "run_to_end over a cache that has read a part of the prompt writes what Sequential writes") {
  const td::Unconstrained any{few, {7}};
  const td::DecodeOptions options{.max_tokens = 20};
  const td::LogitsPipeline pipeline{options.logits()};
  const Tokens prompt{1, 2, 3, 4};
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{few, {.seed = seed}};
    const td::ModelRef ref{model};
    const td::decode::Run run{any, prompt, pipeline, options};
    td::decode::Sequence sequence{run, options.seed};
    auto cache = ref.make_cache();
    std::vector<float> row(few);
    ref.forward(cache, std::span(prompt).first(2), row);
    sequence.mark_read(2);
    td::decode::run_to_end(ref, cache, sequence);
    const auto expected = td::Sequential{}(model, any, prompt, pipeline, options);
    CHECK(sequence.output().tokens == expected.tokens);
    CHECK(sequence.output().passes == expected.passes);
  }
}

TEST_CASE("run_to_end writes only what is left of each mask") {
  const td::Unconstrained any{few};
  const td::DecodeOptions options{.max_tokens = 20};
  const td::LogitsPipeline pipeline{options.logits()};
  const Tokens prompt{1};
  const RandomModel model{few, {.seed = 1}};
  const td::ModelRef ref{model};
  const td::decode::Run run{any, prompt, pipeline, options};
  td::decode::Sequence sequence{run, options.seed};
  auto cache        = ref.make_cache();
  std::size_t asked = 0;
  td::decode::run_to_end(ref, cache, sequence, [&]() -> td::decode::Sequence::Narrow {
    if (asked++ % 2 == 0) return {};
    return [](td::MaskView mask) {
      mask.clear();
      mask.insert(9);
    };
  });
  const Tokens& tokens = sequence.output().tokens;
  REQUIRE(tokens.size() == options.max_tokens);
  for (std::size_t i = 1; i < tokens.size(); i += 2) CHECK(tokens[i] == 9);
  CHECK(sequence.output().passes == tokens.size() / 2);  // a single token needs none
}

namespace {

constexpr std::size_t size      = 50;
constexpr td::TokenId end_token = 0;

/// A table of allowed tokens per state, some states with one token only; token 0 ends the text
/// where a state is accepting.
class Table {
 public:
  struct State {
    std::int32_t row                                   = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit Table(unsigned seed) {
    std::mt19937 random{seed};
    for (int s = 0; s < 12; ++s) {
      std::vector<int> next(size, -1);
      const std::size_t count = random() % 2 == 0 ? 1 : 1 + random() % 30;
      for (std::size_t i = 0; i < count; ++i) {
        next[1 + random() % (size - 1)] = static_cast<int>(random() % 12);
      }
      rows_.push_back(next);
      accepting_.push_back(random() % 5 == 0);
    }
  }

  std::size_t vocabulary_size() const { return size; }
  State initial() const { return {}; }
  std::optional<State> advance(State state, td::TokenId token) const {
    if (token == end_token) return is_accepting(state) ? std::optional(State{-1}) : std::nullopt;
    if (is_finished(state)) return std::nullopt;
    const int next = rows_[index(state)][static_cast<std::size_t>(token)];
    return next < 0 ? std::nullopt : std::optional(State{next});
  }
  void fill_mask(State state, td::MaskView words) const {
    for (auto& word : words) word = 0;
    for (std::size_t t = 0; t < size; ++t) {
      if (advance(state, static_cast<td::TokenId>(t))) words[t / 32] |= 1U << (t % 32);
    }
  }
  bool is_accepting(State state) const { return is_finished(state) || accepting_[index(state)]; }
  bool is_finished(State state) const { return state == State{-1}; }
  std::string jump_forward(State) const { return {}; }

 private:
  static std::size_t index(State state) { return static_cast<std::size_t>(state.row); }

  std::vector<std::vector<int>> rows_;
  std::vector<bool> accepting_;
};

td::Output decoded(const RandomModel& model, const auto& constraint,
                   const std::vector<td::TokenId>& prompt, const td::DecodeOptions& options) {
  return td::Sequential{}(model, constraint, prompt, td::LogitsPipeline{options.logits()}, options);
}

}  // namespace

TEST_CASE("Sequential decoding at temperature 0 equals a greedy loop") {
  const RandomModel model{size, {.seed = 4}};
  const std::vector<td::TokenId> prompt{5, 6, 7};
  const auto out = decoded(model, td::Unconstrained{size}, prompt, {.max_tokens = 40});

  auto sequence = prompt;
  std::vector<float> row(size);
  for (std::size_t i = 0; i < 40; ++i) {
    auto cache = model.make_cache();
    model.forward(cache, sequence, row);
    std::size_t best = 0;
    double sum       = 0;
    for (std::size_t t = 0; t < size; ++t) {
      if (row[t] > row[best]) best = t;
      sum += std::exp(static_cast<double>(row[t]));
    }
    CHECK(out.tokens[i] == static_cast<td::TokenId>(best));
    CHECK(std::abs(std::exp(out.log_probabilities[i]) -
                   std::exp(static_cast<double>(row[best])) / sum) < 1e-9);
    sequence.push_back(static_cast<td::TokenId>(best));
  }
  CHECK(out.tokens.size() == 40);
  CHECK(out.finish == td::Finish::length);
  CHECK(out.passes == 40);
  CHECK(out.forced_tokens == 0);
}

TEST_CASE("Sequential decoding with a seed continues from its own output as one run") {
  const RandomModel model{size, {.seed = 5}};
  const td::Unconstrained any{size};
  td::DecodeOptions options{.max_tokens = 30, .temperature = 0.8F, .seed = 11};
  const auto whole = decoded(model, any, {1, 2}, options);
  std::vector<td::TokenId> prompt{1, 2};
  prompt.insert(prompt.end(), whole.tokens.begin(), whole.tokens.begin() + 12);
  options.max_tokens = 18;
  const auto rest    = decoded(model, any, prompt, options);
  CHECK(rest.tokens == std::vector(whole.tokens.begin() + 12, whole.tokens.end()));
  options.seed = 12;
  CHECK(decoded(model, any, prompt, options).tokens != rest.tokens);
}

TEST_CASE("Sequential decoding ends after the token for which ends_after is true") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const Table table{seed};
    const RandomModel model{size, {.seed = seed}};
    td::DecodeOptions options{.max_tokens = 20, .temperature = 1.3F, .seed = seed};
    const auto whole = decoded(model, table, {1, 2}, options);
    for (std::size_t last = 0; last < whole.tokens.size(); ++last) {
      std::vector<td::TokenId> asked, heard;
      options.on_token   = [&](const td::TokenEvent& event) { heard.push_back(event.token); };
      options.ends_after = [&](const td::TokenEvent& event) {
        REQUIRE(event.index == asked.size());
        asked.push_back(event.token);
        return event.index == last;
      };
      const auto out = decoded(model, table, {1, 2}, options);
      REQUIRE(out.finish == td::Finish::stopped);  // also where it could not continue
      REQUIRE(out.tokens ==
              std::vector(whole.tokens.begin(),
                          whole.tokens.begin() + static_cast<std::ptrdiff_t>(last) + 1));
      REQUIRE(asked == out.tokens);
      REQUIRE(heard == out.tokens);
    }
    options.on_token   = {};
    options.ends_after = [](const td::TokenEvent&) { return false; };
    CHECK(decoded(model, table, {1, 2}, options).finish == whole.finish);
  }
}

TEST_CASE("Sequential decoding with skip_forced changes the number of passes only") {
  std::size_t spared = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const Table table{seed};
    const RandomModel model{size, {.seed = seed}};
    td::DecodeOptions options{.max_tokens         = seed % 37,
                              .temperature        = seed % 2 == 0 ? 0.0F : 1.3F,
                              .top_p              = seed % 3 == 0 ? 0.8F : 1.0F,
                              .repetition_penalty = 1.1F,
                              .bias               = {{3, -1e6F}},
                              .seed               = seed};
    if (seed % 5 == 0) options.bias[0].second = -std::numeric_limits<float>::infinity();
    const auto fast     = decoded(model, table, {1}, options);
    options.skip_forced = false;
    const auto slow     = decoded(model, table, {1}, options);
    CHECK(fast.tokens == slow.tokens);
    CHECK(fast.log_probabilities == slow.log_probabilities);
    CHECK(fast.finish == slow.finish);
    CHECK(slow.forced_tokens == 0);
    CHECK(slow.passes >= slow.tokens.size());
    CHECK(slow.passes <= slow.tokens.size() + 1);
    CHECK(fast.passes <= slow.passes);
    CHECK(fast.passes + fast.forced_tokens <= slow.passes);
    spared += fast.forced_tokens;

    Table::State state = table.initial();
    for (const td::TokenId token : fast.tokens) {
      CHECK(token != end_token);
      const auto next = table.advance(state, token);
      REQUIRE(next);
      state = *next;
    }
    if (fast.finish == td::Finish::end) CHECK(table.is_accepting(state));
  }
  CHECK(spared > 500);
}

TEST_CASE(
    "Sequential decoding ends at end tokens of the constraint or options and leaves them out") {
  const RandomModel model{size, {.seed = 6}};
  const auto free        = decoded(model, td::Unconstrained{size}, {1}, {.max_tokens = 20});
  const td::TokenId stop = free.tokens[9];
  std::vector<td::TokenId> until;
  for (const td::TokenId token : free.tokens) {
    if (token == stop) break;
    until.push_back(token);
  }
  for (const auto& out :
       {decoded(model, td::Unconstrained{size, {stop}}, {1}, {.max_tokens = 20}),
        decoded(model, td::Unconstrained{size}, {1}, {.max_tokens = 20, .end_tokens = {stop}})}) {
    CHECK(out.tokens == until);
    CHECK(out.finish == td::Finish::end);
    CHECK(out.passes == until.size() + 1);
  }
}

TEST_CASE("Sequential decoding ignores an end token of the options where the text may not end") {
  // Tokens 1, 2, 1, 2, ...: forced, and never accepting.
  struct Alternating {
    using State = int;
    std::size_t vocabulary_size() const { return size; }
    State initial() const { return 1; }
    std::optional<State> advance(State state, td::TokenId token) const {
      return token == state ? std::optional(3 - state) : std::nullopt;
    }
    void fill_mask(State state, td::MaskView words) const {
      for (auto& word : words) word = 0;
      words[0] = 1U << state;
    }
    bool is_accepting(State) const { return false; }
    bool is_finished(State) const { return false; }
    std::string jump_forward(State) const { return {}; }
  };
  const RandomModel model{size};
  const auto out = decoded(model, Alternating{}, {9}, {.max_tokens = 5, .end_tokens = {2}});
  CHECK(out.tokens == std::vector<td::TokenId>{1, 2, 1, 2, 1});
  CHECK(out.passes == 0);
  CHECK(out.forced_tokens == 5);
}

TEST_CASE("Sequential decoding allows an end token of the options exactly where the text may end") {
  // Tokens 1, 2, 1, 2, ...: the text may end after each 2, but the constraint has no end token.
  struct Pairs {
    using State = int;
    std::size_t vocabulary_size() const { return size; }
    State initial() const { return 1; }
    std::optional<State> advance(State state, td::TokenId token) const {
      return token == (state == 2 ? 2 : 1) ? std::optional(state == 2 ? 3 : 2) : std::nullopt;
    }
    void fill_mask(State state, td::MaskView words) const {
      for (auto& word : words) word = 0;
      words[0] = state == 2 ? 4U : 2U;
    }
    bool is_accepting(State state) const { return state == 3; }
    bool is_finished(State) const { return false; }
    std::string jump_forward(State) const { return {}; }
  };
  const RandomModel model{size};
  for (const td::TokenId stop : {td::TokenId{7}, td::TokenId{1}}) {
    td::DecodeOptions options{.max_tokens = 9,
                              .bias       = {{stop, 50.0F}},
                              .end_tokens = {-1, stop, static_cast<td::TokenId>(size), 1 << 30}};
    const auto out = decoded(model, Pairs{}, {9}, options);
    CHECK(out.tokens == std::vector<td::TokenId>{1, 2});  // a stop of 1 is text before them
    CHECK(out.finish == td::Finish::end);
    CHECK(out.end_token == stop);
    options.end_tokens.clear();
    const auto endless = decoded(model, Pairs{}, {9}, options);
    CHECK(endless.tokens.size() == 9);
    CHECK(endless.finish == td::Finish::length);
    CHECK_FALSE(endless.end_token);
  }
}

TEST_CASE("Sequential decoding under a bias that forbids all allowed tokens ends as stuck") {
  const RandomModel model{size};
  td::DecodeOptions options{.max_tokens = 5};
  for (td::TokenId t = 0; t < static_cast<td::TokenId>(size); ++t) {
    options.bias.emplace_back(t, -std::numeric_limits<float>::infinity());
  }
  const auto out = decoded(model, td::Unconstrained{size}, {9}, options);
  CHECK(out.tokens.empty());
  CHECK(out.finish == td::Finish::stuck);
}

TEST_CASE("Sequential decoding with NaN or infinite logits conforms to the constraint") {
  const auto distortions = {
      +[](float, std::size_t) { return std::numeric_limits<float>::quiet_NaN(); },
      +[](float, std::size_t) { return -std::numeric_limits<float>::infinity(); },
      +[](float logit, std::size_t t) {
        return t % 2 == 0 ? std::numeric_limits<float>::infinity() : logit;
      },
      +[](float logit, std::size_t) { return logit * 1e38F; }};
  for (const auto distort : distortions) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Table table{seed};
      const RandomModel model{size, {.seed = seed, .distort = distort}};
      const auto out = decoded(model, table, {1},
                               {.max_tokens = 30, .temperature = seed % 2 == 0 ? 0.0F : 0.01F});
      CHECK((out.finish == td::Finish::end || out.finish == td::Finish::length));
      Table::State state = table.initial();
      for (const td::TokenId token : out.tokens) {
        const auto next = table.advance(state, token);
        REQUIRE(next);
        state = *next;
      }
    }
  }
}

TEST_CASE("Sequential decoding reports every token once, in order") {
  const Table table{3};
  const RandomModel model{size};
  std::vector<td::TokenEvent> events;
  const auto out = decoded(
      model, table, {1},
      {.max_tokens = 30, .on_token = [&](const td::TokenEvent& e) { events.push_back(e); }});
  REQUIRE(events.size() == out.tokens.size());
  std::size_t forced = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].token == out.tokens[i]);
    CHECK(events[i].index == i);
    CHECK(events[i].log_probability == out.log_probabilities[i]);
    forced += events[i].forced;
  }
  CHECK(forced == out.forced_tokens);
}

TEST_CASE("find_only_token finds the only token of a mask in any word") {
  CHECK(td::decode::find_only_token(std::vector{0U, 8U, 0U}) == 35);
  CHECK(td::decode::find_only_token(std::vector{0x80000000U}) == 31);
  CHECK_FALSE(td::decode::find_only_token(std::vector{1U, 8U}));
  CHECK_FALSE(td::decode::find_only_token(std::vector{9U}));
  CHECK_FALSE(td::decode::find_only_token(std::vector{0U, 0U}));
}
