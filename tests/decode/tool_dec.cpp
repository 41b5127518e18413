#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/tool_dec.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/python_call.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Machine = td::ToolDecMachine;

namespace {

using Tokens = std::vector<td::TokenId>;

constexpr td::TokenId end = 256, mark = 257;

/// The bytes, an end, a control token, and tokens that straddle the edges of modes.
const td::Vocabulary& vocabulary() {
  static const td::Vocabulary all = [] {
    std::vector<td::Vocabulary::Entry> more{{"<T>", td::TokenType::control}};
    for (const char* text : {"<tool_call>", "</tool_call>", "<tool", "_call>\n", "[g", " [", "()",
                             ")]", "]\n", "x[", "_call>", "get", "{\"name\": \"", "a</tool"}) {
      more.push_back({text, td::TokenType::normal});
    }
    return td::test::byte_vocabulary(more);
  }();
  return all;
}

const td::VocabularyIndex& masks() {
  static const td::VocabularyIndex cache{vocabulary()};
  return cache;
}

const td::ToolSet& tools() {
  static const td::ToolSet set = td::ToolSet::parse(R"([
    {"name": "get", "parameters": {"type": "object", "properties": {
      "day": {"enum": ["mo", "tu"]}, "all": {"type": "boolean"}}, "required": ["day"]}},
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}}])");
  return set;
}

td::TokenId id(std::string_view text) {
  return *vocabulary().find(text);
}

/// Longest match first.
Tokens ids(std::string_view text) {
  Tokens tokens;
  while (!text.empty()) {
    std::size_t length = text.size();
    while (!vocabulary().find(text.substr(0, length))) --length;
    tokens.push_back(id(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return tokens;
}

/// The phase after some tokens; nothing where one of them is not allowed.
std::optional<Machine::Phase> phase(const Machine& machine, const Tokens& tokens) {
  auto state = std::optional(machine.initial());
  for (const td::TokenId token : tokens) {
    state = machine.advance(*state, token);
    if (!state) return std::nullopt;
  }
  return state->phase;
}

/// The modes by string search: what is written since the last change of mode decides.
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

}  // namespace

TEST_CASE("text is plain greedy, calls are greedy under the mask, and what they make conforms") {
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

TEST_CASE("only a trigger at a token's end begins a call, and text follows it") {
  using enum Machine::Phase;
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Machine machine{python};
  CHECK(phase(machine, ids("see this")) == text);
  CHECK(phase(machine, {id("[")}) == calls);
  CHECK(phase(machine, {id(" [")}) == calls);
  CHECK(phase(machine, {id("\n"), id("["), id("get")}) == calls);
  CHECK(phase(machine, {id("[g")}) == text);
  CHECK(phase(machine, {id("[g"), id("o"), id("!")}) == text);
  CHECK(phase(machine, {id("x"), id("[")}) == text);
  CHECK(phase(machine, {id("x["), id("[")}) == text);
  CHECK(phase(machine, {id(" "), id(" "), id("[")}) == calls);
  CHECK(phase(machine, {id(" "), id(" "), id(" "), id("[")}) == text);
  CHECK_FALSE(phase(machine, {id("["), id("x")}));
  CHECK_FALSE(phase(machine, {id("["), end}));
  Tokens whole{id("["), id("get"), id("_"), id("t"), id("i"), id("m"), id("e"), id("()")};
  CHECK(phase(machine, whole) == calls);
  whole.push_back(id("]"));
  CHECK(phase(machine, whole) == text);
  whole.insert(whole.end(), {id("y"), id("e"), id("s"), mark});
  CHECK(phase(machine, whole) == text);

  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const Machine hermes{json};
  CHECK(phase(hermes, {id("o"), id("k"), id("<tool_call>")}) == calls);
  CHECK(phase(hermes, {id("<tool"), id("_call>")}) == calls);
  CHECK(phase(hermes, {id("<tool"), id("_call>\n")}) == text);
  CHECK(phase(hermes, {id("<tool"), id("_call>\n"), id("<tool"), id("_call>")}) == calls);
  Tokens two = ids("<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>");
  CHECK(phase(hermes, two) == text);
  two.push_back(id("\n"));
  two.push_back(id("<tool_call>"));
  CHECK(phase(hermes, two) == calls);
}

TEST_CASE("a transition of one's own begins a call wherever it stands") {
  using enum Machine::Phase;
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Machine marked{python, mark};
  CHECK(phase(marked, {id("[")}) == text);
  CHECK(phase(marked, {id("x"), mark}) == trigger);
  CHECK_FALSE(phase(marked, {mark, id("get")}));
  CHECK_FALSE(phase(marked, {mark, end}));
  CHECK_FALSE(phase(marked, {mark, id("[g")}));
  CHECK(phase(marked, {mark, id("[")}) == calls);
  CHECK(marked.forced(*marked.advance(marked.initial(), mark)) == "[");

  // A token that is the trigger is not followed by another one.
  const Machine bracket{python, id("[")};
  CHECK(phase(bracket, {id("x"), id("[")}) == calls);
  CHECK(phase(bracket, {id("x"), id(" [")}) == text);
  CHECK(phase(Machine{python, id(" [")}, {id("x"), id(" [")}) == calls);

  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const Machine hermes{json, mark};
  CHECK(phase(hermes, {mark, id("<tool")}) == trigger);
  CHECK(phase(hermes, {mark, id("<tool"), id("_call>")}) == calls);
  CHECK_FALSE(phase(hermes, {mark, id("<tool"), id("_call>\n")}));

  // The name of a control token may be the trigger itself.
  const td::ToolCallFSM named{masks(), tools(), td::JsonCall{"<T>", "</T>", ""}};
  CHECK(phase(Machine{named, mark}, {mark, id("{\"name\": \""), id("get")}) == calls);

  for (const td::TokenId bad : {-1, static_cast<int>(vocabulary().size())}) {
    try {
      static_cast<void>(Machine(python, bad));
      FAIL("a transition that does not exist");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_token);
      CHECK(error.where() == "transition");
    }
  }
}

TEST_CASE("masks are exactly the tokens that may follow") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const td::ToolCallFSM required{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  for (const auto& machine : {Machine{python}, Machine{json}, Machine{json, mark},
                              Machine{python, mark}, Machine{required}}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      INFO("seed " << seed);
      std::mt19937 random{seed};
      auto state = machine.initial();
      for (int step = 0; step < 60; ++step) {
        td::TokenMask mask(machine.vocabulary_size());
        machine.fill_mask(state, mask.words());
        Tokens allowed, accepted;
        for (std::size_t t = 0; t < 32 * mask.words().size(); ++t) {
          const auto token = static_cast<td::TokenId>(t);
          if (mask.contains(token)) allowed.push_back(token);
          if (machine.advance(state, token)) accepted.push_back(token);
        }
        REQUIRE(allowed == accepted);
        REQUIRE_FALSE(allowed.empty());
        REQUIRE(machine.is_accepting(state) == mask.contains(end));
        const std::string forced = machine.forced(state);
        REQUIRE(std::all_of(allowed.begin(), allowed.end(), [&](td::TokenId token) {
          return forced.empty() || vocabulary().bytes(token).starts_with(forced) ||
                 forced.starts_with(vocabulary().bytes(token));
        }));
        if (machine.is_finished(state)) {
          CHECK(allowed == Tokens{end});
          break;
        }
        td::TokenId next = allowed[random() % allowed.size()];
        for (const td::TokenId likely : {mark, id("["), id("<tool_call>"), end}) {
          if (random() % 8 == 0 && mask.contains(likely)) next = likely;
        }
        state = *machine.advance(state, next);
      }
    }
  }
}

TEST_CASE("where only calls or only text are allowed, there is one mode") {
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
