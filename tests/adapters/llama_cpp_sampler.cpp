// A sampler in llama.cpp's chains, against its constraint.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp_sampler.hpp>
#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/quiet_llama_cpp.hpp>
#include <support/random_table.hpp>
#include <support/two_tools.hpp>

namespace td = tooldecode;

namespace {

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, FreeSampler>;

// The tokens that a sampler leaves, of all.
std::vector<td::TokenId> left_by(const Sampler& sampler, std::size_t vocabulary_size) {
  std::vector<llama_token_data> data;
  for (std::size_t i = 0; i < vocabulary_size; ++i)
    data.push_back({static_cast<llama_token>(i), 1.0F, 0.0F});
  llama_token_data_array candidates{data.data(), data.size(), -1, false};
  llama_sampler_apply(sampler.get(), &candidates);
  std::vector<td::TokenId> left;
  for (std::size_t i = 0; i < candidates.size; ++i) {
    if (std::isfinite(candidates.data[i].logit)) left.push_back(candidates.data[i].id);
  }
  std::ranges::sort(left);
  return left;
}

// Older interfaces lack this member; then the tokens are accepted again.
template <class One>
void copy_state(const One& from, One& to) {
  if constexpr (requires { from.iface->copy_state; }) {
    from.iface->copy_state(&from, &to);
  } else {
    llama_sampler_accept(&to, 'c');
  }
}

template <td::ConstraintPolicy C>
std::vector<td::TokenId> allowed_by(const C& constraint, const typename C::State& state) {
  td::TokenMask mask(constraint.vocabulary_size());
  constraint.fill_mask(state, mask.words());
  std::vector<td::TokenId> allowed;
  for (std::size_t i = 0; i < constraint.vocabulary_size(); ++i) {
    if (mask.contains(static_cast<td::TokenId>(i))) allowed.push_back(static_cast<td::TokenId>(i));
  }
  return allowed;
}

}  // namespace

TEST_CASE("make_sampler leaves what its constraint allows, also after clone, copy and reset") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto constraint = std::make_shared<const td::test::RandomTable>(90, seed);
    const Sampler sampler(td::llama_cpp::make_sampler(constraint));
    CHECK(std::string(llama_sampler_name(sampler.get())) == "tooldecode");
    auto state = constraint->initial();
    for (int step = 0; step < 20; ++step) {
      const auto allowed = allowed_by(*constraint, state);
      CHECK(left_by(sampler, 100) == allowed);  // a model may have more logits than tokens
      if (allowed.empty()) break;
      const auto token = allowed[random() % allowed.size()];
      const Sampler twin(llama_sampler_clone(sampler.get()));
      llama_sampler_accept(sampler.get(), token);
      CHECK(left_by(twin, 90) == allowed);
      llama_sampler_accept(twin.get(), token);
      CHECK(left_by(twin, 90) == left_by(sampler, 90));
      llama_sampler_reset(twin.get());
      CHECK(left_by(twin, 90) == allowed_by(*constraint, constraint->initial()));
      const auto next = constraint->advance(state, token);
      REQUIRE(next);
      state = *next;
      if (constraint->is_finished(state)) break;
    }
  }
}

TEST_CASE("make_sampler after a token that is not allowed masks nothing until reset") {
  const Sampler sampler(td::llama_cpp::make_sampler(
      td::Constraint(td::VocabularyIndex{td::test::byte_vocabulary()}, td::Grammar::regex("ab*"))));
  const std::size_t size = td::test::byte_vocabulary().size();
  CHECK(left_by(sampler, size) == std::vector<td::TokenId>{'a'});
  llama_sampler_accept(sampler.get(), 'x');
  CHECK(left_by(sampler, size).size() == size);
  llama_sampler_reset(sampler.get());
  CHECK(left_by(sampler, size) == std::vector<td::TokenId>{'a'});
}

TEST_CASE("make_sampler's reset gives up the memory of a constraint that has outgrown its budget") {
  const td::VocabularyIndex vocabulary{td::test::byte_vocabulary(), 1};
  const std::size_t size = vocabulary.vocabulary().size();
  auto constraint = std::make_shared<const td::Constraint>(vocabulary, td::Grammar::regex("ab*c"));
  const std::weak_ptr<const td::Constraint> first = constraint;
  const Sampler sampler(td::llama_cpp::make_sampler(std::move(constraint), {.max_tokens = 5}));
  const Sampler twin(llama_sampler_clone(sampler.get()));
  for (const Sampler* one : {&sampler, &twin}) {
    for (int text = 0; text < 3; ++text) {
      llama_sampler_reset(one->get());
      CHECK(left_by(*one, size) == std::vector<td::TokenId>{'a'});
      llama_sampler_accept(one->get(), 'a');
      CHECK(left_by(*one, size) == std::vector<td::TokenId>{'b', 'c'});
      llama_sampler_accept(one->get(), 'b');
      llama_sampler_accept(one->get(), 'b');
      CHECK(left_by(*one, size) == std::vector<td::TokenId>{'c'});
    }
    CHECK(first.expired() == (one == &twin));
  }
  llama_sampler_accept(sampler.get(), 'c');
  copy_state(*sampler, *twin);
  CHECK(left_by(twin, size) == left_by(sampler, size));
}

TEST_CASE("make_sampler over an automatic tool choice leaves text free until a call begins") {
  const td::VocabularyIndex vocabulary{td::test::byte_vocabulary()};
  const auto tools = td::test::two_tools();
  const auto calls = std::make_shared<const td::ToolCallFSM>(
      vocabulary, tools, td::JsonCall::hermes(),
      td::ChoiceOptions{.choice = td::ToolChoice::automatic});
  const Sampler sampler(td::llama_cpp::make_sampler(calls));
  auto state             = calls->initial();
  const std::string text = "Let me see. <tool_call>\n{\"name\": \"";
  for (const char byte : text) {
    CHECK(left_by(sampler, vocabulary.vocabulary().size()) == allowed_by(*calls, state));
    llama_sampler_accept(sampler.get(), static_cast<unsigned char>(byte));
    state = *calls->advance(state, static_cast<unsigned char>(byte));
  }
  CHECK(left_by(sampler, vocabulary.vocabulary().size()).size() < 5);
}

TEST_CASE("make_sampler with max_tokens ends every text within it") {
  const td::VocabularyIndex vocabulary{td::test::byte_vocabulary()};
  const std::size_t size = vocabulary.vocabulary().size();
  const auto calls       = std::make_shared<const td::ToolCallFSM>(
      vocabulary, td::test::two_tools(), td::JsonCall::hermes(),
      td::ChoiceOptions{.choice = td::ToolChoice::required});
  const auto least = td::Completions{calls->constraint()}.shortest(calls->initial(), 1000);
  REQUIRE(least);
  CHECK_THROWS_AS(td::llama_cpp::make_sampler(calls, {.max_tokens = *least - 1}), td::Error);
  CHECK_THROWS_AS(td::llama_cpp::make_sampler(std::make_shared<const td::test::RandomTable>(90, 1),
                                              {.max_tokens = 50}),
                  td::Error);
  std::size_t at_the_limit = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const std::size_t limit = *least + seed % 20;
    Sampler sampler(td::llama_cpp::make_sampler(calls, {.max_tokens = limit}));
    auto state         = calls->initial();
    std::size_t tokens = 0;
    while (!calls->is_finished(state)) {
      const auto left = left_by(sampler, size);
      REQUIRE_FALSE(left.empty());
      if (tokens % 7 == 3) {
        sampler.reset(llama_sampler_clone(sampler.get()));
        CHECK(left_by(sampler, size) == left);
      }
      const auto token = left[random() % left.size()];
      llama_sampler_accept(sampler.get(), token);
      ++tokens;
      const auto next = calls->advance(state, token);
      REQUIRE(next);
      state = *next;
      if (vocabulary.vocabulary().is_end(token)) break;
    }
    CHECK(calls->is_finished(state));
    CHECK(tokens <= limit);
    at_the_limit += tokens == limit;
  }
  CHECK(at_the_limit > 20);
}

TEST_CASE("make_sampler in a chain chooses the best allowed token") {
  const auto constraint = std::make_shared<const td::test::RandomTable>(90, 4);
  const Sampler chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  llama_sampler_chain_add(chain.get(), td::llama_cpp::make_sampler(constraint));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_greedy());
  std::mt19937 random{4};
  auto state = constraint->initial();
  for (int step = 0; step < 20; ++step) {
    const auto allowed = allowed_by(*constraint, state);
    if (allowed.empty()) break;
    std::vector<llama_token_data> data;
    for (llama_token i = 0; i < 90; ++i)
      data.push_back({i, static_cast<float>(random() % 100'000), 0.0F});
    const auto best = *std::ranges::max_element(allowed, {}, [&](td::TokenId token) {
      return data[static_cast<std::size_t>(token)].logit;
    });
    llama_token_data_array candidates{data.data(), data.size(), -1, false};
    llama_sampler_apply(chain.get(), &candidates);
    REQUIRE(candidates.selected >= 0);
    CHECK(candidates.data[candidates.selected].id == best);
    llama_sampler_accept(chain.get(), best);
    state = *constraint->advance(state, best);
    if (constraint->is_finished(state)) break;
  }
}

namespace {

// A constraint over bytes whose masks and tokens cost too much from some step on.
struct Limited {
  using State          = int;
  td::Vocabulary known = td::test::byte_vocabulary();
  int limit            = 2;

  [[nodiscard]] std::size_t vocabulary_size() const { return known.size(); }
  [[nodiscard]] const td::Vocabulary& vocabulary() const { return known; }
  [[nodiscard]] State initial() const { return 0; }
  [[nodiscard]] bool is_accepting(State) const { return false; }
  [[nodiscard]] bool is_finished(State) const { return false; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }
  [[nodiscard]] std::optional<State> advance(State state, td::TokenId) const {
    if (state > limit) throw td::Error(td::Errc::limit_exceeded, "", "this token takes too long");
    return state + 1;
  }
  void fill_mask(State state, td::MaskView mask) const {
    if (state >= limit) throw td::Error(td::Errc::limit_exceeded, "", "this mask takes too long");
    mask.fill(vocabulary_size());
  }
};
static_assert(td::ConstraintPolicy<Limited>);

}  // namespace

TEST_CASE("make_sampler whose mask or token costs too much leaves the end tokens until reset") {
  const Sampler sampler(td::llama_cpp::make_sampler(Limited{}));
  const td::Vocabulary bytes = td::test::byte_vocabulary();
  const std::size_t size     = bytes.size();
  const std::vector<td::TokenId> ends(bytes.end_tokens().begin(), bytes.end_tokens().end());
  REQUIRE_FALSE(ends.empty());
  for (const bool reads_masks : {true, false}) {
    llama_sampler_reset(sampler.get());
    CHECK(left_by(sampler, size).size() == size);
    for (int i = 0; i < 5; ++i) {
      llama_sampler_accept(sampler.get(), 'a');
      if (reads_masks) CHECK((left_by(sampler, size) == ends) == (i >= 1));
    }
    CHECK(left_by(sampler, size) == ends);
    const Sampler twin(llama_sampler_clone(sampler.get()));
    CHECK(left_by(twin, size) == ends);
  }
}
