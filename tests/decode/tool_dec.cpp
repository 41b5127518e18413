#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
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
#include <tooldecode/tools/delimited_call.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/xml_call.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Machine = td::ToolDecMachine;

namespace {

using Tokens = std::vector<td::TokenId>;
using Names  = std::vector<Tokens>;

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

namespace {

/// Every way to write a text in the tokens of a vocabulary.
std::vector<Tokens> spellings(const td::Vocabulary& of, std::string_view text) {
  if (text.empty()) return {{}};
  std::vector<Tokens> all;
  for (std::size_t t = 0; t < of.size(); ++t) {
    const auto token = static_cast<td::TokenId>(t);
    if (!of.is_text(token) || !text.starts_with(of.bytes(token))) continue;
    for (Tokens rest : spellings(of, text.substr(of.bytes(token).size()))) {
      rest.insert(rest.begin(), token);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

/// The answers of at most so many tokens that make calls and end with them, by `advance`; requires
/// that masks are the same, and empty only where the ToolCallFSM's are.
std::set<Tokens> answers(const Machine& machine, const td::ToolCallFSM& calls, Tokens begin,
                         std::size_t most) {
  auto state = std::optional(machine.initial());
  for (const td::TokenId token : begin) state = machine.advance(*state, token);
  std::vector<std::pair<Tokens, Machine::State>> work{{std::move(begin), *state}};
  std::set<Tokens> all;
  td::TokenMask mask(machine.vocabulary_size()), under(machine.vocabulary_size());
  while (!work.empty()) {
    const auto [tokens, at] = std::move(work.back());
    work.pop_back();
    machine.fill_mask(at, mask.words());
    calls.fill_mask(at.calls, under.words());
    const std::string forced = machine.forced(at);
    bool agree               = (mask.count() == 0) == (under.count() == 0);
    for (std::size_t t = 0; t < machine.vocabulary_size(); ++t) {
      const auto token = static_cast<td::TokenId>(t);
      const auto next  = machine.advance(at, token);
      agree            = agree && mask.contains(token) == next.has_value();
      if (!next) continue;
      const std::string_view bytes = calls.vocabulary().bytes(token);
      agree         = agree && (bytes.starts_with(forced) || forced.starts_with(bytes));
      Tokens longer = tokens;
      longer.push_back(token);
      if (next->phase == Machine::Phase::text) {
        all.insert(longer);
      } else if (longer.size() < most) {
        work.emplace_back(std::move(longer), *next);
      }
    }
    REQUIRE(agree);
  }
  return all;
}

/// Whether the names in `[f(), g()]` are written in these tokens and no others.
bool has_names_in(const td::Vocabulary& of, const Tokens& answer,
                  const std::vector<std::pair<std::string, Tokens>>& names) {
  const std::string text = of.decode(answer);
  for (std::size_t open = text.find('('); open != std::string::npos;
       open             = text.find('(', open + 1)) {
    const std::size_t begin = text.find_last_of("[, ", open) + 1;
    Tokens inside;
    std::size_t at = 0;
    for (const td::TokenId token : answer) {
      const std::size_t after = at + of.bytes(token).size();
      if (after > begin && at < open) inside.push_back(token);
      at = after;
    }
    const auto name = std::find_if(names.begin(), names.end(), [&](const auto& one) {
      return one.first == text.substr(begin, open - begin);
    });
    if (name == names.end() || inside != name->second) return false;
  }
  return true;
}

}  // namespace

namespace {

/// A few pieces of `[a(), ab()]` in every way that matters.
const td::Vocabulary& pieces() {
  static const td::Vocabulary all = [] {
    std::vector<td::Vocabulary::Entry> entries{{"<end>", td::TokenType::control}};
    for (const char* piece :
         {"[",  "]",   "(",  ")",   ",",   " ",   "a",   "ab",  "b",   "c", "bc",
          "b(", "ab(", "()", "()]", ", a", " ab", "(),", "),a", "c()", "[a"}) {
      entries.push_back({piece, td::TokenType::normal});
    }
    return td::Vocabulary(entries, {.end_tokens = {0}});
  }();
  return all;
}
td::TokenId piece(std::string_view text) {
  return *pieces().find(text);
}
const td::ToolSet& prefixes() {
  static const td::ToolSet set = td::ToolSet::parse(R"([
    {"name": "a", "parameters": {"type": "object"}},
    {"name": "ab", "parameters": {"type": "object"}},
    {"name": "abc", "parameters": {"type": "object"}}])");
  return set;
}

}  // namespace

TEST_CASE("with names, calls are those of the ToolCallFSM whose names are in the tokens given") {
  const td::ToolCallFSM calls{pieces(), prefixes(), td::PythonCall{}, {.whitespace = 1}};
  const Tokens begin{piece("[")}, a{piece("a")};
  const std::set<Tokens> free = answers(Machine{calls}, calls, begin, 7);
  std::size_t fewer           = 0;
  for (const Tokens& b : spellings(pieces(), "ab")) {
    for (const Tokens& c : spellings(pieces(), "abc")) {
      INFO(b.size() << " and " << c.size() << " tokens");
      const td::ToolNames names{calls, Names{a, b, c}};
      std::set<Tokens> expected;
      for (const Tokens& answer : free) {
        if (has_names_in(pieces(), answer, {{"a", a}, {"ab", b}, {"abc", c}})) {
          expected.insert(answer);
        }
      }
      CHECK(answers(Machine{calls, {}, &names}, calls, begin, 7) == expected);
      CHECK_FALSE(expected.empty());
      fewer += expected.size() < free.size();
    }
  }
  CHECK(fewer == 6);
}

TEST_CASE("with names, where only calls are allowed, a name begins behind the bracket") {
  const td::ToolCallFSM calls{
      pieces(), prefixes(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::ToolNames names{calls, Names{{piece("a")}, {piece("ab")}, {piece("ab"), piece("c")}}};
  const Machine machine{calls, {}, &names};
  CHECK(phase(machine, {}) == Machine::Phase::calls);
  CHECK(phase(machine, {piece("[")}) == Machine::Phase::name);
  CHECK_FALSE(phase(machine, {piece("[a")}));
  CHECK_FALSE(phase(machine, {piece("["), piece("a"), piece("b")}));
  CHECK(phase(machine, {piece("["), piece("ab"), piece("c"), piece("()]"), 0}) ==
        Machine::Phase::calls);
}

TEST_CASE("with names, whole answers have each name in its tokens, in every format") {
  const std::vector<std::pair<std::string, Tokens>> canonical{
      {"get", {id("g"), id("e"), id("t")}},
      {"get_time", {id("get"), id("_"), id("t"), id("i"), id("m"), id("e")}}};
  const std::vector<Tokens> sequences{canonical[0].second, canonical[1].second};
  const auto check = [&](const auto& format, std::string_view opening) {
    const td::ToolCallFSM calls{masks(), tools(), format, {.whitespace = 1}};
    const td::ToolNames names{calls, sequences};
    const auto trigger = ids(opening);
    const Machine machine{calls, {}, &names};
    std::size_t made = 0, others = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
      INFO(opening << ", seed " << seed);
      std::mt19937 random{seed};
      for (const bool named : {true, false}) {
        const Machine walked = named ? machine : Machine{calls};
        auto state           = walked.initial();
        Tokens written;
        for (const td::TokenId token : trigger) {
          state = *walked.advance(state, token);
          written.push_back(token);
        }
        REQUIRE(state.phase != Machine::Phase::text);
        for (int step = 0; step < 400 && state.phase != Machine::Phase::text; ++step) {
          td::TokenMask mask(walked.vocabulary_size());
          walked.fill_mask(state, mask.words());
          Tokens allowed;
          bool agree = true;
          for (std::size_t t = 0; t < walked.vocabulary_size(); ++t) {
            const auto token = static_cast<td::TokenId>(t);
            agree = agree && mask.contains(token) == walked.advance(state, token).has_value();
            if (mask.contains(token)) allowed.push_back(token);
          }
          REQUIRE(agree);
          REQUIRE_FALSE(allowed.empty());
          written.push_back(allowed[random() % allowed.size()]);
          state = *walked.advance(state, written.back());
        }
        if (state.phase != Machine::Phase::text) continue;
        auto at = written.begin();
        for (const td::ToolCall& call : calls.parse(vocabulary().decode(written))) {
          const Tokens& name = canonical[call.name == "get" ? 0 : 1].second;
          at                 = std::search(at, written.end(), name.begin(), name.end());
          if (named) REQUIRE(at != written.end());
          if (at == written.end()) {
            ++others;
            break;
          }
          at += static_cast<std::ptrdiff_t>(name.size());
          made += named;
        }
      }
    }
    CHECK(made > 10);
    CHECK(others > 5);
  };
  check(td::PythonCall{}, "[");
  check(td::JsonCall::hermes(), "<tool_call>");
  check(td::PositionalCall::tool_dec(), "<T>");
  check(td::DelimitedCall::deepseek_v3_1(), "<｜tool▁calls▁begin｜>");
  check(td::XmlCall::qwen3_coder(), "<tool_call>");
}

TEST_CASE("ToolDec writes names in their tokens, and other names do not fit") {
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
