#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/research/beam_search.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::OneByOne;
using td::test::RandomModel;

namespace {

using Tokens          = std::vector<td::TokenId>;
constexpr double none = -std::numeric_limits<double>::infinity();

/// A random machine over few tokens. Token 0 ends a text that may end; state 0 is entered by text
/// and is its own end; a state may have no way forward except its end, or none at all.
class Machine {
 public:
  struct State {
    int row                                            = 1;
    friend bool operator==(const State&, const State&) = default;
  };
  static constexpr std::size_t size = 5;

  explicit Machine(unsigned seed) {
    std::mt19937 random{seed};
    for (int s = 0; s < 6; ++s) {
      std::vector<int> next(size, -1);
      const std::size_t count = random() % 3 == 0 ? 1 : random() % size;
      for (std::size_t i = 0; i < count; ++i) {
        next[1 + random() % (size - 1)] = static_cast<int>(random() % 6);
      }
      next_.push_back(next);
      accepting_.push_back(random() % 3 == 0);
    }
  }

  std::size_t vocabulary_size() const { return size; }
  State initial() const { return {}; }
  std::optional<State> advance(State state, td::TokenId token) const {
    if (token == 0) return is_accepting(state) ? std::optional(State{0}) : std::nullopt;
    const int next = is_finished(state) ? -1 : next_[index(state)][static_cast<std::size_t>(token)];
    return next < 0 ? std::nullopt : std::optional(State{next});
  }
  void fill_mask(State state, td::MaskView words) const {
    words[0] = 0;
    for (std::size_t t = 0; t < size; ++t) {
      if (advance(state, static_cast<td::TokenId>(t))) words[0] |= 1U << t;
    }
  }
  bool is_accepting(State state) const { return is_finished(state) || accepting_[index(state)]; }
  bool is_finished(State state) const { return state == State{0}; }
  std::string jump_forward(State) const { return {}; }

 private:
  static std::size_t index(State state) { return static_cast<std::size_t>(state.row); }

  std::vector<std::vector<int>> next_;
  std::vector<bool> accepting_;
};
static_assert(td::ConstraintPolicy<Machine>);

/// An answer, whole or not yet.
struct Answer {
  Tokens tokens;
  double sum         = 0;
  std::size_t length = 0;
  Machine::State state{};
  bool ended = false;

  double score(double penalty) const {
    return sum / std::pow(static_cast<double>(std::max<std::size_t>(length, 1)), penalty);
  }
};

/// Log-probabilities of what a machine allows after a prompt and some tokens, by the definition.
std::vector<double> distribution(const RandomModel& model, const Machine& machine, Tokens sequence,
                                 Machine::State state) {
  std::vector<float> row(Machine::size);
  auto cache = model.make_cache();
  model.forward(cache, sequence, row);
  std::vector<double> result(Machine::size, none);
  double sum = 0;
  for (std::size_t t = 0; t < Machine::size; ++t) {
    if (machine.advance(state, static_cast<td::TokenId>(t))) {
      sum += std::exp(static_cast<double>(row[t]));
    }
  }
  for (std::size_t t = 0; t < Machine::size; ++t) {
    if (machine.advance(state, static_cast<td::TokenId>(t))) {
      result[t] = static_cast<double>(row[t]) - std::log(sum);
    }
  }
  return result;
}

/// Every continuation of an answer by one token.
std::vector<Answer> continuations(const RandomModel& model, const Machine& machine,
                                  const Tokens& prompt, const Answer& from) {
  Tokens sequence = prompt;
  sequence.insert(sequence.end(), from.tokens.begin(), from.tokens.end());
  const auto log_probabilities = distribution(model, machine, sequence, from.state);
  std::vector<Answer> result;
  for (std::size_t t = 0; t < Machine::size; ++t) {
    if (log_probabilities[t] == none) continue;
    Answer next = from;
    next.sum += log_probabilities[t];
    ++next.length;
    next.state = *machine.advance(from.state, static_cast<td::TokenId>(t));
    next.ended = machine.is_finished(next.state);
    if (t != 0) next.tokens.push_back(static_cast<td::TokenId>(t));
    result.push_back(next);
  }
  return result;
}

/// Every answer of at most `depth` tokens.
void enumerate(const RandomModel& model, const Machine& machine, const Tokens& prompt,
               const Answer& from, std::size_t depth, std::vector<Answer>& answers) {
  if (from.ended || from.length == depth) {
    answers.push_back(from);
    return;
  }
  for (const Answer& next : continuations(model, machine, prompt, from)) {
    enumerate(model, machine, prompt, next, depth, answers);
  }
}

/// The best of some answers: one that ends, if any does.
std::optional<Answer> best_of(const std::vector<Answer>& answers, double penalty) {
  std::optional<Answer> best;
  for (const Answer& answer : answers) {
    if (!best || std::pair(answer.ended, answer.score(penalty)) >
                     std::pair(best->ended, best->score(penalty))) {
      best = answer;
    }
  }
  return best;
}

/// A beam search without caches, masks or an early end.
std::optional<Answer> plain_search(const RandomModel& model, const Machine& machine,
                                   const Tokens& prompt, const td::BeamSearch& settings,
                                   std::size_t depth) {
  std::vector<Answer> beams{{}}, done;
  for (std::size_t step = 0; step < depth; ++step) {
    std::vector<Answer> all;
    for (const Answer& beam : beams) {
      for (Answer& next : continuations(model, machine, prompt, beam)) {
        all.push_back(std::move(next));
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Answer& a, const Answer& b) { return a.sum > b.sum; });
    if (all.size() > settings.width) all.resize(settings.width);
    beams.clear();
    for (const Answer& answer : all) (answer.ended ? done : beams).push_back(answer);
  }
  done.insert(done.end(), beams.begin(), beams.end());
  return best_of(done, settings.length_penalty);
}

void check_answer(const td::Output& out, const std::optional<Answer>& best) {
  if (!best) {
    CHECK(out.finish == td::Finish::stuck);
    return;
  }
  CHECK(out.tokens == best->tokens);
  CHECK(out.finish == (best->ended ? td::Finish::end : td::Finish::length));
  double sum = 0;
  for (const double log_probability : out.log_probabilities) sum += log_probability;
  if (best->length == best->tokens.size()) CHECK(std::abs(sum - best->sum) < 1e-4);
}

td::Output decoded(const auto& strategy, const auto& model, const auto& constraint,
                   const Tokens& prompt, const td::DecodeOptions& options) {
  return td::Decoder{model, constraint, strategy}(prompt, options);
}

}  // namespace

TEST_CASE("BeamSearch with a very large width finds the best of all answers") {
  std::size_t whole = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Machine machine{seed};
    const RandomModel model{Machine::size, {.seed = seed, .spread = 2.0F}};
    const Tokens prompt{1, 2};
    const std::size_t depth = 1 + seed % 5;
    const double penalty    = std::vector{-1.5, 0.0, 0.6, 1.0, 2.0}[seed / 5 % 5];
    INFO("seed " << seed << ", depth " << depth << ", length penalty " << penalty);
    std::vector<Answer> answers;
    enumerate(model, machine, prompt, {}, depth, answers);
    const auto best = best_of(answers, penalty);
    const auto out  = decoded(td::BeamSearch{.width = 5000, .length_penalty = penalty}, model,
                              machine, prompt, {.max_tokens = depth});
    check_answer(out, best);
    CHECK(out.passes <= depth);
    whole += best && best->ended && answers.size() > 5;
  }
  CHECK(whole > 50);
}

TEST_CASE("BeamSearch with few beams finds what a plain search without early stopping finds") {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const Machine machine{seed};
    const RandomModel model{Machine::size, {.seed = seed}};
    const Tokens prompt{3};
    const std::size_t depth = 3 + seed % 12;
    const td::BeamSearch beams{
        .width          = 1 + seed % 4,
        .length_penalty = std::vector{-1.0, -0.3, 0.0, 0.7, 1.0, 3.0}[seed / 4 % 6]};
    INFO("seed " << seed << ", depth " << depth << ", width " << beams.width << ", length penalty "
                 << beams.length_penalty);
    const auto out =
        decoded(beams, model, machine, prompt, {.max_tokens = depth, .skip_forced = false});
    check_answer(out, plain_search(model, machine, prompt, beams, depth));
  }
}

TEST_CASE("BeamSearch stops when no beam can be better than the best answer") {
  // Token 0 ends the text and is by far the likeliest.
  const RandomModel model{40, {.seed = 3, .distort = +[](float logit, std::size_t t) {
                                 return t == 0 ? 6.0F : logit;
                               }}};
  const td::Unconstrained any{40, {0}};
  const auto passes = [&](double penalty) {
    const td::BeamSearch beams{.width = 3, .length_penalty = penalty};
    return decoded(beams, model, any, {1}, {.max_tokens = 30}).passes;
  };
  // The first answer is the end alone, of probability p. A beam of probability q < p stays worse
  // where the length does not count or counts against it, but not where it counts for it.
  CHECK(passes(0) == 1);
  CHECK(passes(-1) == 1);
  CHECK(passes(3) == 30);
}

TEST_CASE("BeamSearch with one beam decodes greedily") {
  const auto distortions = {
      +[](float logit, std::size_t) { return logit; },
      +[](float, std::size_t) { return std::numeric_limits<float>::quiet_NaN(); },
      +[](float logit, std::size_t) { return std::round(logit); },
      +[](float logit, std::size_t) { return logit * 1e38F; }};
  std::size_t forced = 0;
  for (const auto distort : distortions) {
    for (unsigned seed = 0; seed < 150; ++seed) {
      INFO("seed " << seed);
      const Machine machine{seed};
      const RandomModel model{Machine::size, {.seed = seed, .distort = distort}};
      td::DecodeOptions options{.max_tokens         = seed % 20,
                                .top_k              = seed % 3,
                                .repetition_penalty = 1.2F,
                                .bias               = {{3, -1.0F}},
                                .end_tokens         = {2},
                                .skip_forced        = seed % 2 == 0};
      if (seed % 5 == 0) options.bias[0].second = -std::numeric_limits<float>::infinity();
      const auto greedy = decoded(td::Sequential{}, model, machine, {1}, options);
      for (const double penalty : {-2.0, 1.0}) {
        const td::BeamSearch beam{.width = 1, .length_penalty = penalty};
        const auto out = decoded(beam, model, machine, {1}, options);
        CHECK(out.tokens == greedy.tokens);
        CHECK(out.log_probabilities == greedy.log_probabilities);
        CHECK(out.finish == greedy.finish);
        CHECK(out.passes == greedy.passes);
        CHECK(out.forced_tokens == greedy.forced_tokens);
      }
      forced += greedy.forced_tokens;
    }
  }
  CHECK(forced > 300);
}

TEST_CASE("BeamSearch with skip_forced gives the same beams in no more passes") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const Machine machine{seed};
    const RandomModel model{Machine::size, {.seed = seed}};
    const td::BeamSearch beams{.width = 2 + seed % 3};
    td::DecodeOptions options{.max_tokens = 12};
    const auto fast     = decoded(beams, model, machine, {1}, options);
    options.skip_forced = false;
    const auto slow     = decoded(beams, model, machine, {1}, options);
    CHECK(fast.tokens == slow.tokens);
    CHECK(fast.log_probabilities == slow.log_probabilities);
    CHECK(fast.finish == slow.finish);
    CHECK(fast.passes <= slow.passes);
    CHECK(slow.forced_tokens == 0);
  }
}

TEST_CASE("BeamSearch gives the same beams in one pass as one by one") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    const td::LlamaModel model = td::test::random_llama(seed);
    const OneByOne<td::LlamaModel> single{model};
    static_assert(!td::BatchModel<OneByOne<td::LlamaModel>>);
    const td::Unconstrained any{model.vocabulary_size(), {7, 8, 9}};
    const td::BeamSearch beams{.width = 5, .length_penalty = 0.5};
    const Tokens prompt{1, 2, 3, 4};
    const auto batched  = decoded(beams, model, any, prompt, {.max_tokens = 20});
    const auto separate = decoded(beams, single, any, prompt, {.max_tokens = 20});
    CHECK(batched.tokens == separate.tokens);
    CHECK(batched.log_probabilities == separate.log_probabilities);
    CHECK(batched.passes <= 20);
    CHECK(separate.passes > batched.passes);

    // The log-probabilities are those that the tokens have when they are read in one go.
    Tokens sequence = prompt;
    for (std::size_t i = 0; i < batched.tokens.size(); ++i) {
      auto cache = model.make_cache();
      std::vector<float> row(model.vocabulary_size());
      model.forward(cache, sequence, row);
      CHECK(batched.log_probabilities[i] ==
            static_cast<double>(row[static_cast<std::size_t>(batched.tokens[i])]) -
                td::log_sum_exp(row));
      sequence.push_back(batched.tokens[i]);
    }
  }
}

TEST_CASE("BeamSearch ends at the context length, and orders equal beams by their tokens") {
  const RandomModel model{4, {.distort = +[](float, std::size_t) { return 0.0F; }}};
  const td::Unconstrained any{4};
  const td::BeamSearch beams{.width = 2};
  const auto out = decoded(beams, model, any, {1}, {.max_tokens = 3});
  CHECK(out.tokens == Tokens{0, 0, 0});
  CHECK(out.finish == td::Finish::length);

  auto config           = td::test::random_llama_config();
  config.context_length = 8;
  const td::LlamaModel small{config, td::test::random_llama_weights(config, 1)};
  const auto cut = decoded(beams, small, td::Unconstrained{small.vocabulary_size()}, {1, 2, 3}, {});
  CHECK(cut.finish == td::Finish::context);
  CHECK(cut.tokens.size() == 6);
  CHECK(decoded(beams, model, any, {1}, {.max_tokens = 0}).finish == td::Finish::length);
}

TEST_CASE("BeamSearch refuses settings that it cannot have and names them") {
  const RandomModel model{4};
  const td::Unconstrained any{4};
  const auto failure = [&](const td::BeamSearch& beams, const td::DecodeOptions& options) {
    try {
      static_cast<void>(decoded(beams, model, any, {1}, options));
    } catch (const td::Error& error) {
      return std::string(name(error.code())) + " " + error.what();
    }
    return std::string("none");
  };
  CHECK(failure({.width = 0}, {}) == "invalid_option width 0: must be 1 or more");
  CHECK(failure({.length_penalty = std::nan("")}, {}) ==
        "invalid_option length_penalty nan: must be from -10 to 10");
  CHECK(failure({.length_penalty = 11}, {}) ==
        "invalid_option length_penalty 11: must be from -10 to 10");
  CHECK(failure({}, {.temperature = 0.5F}) ==
        "invalid_option temperature 0.5: must be 0 for a beam search");
  CHECK(failure({}, {.max_tokens = 2}) == "none");
}

TEST_CASE("BeamSearch reports the tokens of the best beam once") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    const Machine machine{seed};
    const RandomModel model{Machine::size, {.seed = seed}};
    std::vector<td::TokenEvent> events;
    const auto out = decoded(td::BeamSearch{}, model, machine, {1},
                             {.max_tokens = 9,
                              .on_token   = [&](const td::TokenEvent& e) { events.push_back(e); },
                              .likeliest  = Machine::size});
    REQUIRE(events.size() == out.tokens.size());
    REQUIRE(out.likeliest.size() == out.tokens.size());
    std::size_t forced = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      CHECK(events[i].token == out.tokens[i]);
      CHECK(events[i].index == i);
      CHECK(events[i].log_probability == out.log_probabilities[i]);
      CHECK(events[i].likeliest == out.likeliest[i]);
      const td::LikelyToken taken{out.tokens[i], out.log_probabilities[i]};
      CHECK(std::count(out.likeliest[i].begin(), out.likeliest[i].end(), taken) == 1);
      forced += events[i].forced;
    }
    CHECK(forced == out.forced_tokens);
  }
}
