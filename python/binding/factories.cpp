#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

#include "handles.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;
using c_interface::Built;

// What building may cost; 0: as the library has it.
BuildLimits limits_of(std::uint64_t steps, std::uint64_t bytes) {
  BuildLimits limits;
  if (steps != 0) limits.steps = steps;
  if (bytes != 0) limits.bytes = bytes;
  return limits;
}

// Builds while other Python threads run.
template <class Build>
ConstraintHandle make(const VocabularyHandle& vocabulary, const BuildLimits& limits, Build build) {
  const nb::gil_scoped_release release;
  const BuildBudget budget(limits);
  BuildBudget::spend(0);
  return ConstraintHandle({vocabulary.tokens, build(vocabulary.tokens->index)});
}

using Reasoning = std::variant<bool, std::pair<std::string, std::string>>;

ToolChoice choice_of(const std::string& name) {
  constexpr std::pair<std::string_view, ToolChoice> known[] = {{"auto", ToolChoice::automatic},
                                                               {"none", ToolChoice::none},
                                                               {"required", ToolChoice::required},
                                                               {"named", ToolChoice::named}};
  for (const auto& [word, choice] : known) {
    if (word == name) return choice;
  }
  throw Error(Errc::invalid_option, "choice", name, "must be auto, none, required or named");
}

ToolEnforcement enforcement_of(const std::string& name) {
  if (name == "strict") return ToolEnforcement::strict;
  if (name == "relax") return ToolEnforcement::relax;
  if (name == "drop") return ToolEnforcement::drop;
  throw Error(Errc::invalid_option, "enforcement", name, "must be strict, relax or drop");
}

CallsHandle tool_calls(const VocabularyHandle& vocabulary, nb::handle documents,
                       nb::handle format_or_name, const std::string& choice,
                       const std::string& name, const Reasoning& reasoning, bool parallel,
                       std::uint32_t max_calls, bool documented_order, std::uint32_t whitespace,
                       nb::handle text_schema, const std::string& enforcement,
                       std::uint64_t max_steps, std::uint64_t max_bytes) {
  const NamedFormat format = formats::find_format(json_text(format_or_name));
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  const std::string text   = json_text(documents);
  ChoiceOptions options{.choice           = choice_of(choice),
                        .name             = name,
                        .parallel         = parallel,
                        .max_calls        = max_calls,
                        .documented_order = documented_order,
                        .whitespace       = whitespace,
                        .limits           = limits,
                        .enforcement      = enforcement_of(enforcement)};
  if (!name.empty() && choice != "named") {
    throw Error(Errc::invalid_option, "name", name, "goes with choice=\"named\" alone");
  }
  if (max_calls == 0)
    throw Error(Errc::invalid_option, "max_calls", max_calls, "must be 1 or more");
  if (const auto* delimiters = std::get_if<1>(&reasoning)) {
    options.reasoning = formats::ReasoningDelimiters{delimiters->first, delimiters->second};
  } else if (std::get<bool>(reasoning)) {
    options.reasoning = format.reasoning;
  }
  if (!text_schema.is_none()) {
    try {
      options.text_schema = text::parse_exact_json(json_text(text_schema));
    } catch (const Error& error) {
      throw error.within("text_schema");
    }
  }
  return CallsHandle(make(vocabulary, limits, [&](const VocabularyIndex& index) {
    ToolCallFSM calls(index, ToolSet::parse(text, limits, {}, options.enforcement), format.format,
                      options);
    return Built{calls.constraint(), std::move(calls)};
  }));
}

ConstraintHandle json_schema(const VocabularyHandle& vocabulary, nb::handle schema,
                             bool documented_order, std::uint32_t whitespace,
                             std::uint64_t max_steps, std::uint64_t max_bytes) {
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  const std::string text   = json_text(schema);
  return make(vocabulary, limits, [&](const VocabularyIndex& index) {
    return c_interface::build_schema(
        index,
        {text, {.documented_order = documented_order, .whitespace = whitespace, .limits = limits}});
  });
}

ConstraintHandle regex(const VocabularyHandle& vocabulary, const std::string& pattern,
                       std::uint64_t max_steps, std::uint64_t max_bytes) {
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  return make(vocabulary, limits, [&](const VocabularyIndex& index) {
    return Built{Constraint(index, Grammar::regex(pattern, limits))};
  });
}

ConstraintHandle ebnf(const VocabularyHandle& vocabulary, const std::string& grammar,
                      const std::string& root, std::uint64_t max_steps, std::uint64_t max_bytes) {
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  return make(vocabulary, limits, [&](const VocabularyIndex& index) {
    return Built{Constraint(
        index, Grammar::ebnf(grammar,
                             {.root = root, .vocabulary = &index.vocabulary(), .limits = limits}))};
  });
}

ConstraintHandle lark(const VocabularyHandle& vocabulary, const std::string& grammar,
                      std::uint32_t whitespace, std::uint64_t max_steps, std::uint64_t max_bytes) {
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  return make(vocabulary, limits, [&](const VocabularyIndex& index) {
    return Built{Constraint(index, Grammar::lark(grammar, {.vocabulary = &index.vocabulary(),
                                                           .whitespace = whitespace,
                                                           .limits     = limits}))};
  });
}

ConstraintHandle structural_tag(const VocabularyHandle& vocabulary, nb::handle tag,
                                std::uint32_t whitespace, std::uint64_t max_steps,
                                std::uint64_t max_bytes) {
  const BuildLimits limits = limits_of(max_steps, max_bytes);
  const std::string text   = json_text(tag);
  return make(vocabulary, limits, [&](const VocabularyIndex& index) {
    return Built{Constraint(index, Grammar::structural_tag(text, {.vocabulary = &index.vocabulary(),
                                                                  .whitespace = whitespace,
                                                                  .limits     = limits}))};
  });
}

ConstraintHandle choice(const VocabularyHandle& vocabulary,
                        const nb::typed<nb::sequence, nb::object>& texts, std::uint64_t max_steps,
                        std::uint64_t max_bytes) {
  std::vector<std::string> all;
  for (const nb::handle text : texts) {
    if (!nb::isinstance<nb::str>(text) && !nb::isinstance<nb::bytes>(text)) {
      throw Error(Errc::invalid_option, "texts/" + std::to_string(all.size()),
                  "must be str or bytes");
    }
    all.push_back(json_text(text));
  }
  return make(vocabulary, limits_of(max_steps, max_bytes), [&](const VocabularyIndex& index) {
    return Built{Constraint(index, Grammar::choice(all))};
  });
}

std::vector<std::string> formats() {
  std::vector<std::string> names;
  for (const NamedFormat& format : named_formats()) names.push_back(format.name);
  return names;
}

// What an answer holds where it calls tools: one of these texts.
std::vector<std::string> openings(nb::handle format_or_name) {
  constexpr std::string_view any = "tooldecode_any";
  const NamedFormat format       = formats::find_format(json_text(format_or_name));
  const ToolSet tools            = ToolSet::parse(R"([{"name": "tooldecode_any"}])");
  Grammar grammar;
  const std::size_t chosen[] = {0};
  std::vector<std::string> texts;
  for (const CallOpening& opening : format.format.parts(grammar, tools, chosen, {}).openings) {
    texts.push_back(opening.delimiter.substr(0, opening.delimiter.find(any)));
  }
  return texts;
}

constexpr const char* limits_text =
    "max_steps, max_bytes: what building may cost, counted and not timed (0: 50,000,000 and 256 MiB);\n"
    "past it Error limit_exceeded. Other threads run while it builds, so that an executor of\n"
    "concurrent.futures builds in the background.";

}  // namespace

void bind_factories(nb::module_& module) {
  const std::string ends = std::string("\n\n") + limits_text;
  const auto add = [&](const char* name, auto make, const std::string& text, const auto&... extra) {
    module.def(name, make, "vocabulary"_a, extra..., "max_steps"_a = 0, "max_bytes"_a = 0,
               (text + ends).c_str());
  };
  module.def("formats", &formats, "The names of the call formats.");
  module.def(
      "openings", &openings, "format"_a,
      nb::sig("def openings(format: str | dict[str, typing.Any]) -> list[str]"),
      "The texts that open calls in a format, see `tool_calls`: an answer that holds none of them calls\n"
      "no tool.");
  add("tool_calls", &tool_calls,
      "The constraint of answers that may call tools.\n\n"
      "tools: documents as OpenAI, MCP or JSON Schema have them, a list or its JSON text.\n"
      "format: a name of formats(), several such as `hermes,json-fence,json` or `auto:qwen`, or the\n"
      "description of a format, a dict or its JSON text.\n"
      "choice: auto, none, required or named, with the tool's `name`.\n"
      "reasoning: whether a block of reasoning may precede the answer, between the delimiters of the\n"
      "format's models or the pair given; a first one that is empty: the prompt has opened the block.\n"
      "whitespace: most bytes of optional white space (0: what the format writes).\n"
      "text_schema: a JSON Schema for what an answer is where it makes no calls.\n"
      "enforcement: what happens to a tool that cannot be enforced: `strict` is an error, `relax` gives up\n"
      "the least that helps, `drop` leaves the tool out; ToolCallFSM.not_enforced says what and why.\n\n"
      "Errors have the JSON pointer of what a document gets wrong.",
      nb::arg("tools"), nb::arg("format"), nb::kw_only(), nb::arg("choice") = "auto",
      nb::arg("name") = "", nb::arg("reasoning") = false, nb::arg("parallel") = true,
      nb::arg("max_calls") = 16, nb::arg("documented_order") = false, nb::arg("whitespace") = 0,
      nb::arg("text_schema") = nb::none(), nb::arg("enforcement") = "strict");
  add("json_schema", &json_schema,
      "The constraint of one value of a JSON Schema, given as its text, as Python has it, or as a class of\n"
      "Pydantic's.\n\n"
      "Every keyword is enforced, or refused by an Error with its JSON pointer.",
      nb::arg("schema"), nb::kw_only(), nb::arg("documented_order") = false,
      nb::arg("whitespace") = 40);
  add("regex", &regex, "The constraint of texts that an ECMA-262 pattern matches as a whole.",
      nb::arg("pattern"), nb::kw_only());
  add("ebnf", &ebnf, "The constraint of texts of a grammar in GBNF or XGrammar's EBNF.",
      nb::arg("grammar"), nb::arg("root") = "root", nb::kw_only());
  add("lark", &lark,
      "The constraint of texts of a grammar in Lark's syntax, as llguidance reads it.\n\n"
      "What is not supported is refused by an Error with its byte.",
      nb::arg("grammar"), nb::kw_only(), nb::arg("whitespace") = 40);
  add("structural_tag", &structural_tag,
      "The constraint of a structural tag, the JSON of XGrammar, vLLM and SGLang.", nb::arg("tag"),
      nb::kw_only(), nb::arg("whitespace") = 40);
  add("choice", &choice, "The constraint of one of some texts, str or bytes.", nb::arg("texts"),
      nb::kw_only());
}

}  // namespace tooldecode::python
