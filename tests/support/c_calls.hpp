/// \file
/// Calls of the C interface as its tests make them: handles that free themselves, codes with their
/// errors, and one constraint of each kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

namespace tooldecode::test::c {

namespace td = tooldecode;

template <auto free>
struct Free {
  template <class Handle>
  void operator()(Handle* handle) const {
    free(handle);
  }
};
using Error       = std::unique_ptr<td_error, Free<td_error_free>>;
using Vocabulary  = std::unique_ptr<td_vocabulary, Free<td_vocabulary_free>>;
using Constraint  = std::unique_ptr<td_constraint, Free<td_constraint_free>>;
using Refusal     = std::unique_ptr<td_refusal, Free<td_refusal_free>>;
using Pool        = std::unique_ptr<td_pool, Free<td_pool_free>>;
using Compilation = std::unique_ptr<td_compilation, Free<td_compilation_free>>;
using CallStream  = std::unique_ptr<td_call_stream, Free<td_call_stream_free>>;
using Completions = std::unique_ptr<td_completions, Free<td_completions_free>>;
using Words       = std::vector<std::uint32_t>;

inline td_text text(std::string_view from) {
  return {from.data(), from.size()};
}

// The outcome of a call: its code, and the error's place and text, if any.
struct Told {
  td_code code = TD_OK;
  std::string where{};
  std::string what{};
};
template <class Call>
Told told(const Call& call) {
  td_error* raw      = nullptr;
  const td_code code = call(&raw);
  const Error error(raw);
  CHECK((code >= TD_ERROR) == (error != nullptr));
  CHECK(td_error_code(raw) == (code >= TD_ERROR ? code : TD_OK));
  return {code, td_error_where(raw), td_error_text(raw)};
}
template <class Call>
void require_ok(const Call& call) {
  const Told result = told(call);
  INFO(result.what);
  REQUIRE(result.code == TD_OK);
}

inline Vocabulary make_vocabulary(const td::Vocabulary& from) {
  std::string bytes;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint8_t> types;
  for (std::size_t t = 0; t < from.token_count(); ++t) {
    const auto token = static_cast<td::TokenId>(t);
    bytes += from.name(token);
    ends.push_back(bytes.size());
    types.push_back(static_cast<std::uint8_t>(from.type(token)));
  }
  td_vocabulary_options options{};
  options.struct_size     = sizeof options;
  options.end_tokens      = from.end_tokens().data();
  options.end_token_count = from.end_tokens().size();
  options.size            = from.size();
  td_vocabulary* made     = nullptr;
  require_ok([&](td_error** error) {
    return td_vocabulary_make(bytes.data(), ends.data(), types.data(), ends.size(), &options, &made,
                              error);
  });
  return Vocabulary(made);
}

inline td_specification specification_of(std::int32_t kind, std::string_view from = {}) {
  td_specification specification{};
  specification.struct_size = sizeof specification;
  specification.kind        = kind;
  specification.text        = text(from);
  return specification;
}

inline Constraint make_constraint(const td_vocabulary* vocabulary, const td_specification& from) {
  td_constraint* made = nullptr;
  require_ok([&](td_error** error) { return td_constraint_make(vocabulary, &from, &made, error); });
  return Constraint(made);
}
inline td_state initial(const td_constraint* constraint) {
  td_state state{};
  REQUIRE(td_initial(constraint, &state, nullptr) == TD_OK);
  return state;
}
inline Completions make_completions(const td_constraint* constraint) {
  td_completions* made = nullptr;
  require_ok([&](td_error** error) { return td_completions_make(constraint, &made, error); });
  return Completions(made);
}
inline Words mask_of(const td_constraint* constraint, const td_state& state, std::size_t width) {
  Words words(width, ~0U);
  REQUIRE(td_fill_mask(constraint, &state, words.data(), width, nullptr) == TD_OK);
  return words;
}

inline constexpr std::string_view tool_documents = R"([
  {"name": "abc", "parameters": {"type": "object", "properties": {
    "a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}},
  {"name": "abcd", "parameters": {"type": "object", "properties": {}}}])";
inline constexpr std::string_view schema =
    R"({"type": "object", "properties": {"a": {"enum": ["ab", 1, null]}, "b": {"type": "number"}}})";
inline constexpr std::string_view pattern = "[a-e]{2,5}(: [0-9]+)?";
inline constexpr std::string_view grammar = R"(start ::= "[" item ("," item)* "]"
item ::= [a-c]+ | start)";
inline constexpr std::string_view tag =
    R"({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<a"], "tags": [
      {"begin": "<ab>", "content": {"type": "regex", "pattern": "[0-9]{1,3}"}, "end": "</a>"}]}})";
inline constexpr std::string_view lark =
    "start: \"[\" NAME (\",\" NAME)* \"]\"\nNAME: /[a-c]+/\n%ignore \" \"";
inline const td_text labels[] = {{"abc", 3}, {"abd", 3}, {"cab 1", 5}};

// Each kind of constraint, by the C interface and by the library itself.
struct Kind {
  std::string name;
  td_specification specification;
  td::Constraint expected;
};
inline std::vector<Kind> kinds(const td::VocabularyIndex& index) {
  auto tools                           = specification_of(TD_TOOLS, tool_documents);
  tools.format                         = "hermes";
  tools.calls                          = TD_CALLS_REQUIRED;
  auto named                           = specification_of(TD_TOOLS, tool_documents);
  named.format                         = "python";
  named.calls                          = TD_CALLS_NAMED;
  named.tool_name                      = "abcd";
  named.reasoning                      = TD_REASONING_OPEN;
  static const std::string description = td::formats::format_text(td::format_named("mistral-args"));
  auto described                       = specification_of(TD_TOOLS, tool_documents);
  described.format                     = description.c_str();
  described.calls                      = TD_CALLS_REQUIRED;
  auto ebnf                            = specification_of(TD_EBNF, grammar);
  ebnf.root                            = "start";
  auto choice                          = specification_of(TD_CHOICE);
  choice.choices                       = labels;
  choice.choice_count                  = 3;
  auto values                          = specification_of(TD_JSON_SCHEMA, schema);
  values.whitespace                    = TD_NO_WHITESPACE;
  const auto set                       = td::ToolSet::parse(tool_documents);
  td::SchemaOptions tight;
  tight.whitespace = 0;
  return {{"tools", tools,
           td::ToolCallFSM(index, set, td::JsonCall::hermes(), {.choice = td::ToolChoice::required})
               .constraint()},
          {"named tool", named,
           td::ToolCallFSM(index, set, td::format_named("python").format,
                           {.choice    = td::ToolChoice::named,
                            .name      = "abcd",
                            .reasoning = td::formats::ReasoningDelimiters{"", "</think>"}})
               .constraint()},
          {"schema", specification_of(TD_JSON_SCHEMA, schema),
           td::Constraint(index, td::Grammar::json_schema(schema))},
          {"schema without white space", values,
           td::Constraint(index, td::Grammar::json_schema(schema, tight))},
          {"regex", specification_of(TD_REGEX, pattern),
           td::Constraint(index, td::Grammar::regex(pattern))},
          {"grammar", ebnf,
           td::Constraint(index, td::Grammar::ebnf(grammar, {.root       = "start",
                                                             .vocabulary = &index.vocabulary()}))},
          {"choice", choice, td::Constraint(index, td::Grammar::choice({"abc", "abd", "cab 1"}))},
          {"structural tag", specification_of(TD_STRUCTURAL_TAG, tag),
           td::Constraint(index,
                          td::Grammar::structural_tag(tag, {.vocabulary = &index.vocabulary()}))},
          {"Lark grammar", specification_of(TD_LARK, lark),
           td::Constraint(index, td::Grammar::lark(lark, {.vocabulary = &index.vocabulary()}))},
          {"tools in a described format", described,
           td::ToolCallFSM(index, set, td::DelimitedCall::mistral(),
                           {.choice = td::ToolChoice::required})
               .constraint()}};
}

// A schema with so many patterns that it compiles for a very long time.
inline td_specification endless() {
  static const std::string patterns = [] {
    std::string made = R"({"properties": {)";
    for (int i = 0; i < 20'000; ++i) {
      const std::string number = std::to_string(i);
      made += (i == 0 ? "\"" : ", \"") + number + R"(": {"pattern": "^(a|b)*a(a|b){10}c)" + number +
              R"($"})";
    }
    return made + "}}";
  }();
  auto specification         = specification_of(TD_JSON_SCHEMA, patterns);
  specification.limits.steps = ~std::uint64_t{0};
  specification.limits.bytes = ~std::uint64_t{0};
  return specification;
}

}  // namespace tooldecode::test::c
