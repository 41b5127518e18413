// Each allocation of an operation fails in turn: the operation throws, leaks nothing, and succeeds
// with the same objects afterwards. A separate executable, whose operator new is
// failing_memory.cpp's.
//
// TOOLDECODE_ALLOCATIONS=all tries every allocation instead of a sample where there are many.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/catch.hpp>
#include <support/failing_memory.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using test::FailingMemory;

namespace {

struct Place {
  std::size_t at;
  FailingMemory::Failure failure;
};

// Which of the allocations fail, one in each run.
std::vector<Place> places(std::size_t count) {
  const bool all             = std::getenv("TOOLDECODE_ALLOCATIONS") != nullptr;
  const std::size_t in_a_row = all ? count : std::min<std::size_t>(count, 40);
  std::vector<Place> places;
  std::mt19937 random(static_cast<std::mt19937::result_type>(count));
  for (std::size_t at = 1; at <= count; ++at) {
    if (at > in_a_row && random() % (count - in_a_row) >= 60) continue;
    places.push_back({at, FailingMemory::Failure::once});
    if (all || random() % 8 == 0) places.push_back({at, FailingMemory::Failure::until_end});
  }
  return places;
}

/// Does an operation on new objects repeatedly, each time with another failed allocation.
///
/// \param make  gives the objects
/// \param run   does the operation by `attempt` of a FailingMemory, with the objects, and gives what can be seen of it
template <class Make, class Run>
void fail_in_turn(const std::string& what, Make make, Run run) {
  const auto expected = [&] {
    auto objects = make();
    FailingMemory none;
    return run(objects, none);
  }();
  std::size_t count = 0;
  {
    auto objects = make();
    FailingMemory none;
    if (run(objects, none) != expected) FAIL(what << ": two runs differ though nothing has failed");
    count = none.allocations();
  }
  REQUIRE(count > 0);
  std::size_t failures = 0;
  for (const auto& [at, failure] : places(count)) {
    const std::size_t blocks = FailingMemory::blocks();
    bool is_same             = false;
    {
      auto objects = make();
      FailingMemory memory(at, failure);
      is_same = run(objects, memory) == expected;
      // The last allocations may be ones that do not fail.
      failures += memory.has_failed() ? 1 : 0;
    }
    if (!is_same || FailingMemory::blocks() != blocks) {
      FAIL_CHECK(what << ": allocation " << at << " of " << count << " has failed "
                      << (failure == FailingMemory::Failure::once ? "once" : "until its end")
                      << (is_same ? "" : ", another result") << ", "
                      << static_cast<std::ptrdiff_t>(FailingMemory::blocks() - blocks)
                      << " blocks are lost");
    }
  }
  CHECK(failures > count / 100);
  std::cout << what << ": " << count << " allocations, " << failures << " failures\n";
}

const Vocabulary& pieces() {
  static const Vocabulary made = test::call_vocabulary();
  return made;
}

TokenId longest_token(std::string_view text) {
  TokenId best = static_cast<unsigned char>(text[0]);
  for (std::size_t t = 256; t < pieces().size(); ++t) {
    const auto token             = static_cast<TokenId>(t);
    const std::string_view bytes = pieces().bytes(token);
    if (bytes.size() > pieces().bytes(best).size() && text.substr(0, bytes.size()) == bytes)
      best = token;
  }
  return best;
}

std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    tokens.push_back(longest_token(text));
    text.remove_prefix(pieces().bytes(tokens.back()).size());
  }
  return tokens;
}

// All answers of a constraint along a text, up to where the text is refused.
template <class C>
std::string walk(const C& constraint, std::span<const TokenId> tokens, FailingMemory& memory) {
  std::string seen;
  TokenMask mask(constraint.vocabulary_size());
  auto state = constraint.initial();
  for (std::size_t i = 0;; ++i) {
    memory.attempt([&] { constraint.fill_mask(state, mask.words()); });
    for (const std::uint32_t word : mask.words()) seen += std::to_string(word) + ' ';
    seen += memory.attempt([&] { return constraint.jump_forward(state); });
    seen += memory.attempt([&] { return constraint.is_accepting(state); }) ? "\n" : ".\n";
    if (i == tokens.size()) return seen;
    const auto next = memory.attempt([&] { return constraint.advance(state, tokens[i]); });
    if (!next) return seen + "refused";
    state = *next;
  }
}

template <class C>
std::string walk(const C& constraint, std::string_view text, FailingMemory& memory) {
  return walk(constraint, tokens_of(text), memory);
}

std::size_t states_of(const Constraint& constraint) {
  return constraint.automaton().size();
}
std::size_t states_of(const ToolCallFSM& calls) {
  return states_of(calls.constraint());
}

// Builds a constraint, and walks a text.
template <class Build>
void fail_in_constraint(const std::string& what, Build build, std::string_view text) {
  const auto tokens = tokens_of(text);
  fail_in_turn(
      "building " + what, [] { return VocabularyIndex(pieces()); },
      [&](VocabularyIndex& index, FailingMemory& memory) {
        const auto constraint = memory.attempt([&] { return build(index); });
        FailingMemory none;
        return walk(constraint, tokens, none);
      });
  fail_in_turn(
      "masks of " + what, [&] { return build(VocabularyIndex(pieces())); },
      [&](auto& constraint, FailingMemory& memory) {
        return walk(constraint, tokens, memory) + std::to_string(states_of(constraint));
      });
}

constexpr const char* tool_documents = R"([
  {"name": "f0", "description": "the first", "parameters": {"type": "object",
    "properties": {"a": {"type": "string", "enum": ["red", "blue"]},
                   "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
                   "c": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": false}},
    "required": ["a"]}},
  {"type": "function", "function": {"name": "f1", "parameters": {"type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "string", "pattern": "^[a-c]{1,3}$"}}}}}
])";

}  // namespace

TEST_CASE("ToolSet::parse repeats its result after any failed allocation and leaks nothing") {
  const auto read = [](const char* text) {
    return [text](std::nullptr_t, FailingMemory& memory) {
      return memory.attempt([&]() -> std::string {
        try {
          const ToolSet tools = ToolSet::parse(text);
          std::string seen;
          for (const auto& tool : tools)
            seen += tool.name + ' ' + tool.description + ' ' + tool.parameters.text() + '\n';
          return seen;
        } catch (const Error& error) {
          return error.what();
        }
      });
    };
  };
  const auto nothing = [] { return nullptr; };
  fail_in_turn("documents", nothing, read(tool_documents));
  fail_in_turn("a document that is no JSON", nothing,
               read(R"([{"name": "f", "parameters": {"a": [1, 2}}])"));
  fail_in_turn("a document of a wrong type", nothing,
               read(R"([{"name": "f", "parameters": {"type": "object", "properties": 1}}])"));
}

TEST_CASE("Constraint over a JSON Schema repeats its results after any failed allocation") {
  fail_in_constraint(
      "a JSON Schema",
      [](const VocabularyIndex& index) {
        return Constraint(index, Grammar::json_schema(R"({"type": "object",
          "properties": {"a": {"type": "string", "maxLength": 5}, "ab": {"type": "integer", "minimum": 7},
                         "c": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
          "required": ["a"], "patternProperties": {"^x": {"type": "boolean"}},
          "additionalProperties": {"type": "array", "uniqueItems": true, "items": {"enum": [1, 2, 3]}}, "minProperties": 3})"));
      },
      R"({"a": "red", "zz": [1, 2], "c": {"a": "b", "x1": true, "q": []}})");
}

TEST_CASE("Constraint over other grammars repeats its results after any failed allocation") {
  fail_in_constraint(
      "a regular expression",
      [](const VocabularyIndex& index) {
        return Constraint(index, Grammar::regex(R"((red|blue')+[0-9]{2,4}\d?[^a-z]*)"));
      },
      "redblue'1234)]");
  fail_in_constraint(
      "EBNF",
      [](const VocabularyIndex& index) {
        return Constraint(
            index,
            Grammar::ebnf(
                "root ::= (item \", \")* item\nitem ::= \"f0(\" root \")\" | [a-f]{1,3} | \"10\"+\n"));
      },
      "f0(abc, f0(10, f)), 1010");
  fail_in_constraint(
      "Lark",
      [](const VocabularyIndex& index) {
        return Constraint(
            index,
            Grammar::lark(
                "start: NAME (\",\" INT | \"(\" start \")\")*\nNAME: /[a-z_]+/i & ~/.*zz.*/\n"
                "%import common.INT\n%ignore / +/\n"));
      },
      "ab, 12(red)");
  fail_in_constraint(
      "a structural tag",
      [](const VocabularyIndex& index) {
        return Constraint(index, Grammar::structural_tag(R"({"type": "structural_tag", "format":
          {"type": "triggered_tags", "triggers": ["<f"], "at_least_one": true, "tags": [
            {"begin": "<f0>", "content": {"type": "json_schema", "json_schema":
              {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}, "end": "</tool"},
            {"begin": "<f1>", "content": {"type": "regex", "pattern": "[a-c]+"}, "end": "</f1>"}]}})"));
      },
      R"(<f0>{"a": 10}</tool ue <f1>abc</f1>)");
}

TEST_CASE("ToolCallFSM repeats its results after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  const auto calls    = [&tools](const auto& format) {
    return [&tools, format](const VocabularyIndex& index) {
      return ToolCallFSM(index, tools, format, {.parallel = true});
    };
  };
  fail_in_constraint("calls in Python", calls(PythonCall{}),
                     "[f0(a='red', b=[10, 12]), f1(a=True, b='ab')]");
  fail_in_constraint(
      "calls in JSON", calls(JsonCall::hermes()),
      "red <tool_call>\n{\"name\": \"f0\", \"arguments\": {\"a\": \"blue\", \"c\": {\"x\": 10}}}\n</tool_call>");
  fail_in_constraint(
      "calls in XML", calls(XmlCall::qwen3_coder()),
      "<tool_call>\n<function=f1>\n<parameter=b>\nabc\n</parameter>\n</function>\n</tool_call>");
}

TEST_CASE("ToolLibrary repeats its machines after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  fail_in_turn(
      "machines of a library",
      [] {
        return ToolLibrary<PythonCall>(VocabularyIndex(pieces()), PythonCall{}, {.parallel = true});
      },
      [&](const ToolLibrary<PythonCall>& library, FailingMemory& memory) {
        const auto first = memory.attempt(
            [&] { return library.machine(tools.subset(std::vector<std::size_t>{1})); });
        const auto second =
            memory.attempt([&] { return library.machine(tools, ToolChoice::required); });
        FailingMemory none;
        return walk(first, "[f1(a=True)]", none) +
               walk(second, "[f0(a='red', c={}), f1(b='c')]", none) +
               std::to_string(library.size());
      });
}

TEST_CASE(
    "Completions, explain and WithoutRepeats repeat their results after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  const auto machine  = [&] {
    return ToolCallFSM(VocabularyIndex(pieces()), tools, PythonCall{}, {.parallel = true});
  };
  const auto tokens = tokens_of("[f0(a='re");
  // Of few states, so that no search is given up: where one is, what failed before has spared it steps.
  const auto few = [] {
    return Constraint(VocabularyIndex(pieces()),
                      Grammar::regex("(red|blue')(10|12){1,2}(, [a-c])?"));
  };
  const auto prefix = tokens_of("red10");
  fail_in_turn("completions", few, [&](const Constraint& texts, FailingMemory& memory) {
    std::string seen;
    auto completions = memory.attempt([&] { return Completions(texts); });
    TokenMask mask(texts.vocabulary_size());
    auto state = texts.initial();
    for (std::size_t i = 0; i < prefix.size(); ++i) {
      seen += std::to_string(
                  memory.attempt([&] { return completions.shortest(state, 2); }).value_or(999)) +
              ' ';
      texts.fill_mask(state, mask.words());
      TokenMask narrowed = mask;
      memory.attempt([&] { completions.narrow(state, 4, (narrowed = mask).words()); });
      for (const std::uint32_t word : narrowed.words()) seen += std::to_string(word) + ' ';
      seen += memory.attempt([&] { return completions.find_text(state); }).value_or("none") + '\n';
      state = texts.advance(state, prefix[i]).value();
    }
    return seen;
  });
  fail_in_turn("explanations", machine, [&](const ToolCallFSM& calls, FailingMemory& memory) {
    std::string seen;
    auto state = calls.initial();
    for (const TokenId token : tokens) {
      seen += memory.attempt([&] { return explain(calls, state); }) + '\n';
      state = calls.advance(state, token).value();
    }
    return seen;
  });
  fail_in_turn(
      "answers without repeats", [&] { return WithoutRepeats(machine()); },
      [&](const WithoutRepeats& calls, FailingMemory& memory) {
        return walk(calls, "[f0(a='red'), f0(a='blu", memory);
      });
}

TEST_CASE("ForcedTokens repeat their tokens after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  struct Objects {
    ToolCallFSM calls;
    FastForwardTokens forced;
  };
  const auto make = [&] {
    const VocabularyIndex index(pieces());
    return Objects{ToolCallFSM(index, tools, PythonCall{}, {.choice = ToolChoice::required}),
                   FastForwardTokens(index, [](std::string_view text) { return tokens_of(text); })};
  };
  fail_in_turn("forced tokens", make, [&](const Objects& objects, FailingMemory& memory) {
    std::string seen, before;
    auto state = objects.calls.initial();
    for (const TokenId token : tokens_of("[f0(a='blue', c={\"x\": 1})]")) {
      for (const TokenId one :
           memory.attempt([&] { return objects.forced(objects.calls, state, before); })) {
        seen += std::to_string(one) + ' ';
      }
      seen += '\n';
      const auto next = objects.calls.advance(state, token);
      if (!next) return seen + "refused";
      state = *next;
      before += pieces().bytes(token);
    }
    return seen;
  });
}

TEST_CASE("Decoder repeats its answer after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  const test::RandomModel model(pieces().size(), {.seed = 7});
  const std::vector<TokenId> prompt{1, 2, 3};
  for (const bool always_ends : {false, true}) {
    fail_in_turn(
        always_ends ? "an answer that ends" : "an answer",
        [&] {
          return ToolCallFSM(VocabularyIndex(pieces()), tools, PythonCall{},
                             {.choice = ToolChoice::required});
        },
        [&](const ToolCallFSM& calls, FailingMemory& memory) {
          const Decoder decode{model, calls};
          const Output out = memory.attempt([&] {
            return decode(
                prompt,
                {.max_tokens = 24, .temperature = 0.8F, .seed = 3, .always_ends = always_ends});
          });
          std::string seen(name(out.finish));
          for (const TokenId token : out.tokens) seen += ' ' + std::to_string(token);
          for (const double one : out.log_probabilities) seen += ' ' + std::to_string(one);
          return seen;
        });
  }
}

TEST_CASE("CallStream and parse repeat their calls after any failed allocation") {
  const ToolSet tools = ToolSet::parse(tool_documents);
  const auto read     = [&](const std::string& what, const auto& format, std::string_view text) {
    const ToolCallFSM calls(VocabularyIndex(pieces()), tools, format, {.parallel = true});
    fail_in_turn(
        "a stream of calls " + what, [&] { return CallStream(calls); },
        [&](CallStream& stream, FailingMemory& memory) {
          std::string seen;
          const auto add = [&seen](const std::vector<StreamEvent>& events) {
            for (const StreamEvent& event : events) {
              seen += std::to_string(static_cast<int>(event.kind)) + ' ' +
                      std::to_string(event.call) + ' ' + event.text + '\n';
            }
          };
          for (const TokenId token : tokens_of(text)) {
            add(memory.attempt([&] { return stream.push(token); }));
          }
          add(memory.attempt([&] { return stream.finish(); }));
          return seen;
        });
    fail_in_turn(
        "calls " + what, [] { return nullptr; },
        [&](std::nullptr_t, FailingMemory& memory) {
          return memory.attempt([&] { return calls.write(calls.parse(text)); });
        });
  };
  read("in Python", PythonCall{}, "[f0(a='red', b=[10, 12]), f1(a=True, b='ab')]");
  read(
      "in JSON", JsonCall::hermes(),
      "red <tool_call>\n{\"name\": \"f0\", \"arguments\": {\"a\": \"blue\", \"c\": {\"x\": 10}}}\n</tool_call>");
  read("in XML", XmlCall::qwen3_coder(),
       "<tool_call>\n<function=f1>\n<parameter=b>\nabc\n</parameter>\n</function>\n</tool_call>");
}

TEST_CASE("Tokenizer repeats its tokens after any failed allocation") {
  const std::string file =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120a": 4,
      "<e>": 5}, "merges": ["a b", "\u0120 a"]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "added_tokens": [{"id": 5, "content": "<e>", "special": true}]})";
  fail_in_turn(
      "a tokenizer", [] { return nullptr; },
      [&](std::nullptr_t, FailingMemory& memory) {
        const Tokenizer tokenizer =
            memory.attempt([&] { return parse_tokenizer(file, "tokenizer.json"); });
        std::string seen;
        for (const TokenId token : memory.attempt(
                 [&] { return tokenizer.encode("abab a<e>b", {.parse_special = true}); })) {
          seen += std::to_string(token) + ' ';
        }
        return seen + memory.attempt([&] { return tokenizer.decode(std::vector<TokenId>{2, 4}); });
      });
  fail_in_turn(
      "a vocabulary's index", [] { return nullptr; },
      [](std::nullptr_t, FailingMemory& memory) {
        const auto index = memory.attempt([] { return VocabularyIndex(pieces()); });
        const auto constraint =
            memory.attempt([&] { return Constraint(index, Grammar::regex("[ab]+")); });
        FailingMemory none;
        return walk(constraint, "ab", none);
      });
}
