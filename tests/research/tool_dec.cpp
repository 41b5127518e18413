#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/research/tool_dec.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/tool_dec_tokens.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Machine = td::ToolDecMachine;
using namespace td::test::tool_dec;

namespace {

using Names = std::vector<Tokens>;

/// The modes by string search in the text since the last change of mode.
class Reference {
 public:
  Reference(const td::ToolCallFSM& calls, std::string trigger, bool at_start)
      : calls_(calls), trigger_(std::move(trigger)), at_start_(at_start) {}

  bool in_text() const { return in_text_; }
  bool allows(td::TokenId token) const {
    return in_text_ || (vocabulary().is_text(token) &&
                        calls_.advance_bytes(state_, vocabulary().bytes(token)).has_value());
  }
  void read(td::TokenId token) {
    written_ += vocabulary().bytes(token);
    if (!in_text_) {
      state_ = *calls_.advance_bytes(state_, vocabulary().bytes(token));
      if (calls_.find_refusal(written_)) return;
      in_text_ = true;
      written_.clear();
      ++calls_made_;
      return;
    }
    const std::size_t at = at_start_ ? written_.find_first_not_of(" \n") : written_.find(trigger_);
    if (at == std::string::npos || written_.compare(at, trigger_.size(), trigger_) != 0) return;
    if (at + trigger_.size() < written_.size()) {
      written_.clear();
    } else {
      in_text_ = false;
      state_   = *calls_.advance_bytes(calls_.initial(), written_);
    }
  }
  std::size_t calls_made() const { return calls_made_; }

 private:
  const td::ToolCallFSM& calls_;
  std::string trigger_;
  bool at_start_;
  bool in_text_ = true;
  std::string written_;
  td::ToolCallFSM::State state_;
  std::size_t calls_made_ = 0;
};

/// The most likely of some tokens after a text, by a pass over all of it.
td::TokenId find_best(const RandomModel& model, const Tokens& text,
                      const td::DecodeOptions& options, const std::vector<bool>& allowed) {
  std::vector<float> row(allowed.size());
  auto cache = model.make_cache();
  model.forward(cache, text, row);
  for (const auto& [biased, bias] : options.bias) row[static_cast<std::size_t>(biased)] += bias;
  for (std::size_t t = 0; t < row.size(); ++t) {
    if (!allowed[t]) row[t] = -std::numeric_limits<float>::infinity();
  }
  return static_cast<td::TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::vector<bool> only(const Tokens& tokens, std::size_t size) {
  std::vector<bool> allowed(size);
  for (const td::TokenId token : tokens) allowed[static_cast<std::size_t>(token)] = true;
  return allowed;
}

/// An answer whose names are asked for by a prompt; names are listed in the order of the tools.
Tokens answer_with_name_prompt(const RandomModel& model, const td::ToolCallFSM& calls,
                               const Names& names, const td::NamePrompt& prompt,
                               const Tokens& asked, const td::DecodeOptions& options) {
  const td::ToolNames trie{calls, names};
  const std::size_t size      = calls.vocabulary_size();
  const td::TokenId end_token = calls.vocabulary().end_tokens().front();
  const Machine machine{calls, {}, &trie};
  auto state          = std::optional(machine.initial());
  Tokens text         = asked, name;
  std::size_t in_name = 0;
  while (text.size() - asked.size() < options.max_tokens) {
    td::TokenMask mask(size);
    machine.fill_mask(*state, mask.words());
    if (state->phase != Machine::Phase::name) {
      name.clear();
      in_name = 0;
    } else if (name.empty()) {
      Tokens question = text;
      question.insert(question.end(), prompt.text.begin(), prompt.text.end());
      for (;;) {
        Tokens next;
        for (const Tokens& one : names) {
          if (one.size() < name.size() || !std::equal(name.begin(), name.end(), one.begin()))
            continue;
          next.push_back(one.size() == name.size() ? *prompt.end : one[name.size()]);
          if (one.size() == name.size()) next.push_back(end_token);
        }
        const td::TokenId best = find_best(model, question, options, only(next, size));
        if (best == *prompt.end || best == end_token) break;
        name.push_back(best);
        question.push_back(best);
      }
    }
    const bool is_whole = !name.empty() && in_name == name.size();
    std::vector<bool> allowed(size);
    for (std::size_t t = 0; t < allowed.size(); ++t)
      allowed[t] = mask.contains(static_cast<td::TokenId>(t));
    if (!name.empty() && in_name < name.size())
      allowed = only({name[in_name++]}, size);
    else if (!name.empty()) {
      for (const Tokens& one : names) {
        if (one.size() > name.size() && std::equal(name.begin(), name.end(), one.begin())) {
          allowed[static_cast<std::size_t>(one[name.size()])] = false;
        }
      }
    }
    const td::TokenId token = find_best(model, text, options, allowed);
    text.push_back(token);
    if (token == end_token) break;
    if (is_whole) {  // this token ends it, and may begin the next call
      name.clear();
      in_name = 0;
    }
    state = machine.advance(*state, token);
    REQUIRE(state);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(asked.size()), text.end()};
}

}  // namespace

TEST_CASE("ToolDec decodes text greedily and calls greedily under the mask, and calls conform") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}, {.whitespace = 1}};
  const td::ToolCallFSM hermes{masks(), tools(), td::JsonCall::hermes(), {.whitespace = 1}};
  for (const bool is_python : {true, false}) {
    const td::ToolCallFSM& calls = is_python ? python : hermes;
    const std::string trigger    = is_python ? "[" : "<tool_call>";
    std::size_t made = 0, ended = 0;
    for (unsigned seed = 0; seed < 150; ++seed) {
      INFO((is_python ? "python" : "hermes") << ", seed " << seed);
      const RandomModel model{vocabulary().size(), {.seed = seed}};
      // The usual tokens of a call are made likely, the straddling ones among them; how much
      // white space may come before the trigger is a matter of the format.
      td::DecodeOptions options{.max_tokens = 100};
      for (const char* text :
           {"[", "[g", " [", "<tool_call>", "<tool", "_call>", "_call>\n", "x["}) {
        options.bias.emplace_back(id(text), 3.8F);
      }
      for (const char* text : {" ", "\t", "\r", "\n", "\xFF"}) {  // no text has the last one
        options.bias.emplace_back(id(text), -std::numeric_limits<float>::infinity());
      }
      options.bias.emplace_back(end, 2.0F);
      const auto out = td::Decoder{model, calls, td::ToolDec{}}(Tokens{1}, options);

      Reference reference{calls, trigger, is_python};
      Tokens sequence{1};
      Tokens expected = out.tokens;
      if (out.finish == td::Finish::end) expected.push_back(end);
      for (const td::TokenId token : expected) {
        std::vector<float> row(vocabulary().size());
        auto cache = model.make_cache();
        model.forward(cache, sequence, row);
        for (const auto& [biased, bias] : options.bias)
          row[static_cast<std::size_t>(biased)] += bias;
        for (std::size_t t = 0; t < row.size(); ++t) {
          if (!reference.allows(static_cast<td::TokenId>(t))) {
            row[t] = -std::numeric_limits<float>::infinity();
          }
        }
        REQUIRE(token == std::max_element(row.begin(), row.end()) - row.begin());
        reference.read(token);
        sequence.push_back(token);
      }
      made += reference.calls_made();
      ended += out.finish == td::Finish::end && reference.in_text();
      CHECK((out.finish == td::Finish::length || reference.in_text()));
    }
    CHECK(made > 30);
    CHECK(ended > 30);
  }
}

TEST_CASE("ToolDec where only calls or only text are allowed decodes in one mode") {
  const td::ToolCallFSM required{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::ToolCallFSM none{masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::none}};
  const td::ToolCallFSM toolless{masks(), td::ToolSet::parse("[]"), td::PythonCall{}};
  const td::Unconstrained any{vocabulary().size(), {end}};
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{vocabulary().size(), {.seed = seed}};
    td::DecodeOptions options{.max_tokens  = 40,
                              .temperature = seed % 2 == 0 ? 0.0F : 0.8F,
                              .bias        = {{id("["), 5.0F}, {end, 2.0F}},
                              .seed        = seed};
    const auto under = td::Decoder{model, required}(Tokens{1}, options);
    const auto out   = td::Decoder{model, required, td::ToolDec{}}(Tokens{1}, options);
    CHECK(out.tokens == under.tokens);
    CHECK(out.log_probabilities == under.log_probabilities);
    CHECK(out.passes == under.passes);
    CHECK(out.finish == under.finish);

    const auto plain = td::Decoder{model, any}(Tokens{1}, options);
    for (const td::ToolCallFSM* text : {&none, &toolless}) {
      const auto free = td::Decoder{model, *text, td::ToolDec{}}(Tokens{1}, options);
      CHECK(free.tokens == plain.tokens);
      CHECK(free.finish == plain.finish);
      CHECK(td::Decoder{model, *text, td::ToolDec{mark}}(Tokens{1}, options).tokens ==
            plain.tokens);
    }
  }
}

TEST_CASE(
    "ToolDec with names writes them in these tokens and refuses names of another ToolCallFSM") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Tokens letters{id("g"), id("e"), id("t")};
  Tokens longer = letters;
  for (const char* letter : {"_", "t", "i", "m", "e"}) longer.push_back(id(letter));
  const td::ToolDec canonical{.names = td::ToolNames{python, Names{letters, longer}}};
  const RandomModel model{vocabulary().size(), {.seed = 3}};
  td::DecodeOptions options{.max_tokens = 20};
  options.bias    = {{id("["), 40.0F}, {id("get"), 30.0F}, {id("g"), 20.0F}};
  const auto free = td::Decoder{model, python, td::ToolDec{}}(Tokens{1}, options);
  const auto out  = td::Decoder{model, python, canonical}(Tokens{1}, options);
  REQUIRE(std::min(free.tokens.size(), out.tokens.size()) >= 4);
  CHECK(Tokens(free.tokens.begin(), free.tokens.begin() + 2) == Tokens{id("["), id("get")});
  CHECK(out.tokens[0] == id("["));
  CHECK(Tokens(out.tokens.begin() + 1, out.tokens.begin() + 4) == letters);

  const td::ToolCallFSM other{td::test::byte_vocabulary(), tools(), td::PythonCall{}};
  CHECK_THROWS_WITH((Machine{other, {}, &*canonical.names}),
                    "names: " + std::to_string(vocabulary().size()) +
                        " tokens: must be as many as those of the ToolCallFSM, 257");
}

TEST_CASE("ToolDec with a name prompt writes the names that a model chooses behind the prompt") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Names names{ids("get"),
                    {id("g"), id("e"), id("t"), id("_"), id("t"), id("i"), id("m"), id("e")}};
  const td::NamePrompt prompt{.text = ids("(calls: "), .end = id(")")};
  const td::ToolDec asks{.names = td::ToolNames{python, names}, .name_prompt = prompt};
  const td::ToolDec plain{.names = asks.names};
  std::size_t calls = 0, other_names = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{vocabulary().size(), {.seed = seed}};
    td::DecodeOptions options{.max_tokens = 60};
    options.bias   = {{id("["), 5.0F}, {end, 3.0F}};
    const auto out = td::Decoder{model, python, asks}(Tokens{1, 2}, options);
    Tokens written = out.tokens;
    if (out.finish == td::Finish::end) written.push_back(end);
    CHECK(written == answer_with_name_prompt(model, python, names, prompt, {1, 2}, options));
    const auto unasked = td::Decoder{model, python, plain}(Tokens{1, 2}, options);
    calls += vocabulary().decode(out.tokens).find("[get") != std::string::npos;
    other_names += out.tokens != unasked.tokens;
  }
  CHECK(calls > 60);
  CHECK(other_names > 20);
}

TEST_CASE("ToolDec with a name prompt asks again where one token ends a call and begins another") {
  const td::VocabularyIndex index{pieces()};
  const td::ToolCallFSM python{index, prefixes(), td::PythonCall{}};
  const Names names{{piece("a")}, {piece("ab")}, {piece("ab"), piece("c")}};
  const td::NamePrompt prompt{.text = {piece("("), piece(" ")}, .end = piece(")")};
  const td::ToolDec asks{.names = td::ToolNames{python, names}, .name_prompt = prompt};
  std::size_t several = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{pieces().size(), {.seed = seed}};
    td::DecodeOptions options{.max_tokens = 40};
    options.bias   = {{piece("["), 6.0F}, {piece("(),"), 8.0F}, {0, 1.0F}};
    const auto out = td::Decoder{model, python, asks}(Tokens{piece("c")}, options);
    Tokens written = out.tokens;
    if (out.finish == td::Finish::end) written.push_back(0);
    CHECK(out.finish != td::Finish::stuck);
    CHECK(written == answer_with_name_prompt(model, python, names, prompt, {piece("c")}, options));
    several += std::ranges::count(out.tokens, piece("(),")) > 1;
  }
  CHECK(several > 10);
}

TEST_CASE("ToolDec with a name prompt that does not fit the context asks for no name") {
  struct Short : RandomModel {
    using RandomModel::RandomModel;
    [[nodiscard]] std::size_t context_length() const { return 40; }
  };
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const td::ToolNames in_tokens{python, Names{ids("get"), ids("get_time")}};
  const td::ToolDec plain{.names = in_tokens};
  const td::ToolDec fits{.names = in_tokens, .name_prompt = td::NamePrompt{.text = ids("xxx")}};
  const td::ToolDec too_long{.names       = in_tokens,
                             .name_prompt = td::NamePrompt{.text = Tokens(40, id("x"))}};
  td::DecodeOptions options{.max_tokens = 20};
  options.bias       = {{id("["), 40.0F}};
  std::size_t others = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const Short model{vocabulary().size(), td::test::RandomModelOptions{.seed = seed}};
    const auto out      = td::Decoder{model, python, too_long}(Tokens{1}, options);
    const auto expected = td::Decoder{model, python, plain}(Tokens{1}, options);
    CHECK(out.tokens == expected.tokens);
    CHECK(out.passes == expected.passes);
    const auto asked = td::Decoder{model, python, fits}(Tokens{1}, options);
    others += asked.passes != expected.passes || asked.tokens != expected.tokens;
  }
  CHECK(others > 10);
}

TEST_CASE("ToolDec with a name prompt reads the prompt once and counts its passes") {
  const td::ToolCallFSM required{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::ToolDec asks{.names       = td::ToolNames{required, Names{ids("get"), ids("get_time")}},
                         .name_prompt = td::NamePrompt{.text = ids("x")}};
  struct Counting : RandomModel {
    using RandomModel::RandomModel;
    mutable std::size_t read = 0, passes = 0;
    void forward(Cache& cache, std::span<const td::TokenId> tokens, std::span<float> row) const {
      read += tokens.size();
      ++passes;
      RandomModel::forward(cache, tokens, row);
    }
  };
  const Counting model{vocabulary().size(), td::test::RandomModelOptions{.seed = 2}};
  const Tokens prompt(50, td::TokenId{65});
  const auto out = td::Decoder{model, required, asks}(prompt, {.max_tokens = 30});
  CHECK(out.passes == model.passes);
  CHECK(model.read < prompt.size() + 2 * out.tokens.size() + 20);
  CHECK(out.times.prefill.count() > 0);
}

TEST_CASE("ToolDec refuses a name prompt without names or with unknown tokens") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const RandomModel model{vocabulary().size(), {}};
  td::ToolDec asks{.name_prompt = td::NamePrompt{.text = {1}}};
  CHECK_THROWS_WITH((td::Decoder{model, python, asks}(Tokens{1})),
                    "name_prompt: must come with names");
  asks.names = td::ToolNames{python, Names{ids("get"), ids("get_time")}};
  asks.name_prompt->text.push_back(9999);
  CHECK_THROWS_WITH((td::Decoder{model, python, asks}(Tokens{1})),
                    "name_prompt 9999: must be a token of the model");
  asks.name_prompt = td::NamePrompt{.text = {1}, .end = -1};
  CHECK_THROWS_WITH((td::Decoder{model, python, asks}(Tokens{1})),
                    "name_prompt -1: must be a token of the model");
}
