#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa.hpp>

#include <support/catch.hpp>
#include <support/crowded_model.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>
#include <support/random_table.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

using Tokens = std::vector<td::TokenId>;

/// Drafts a known continuation, wrong in places, among random branches; it may reach beyond the end
/// of the answer.
struct Oracle {
  static constexpr bool reads_hidden = false;
  struct Request {
    std::mt19937 random;
  };

  Tokens answer;
  std::size_t vocabulary = 0;
  unsigned seed          = 0;
  unsigned errors        = 4;   ///< one token in so many is another; 0 for none
  std::size_t length     = 6;   ///< of what is drafted
  std::size_t nodes      = 63;  ///< of the tree

  std::size_t budget() const { return nodes; }
  double min_probability() const { return 0; }
  Request begin(std::span<const td::TokenId>) const { return {std::mt19937{seed}}; }

  template <class C>
  void propose(Request& request, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    std::optional<std::size_t> node = 0;
    for (std::size_t i = 0; i < length && node; ++i) {
      for (auto branch = request.random() % 3; branch > 0; --branch) {
        candidates.add(*node, static_cast<td::TokenId>(request.random() % vocabulary), -2);
      }
      const std::size_t at = context.generated.size() + i;
      const bool is_known  = at < answer.size() && (errors == 0 || request.random() % errors != 0);
      const auto token =
          is_known ? answer[at] : static_cast<td::TokenId>(request.random() % vocabulary);
      node = candidates.add(*node, token, -0.1F);
    }
  }
};

/// Requires two runs to be equal except for their passes, drafts and times.
void require_equal(const td::Output& a, const td::Output& b) {
  REQUIRE(a.tokens == b.tokens);
  REQUIRE(a.log_probabilities == b.log_probabilities);
  REQUIRE(a.finish == b.finish);
  REQUIRE(a.forced_tokens == b.forced_tokens);
}

td::DecodeOptions random_options(std::mt19937& random) {
  td::DecodeOptions options{.max_tokens  = 1 + random() % 40,
                            .temperature = std::vector{0.0F, 0.7F, 1.0F}[random() % 3],
                            .seed        = static_cast<std::uint64_t>(random())};
  if (random() % 3 == 0) options.top_k = 1 + random() % 8;
  if (random() % 3 == 0) options.top_p = 0.8F;
  if (random() % 3 == 0) options.repetition_penalty = 1.3F;
  if (random() % 3 == 0) options.frequency_penalty = 0.9F;
  if (random() % 3 == 0) options.presence_penalty = 0.4F;
  if (random() % 4 == 0) options.bias = {{static_cast<td::TokenId>(random() % 50), 1.5F}};
  if (random() % 4 == 0) options.end_tokens = {static_cast<td::TokenId>(random() % 50)};
  options.skip_forced = random() % 4 != 0;
  return options;
}

/// Decodes plainly, then with every drafter, and requires equal outputs; returns the plain one.
template <class M, class C>
td::Output compare(const M& model, const C& constraint, const Tokens& prompt,
                   td::DecodeOptions options, std::mt19937& random) {
  Tokens heard;
  options.on_token       = [&heard](const td::TokenEvent& event) { heard.push_back(event.token); };
  const td::Output plain = td::Decoder{model, constraint}(prompt, options);
  REQUIRE(heard == plain.tokens);
  for (unsigned round = 0; round < 3; ++round) {
    Oracle oracle{.answer     = plain.tokens,
                  .vocabulary = constraint.vocabulary_size(),
                  .seed       = static_cast<unsigned>(random()),
                  .errors     = static_cast<unsigned>(random() % 6),
                  .length     = random() % 12,
                  .nodes      = random() % 64};
    heard.clear();
    const td::Decoder decode{model, constraint,
                             td::TreeSpeculation{oracle, td::TreeVerifier<td::GumbelCoupling>{}}};
    const td::Output drafted = decode(prompt, options);
    require_equal(drafted, plain);
    REQUIRE(heard == plain.tokens);
    REQUIRE(drafted.passes <= plain.passes);
  }
  return plain;
}

/// A table that is past its limits at every state that was not met before it was sealed.
class SealedTable : public td::test::RandomTable {
 public:
  using RandomTable::RandomTable;
  void seal() { sealed_ = true; }
  std::size_t refused() const { return *refused_; }

  std::optional<State> advance(State state, td::TokenId token) const {
    const auto next = RandomTable::advance(state, token);
    if (next) meet(*next);
    return next;
  }
  void fill_mask(State state, td::MaskView words) const {
    meet(state);
    RandomTable::fill_mask(state, words);
  }
  std::string jump_forward(State state) const {
    meet(state);
    return "a";
  }

 private:
  void meet(State state) const {
    if (!sealed_) {
      met_->insert(state.row);
    } else if (!met_->contains(state.row)) {
      ++*refused_;
      throw td::Error(td::Errc::limit_exceeded, "state", state.row, "is past the limits");
    }
  }

  std::shared_ptr<std::set<int>> met_   = std::make_shared<std::set<int>>();
  std::shared_ptr<std::size_t> refused_ = std::make_shared<std::size_t>();
  bool sealed_                          = false;
};

}  // namespace

TEST_CASE("TreeSpeculation with drafts past the constraint's limits decodes as without drafts") {
  std::size_t refused = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{50, {.seed = seed, .spread = 3}};
    SealedTable table{50, seed};
    const Tokens prompt{1, 2, 3};
    const auto options     = random_options(random);
    const td::Output plain = td::Decoder{model, table}(prompt, options);
    table.seal();
    const Oracle oracle{.answer = plain.tokens, .vocabulary = 50, .seed = seed};
    const td::JumpForwardDrafter forced{[](std::string_view) { return Tokens{1, 2}; }};
    const td::Decoder decode{model, table, td::TreeSpeculation{td::DrafterGroup{oracle, forced}}};
    require_equal(decode(prompt, options), plain);
    refused += table.refused();
  }
  CHECK(refused > 50);
}

TEST_CASE("TreeSpeculation with any drafts, constraint and options decodes as without drafts") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  const std::size_t size = vocabulary.size();
  for (unsigned seed = 0; seed < 250; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{size, {.seed = seed, .spread = 3, .peak = seed % 2 == 0 ? 6.0F : 0}};
    const Tokens prompt{1, 2, static_cast<td::TokenId>(seed % size)};
    const auto options = random_options(random);
    compare(model, td::Unconstrained{size, {static_cast<td::TokenId>(size - 1)}}, prompt, options,
            random);
    const td::ToolSet tools = td::test::random_tools(random);
    const td::ChoiceOptions choice{
        .choice     = seed % 3 == 0 ? td::ToolChoice::automatic : td::ToolChoice::required,
        .whitespace = seed % 4};
    if (seed % 2 == 0) {
      compare(model, td::ToolCallFSM{masks, tools, td::PythonCall{}, choice}, prompt, options,
              random);
    } else {
      compare(model, td::ToolCallFSM{masks, tools, td::JsonCall::hermes(), choice}, prompt, options,
              random);
    }
  }
}

TEST_CASE(
    "TreeSpeculation with jump-forward and lookup drafts decodes as without, over a Llama model") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  auto config            = td::test::random_llama_config();
  config.vocabulary_size = vocabulary.size();
  for (unsigned seed = 0; seed < 25; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::LlamaModel model{config, td::test::random_llama_weights(config, seed)};
    const td::ToolSet tools = td::test::random_tools(random);
    const td::ToolCallFSM calls{
        masks, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
    const Tokens prompt =
        td::constraint::JumpForwardText(masks.trie()).encode("f0(a=10, b='re') f1(c=True) [");
    auto options     = random_options(random);
    const auto plain = compare(model, calls, prompt, options, random);
    const td::JumpForwardDrafter forced{masks.trie()};
    const td::SuffixDrafter lookup{masks};
    const td::TreeVerifier verifier{td::GumbelCoupling{}};
    const auto check = [&](const auto& drafter) {
      const td::Decoder decode{model, calls, td::TreeSpeculation{drafter, verifier}};
      require_equal(decode(prompt, options), plain);
    };
    check(forced);
    check(lookup);
    check(td::DrafterGroup{lookup, forced});
    check(td::DrafterGroup{td::DrafterGroupOptions{.budget = 3}, forced, lookup, forced});
  }
}

TEST_CASE("TreeSpeculation over a model without room for a tree gives the answer without drafts") {
  const td::LlamaModel llama = td::test::random_llama(3);
  const std::size_t size     = llama.vocabulary_size();
  const td::Unconstrained any{size};
  const Tokens prompt{1, 2, 3};
  const td::DecodeOptions options{.max_tokens = 30};
  const td::Output plain = td::Decoder{llama, any}(prompt, options);
  const td::test::CrowdedModel model{llama, prompt.size() + options.max_tokens, 1};
  Oracle oracle{
      .answer = plain.tokens, .vocabulary = size, .seed = 1, .errors = 3, .length = 6, .nodes = 60};
  const td::Decoder decode{model, any,
                           td::TreeSpeculation{oracle, td::TreeVerifier<td::GumbelCoupling>{}}};
  require_equal(decode(prompt, options), plain);
  CHECK(*model.refused > 0);
}

TEST_CASE("TreeSpeculation accepts a correct draft in full") {
  const RandomModel model{50, {.seed = 3}};
  const td::Unconstrained any{50};
  const td::DecodeOptions options{.max_tokens = 21};
  const auto plain = td::Decoder{model, any}({{1}}, options);
  const Oracle oracle{.answer = plain.tokens, .vocabulary = 50, .errors = 0, .length = 4};
  const td::Decoder decode{model, any,
                           td::TreeSpeculation{oracle, td::TreeVerifier{td::GumbelCoupling{}}}};
  const auto out = decode({{1}}, options);
  CHECK(out.tokens == plain.tokens);
  CHECK(out.passes == 5);  // the prompt's, then five tokens each
  CHECK(out.drafts.rounds == 4);
  CHECK(out.drafts.accepted == std::vector<std::size_t>{4, 4, 4, 4});
  CHECK(out.drafts.tried == std::vector<std::size_t>{4, 4, 4, 4});
}

TEST_CASE("TreeSpeculation ends the answer where an accepted path reaches its end") {
  const RandomModel model{50, {.seed = 8}};
  const auto plain = td::Decoder{model, td::Unconstrained{50}}({{1, 2}}, {.max_tokens = 30});
  const Oracle oracle{.answer = plain.tokens, .vocabulary = 50, .errors = 0, .length = 10};
  const td::TreeSpeculation speculation{oracle, td::TreeVerifier{td::GumbelCoupling{}}};

  SECTION("max_tokens") {
    for (std::size_t max = 0; max < 25; ++max) {
      const td::Unconstrained any{50};
      const td::Decoder decode{model, any, speculation};
      const auto out = decode({{1, 2}}, {.max_tokens = max});
      CHECK(out.tokens ==
            Tokens(plain.tokens.begin(), plain.tokens.begin() + static_cast<std::ptrdiff_t>(max)));
      CHECK(out.finish == td::Finish::length);
    }
  }
  SECTION("an end token of the constraint") {
    for (const std::size_t at : {1U, 5U, 11U}) {
      const td::Unconstrained until{50, {plain.tokens[at]}};
      const td::Decoder decode{model, until, speculation};
      const auto out = decode({{1, 2}}, {.max_tokens = 30});
      require_equal(out, td::Decoder{model, until}({{1, 2}}, {.max_tokens = 30}));
      CHECK(out.finish == td::Finish::end);
      CHECK(out.tokens.size() <= at);
    }
  }
  SECTION("an end token of the options") {
    const td::Unconstrained any{50};
    const td::Decoder decode{model, any, speculation};
    const td::DecodeOptions options{.max_tokens = 30, .end_tokens = {plain.tokens[7]}};
    require_equal(decode({{1, 2}}, options), td::Decoder{model, any}({{1, 2}}, options));
  }
  SECTION("the model's context") {
    auto config           = td::test::random_llama_config();
    config.context_length = 20;
    const td::LlamaModel llama{config, td::test::random_llama_weights(config, 4)};
    const td::Unconstrained any{config.vocabulary_size};
    const auto short_plain = td::Decoder{llama, any}({{1, 2, 3}}, {.max_tokens = 30});
    CHECK(short_plain.finish == td::Finish::context);
    const Oracle right{.answer     = short_plain.tokens,
                       .vocabulary = config.vocabulary_size,
                       .errors     = 0,
                       .length     = 10};
    const td::Decoder decode{llama, any,
                             td::TreeSpeculation{right, td::TreeVerifier{td::GumbelCoupling{}}}};
    require_equal(decode({{1, 2, 3}}, {.max_tokens = 30}), short_plain);
  }
}

TEST_CASE("TreeSpeculation accepts a draft across the edges of reasoning and calls") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  td::Grammar grammar;
  std::vector<td::text::Dfa::Row> letter(1);
  for (unsigned byte = 'a'; byte <= 'z'; ++byte) letter[0].next[byte] = 0;
  letter[0].accepting = true;
  const auto calls    = grammar.repeat(grammar.literal("f()"), {1, 3}, grammar.literal(", "));
  const auto root =
      grammar.sequence({grammar.literal("<think>"),
                        grammar.lexeme(std::make_shared<const td::text::Dfa>(letter), {0, 9}),
                        grammar.literal("</think>["), calls, grammar.literal("]")});
  const td::Constraint constraint{masks, std::move(grammar).rooted(root)};
  const RandomModel model{vocabulary.size(), {.seed = 5}};
  const Tokens prompt{1};
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const td::DecodeOptions options{.max_tokens = 60, .temperature = 1, .seed = seed};
    const auto plain = td::Decoder{model, constraint}(prompt, options);
    CHECK(vocabulary.decode(plain.tokens).starts_with("<think>"));
    const Oracle oracle{
        .answer = plain.tokens, .vocabulary = vocabulary.size(), .errors = 0, .length = 40};
    const td::Decoder decode{model, constraint,
                             td::TreeSpeculation{oracle, td::TreeVerifier{td::GumbelCoupling{}}}};
    const auto out = decode(prompt, options);
    require_equal(out, plain);
    CHECK(out.passes <= plain.passes);
    CHECK(out.passes <= 3);  // drafts crossed the edges
  }
}

TEST_CASE("TreeSpeculation without a draft or with only forbidden ones decodes plainly") {
  const RandomModel model{50, {.seed = 12}};
  // Allows every third token.
  struct Thirds : td::Unconstrained {
    using td::Unconstrained::Unconstrained;
    std::optional<State> advance(State state, td::TokenId token) const noexcept {
      return token % 3 == 2 ? td::Unconstrained::advance(state, token) : std::nullopt;
    }
    void fill_mask(State, td::MaskView words) const noexcept {
      for (auto& word : words) word = 0;
      for (std::uint32_t t = 2; t < 50; t += 3) words[t / 32] |= 1U << (t % 32);
    }
  };
  const Thirds thirds{50};
  const td::DecodeOptions options{.max_tokens = 12};
  const auto plain   = td::Decoder{model, thirds}({{1}}, options);
  const auto drafted = [&](const Oracle& oracle) {
    const td::Decoder decode{model, thirds,
                             td::TreeSpeculation{oracle, td::TreeVerifier{td::GumbelCoupling{}}}};
    return decode({{1}}, options);
  };
  const auto forbidden = drafted({.answer = Tokens(12, 1), .vocabulary = 2, .errors = 0});
  require_equal(forbidden, plain);
  CHECK(forbidden.passes == plain.passes);
  CHECK(forbidden.drafts.rounds == 0);
  const auto none = drafted({.answer = plain.tokens, .vocabulary = 1, .length = 0});
  require_equal(none, plain);
  CHECK(none.passes == plain.passes);
  CHECK(none.drafts.rounds == 0);
}
