// tooldecode check: walks given texts through a constraint, token by token.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/check_totals.hpp>
#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/cross_check.hpp>
#include <program/files.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/system_files.hpp>
#include <program/text_walk.hpp>

namespace program {
namespace {

namespace td = tooldecode;
using Clock  = std::chrono::steady_clock;

struct CheckOptions {
  std::string vocabulary;
  std::string format = "python";
  std::vector<std::string> rows;
  std::string choice       = "required";
  std::string reasoning    = "no";
  bool documented_order    = false;
  bool cross_check         = false;
  bool timing              = false;
  bool lenient             = false;
  bool calls               = false;
  bool explain             = false;
  std::size_t max_inflated = max_inflated_bytes;
};

// Whether texts follow a schema, a grammar, an expression or a structural tag in their row, instead
// of being calls.
bool is_specified(const std::string& format) {
  return format == "json-schema" || format == "ebnf" || format == "lark" || format == "regex" ||
         format == "structural-tag";
}

// The row's text, or its calls written in the format.
std::string text_of(const Json& row, const Format& format, const td::ToolSet& tools) {
  if (row.contains("text")) return row.at("text").get<std::string>();
  if (row.contains("call_json") && !row["call_json"].is_null()) {
    std::vector<td::ToolCall> calls;
    const Json& written = row["call_json"];
    for (const Json& call : written.is_array() ? written : Json::array({written})) {
      calls.push_back({call.at("name").get<std::string>(), call.at("arguments")});
    }
    return format.write(calls, tools);
  }
  if (row.contains("call_python") && row["call_python"].is_string()) {
    const auto text = row["call_python"].get<std::string>();
    return format.name == "python" ? text
                                   : format.write(format_named("python").parse(text, tools), tools);
  }
  throw td::Error(td::Errc::malformed_document, "", "a row has a text, call_json or call_python");
}

std::optional<std::string> find_text(const Json& row, const char* key) {
  if (!row.contains(key) || !row[key].is_string()) return std::nullopt;
  return row[key].get<std::string>();
}
std::optional<bool> find_flag(const Json& row, const char* key) {
  if (!row.contains(key) || !row[key].is_boolean()) return std::nullopt;
  return row[key].get<bool>();
}

// The texts of a row with a specification.
std::vector<CheckedText> specified_texts(const Json& row, const Json& id) {
  if (auto text = find_text(row, "text")) {
    return {{id, *std::move(text), find_flag(row, "complete").value_or(true), std::nullopt}};
  }
  if (!row.contains("tests") || !row["tests"].is_array()) {
    throw td::Error(td::Errc::malformed_document, "", "a row has a text or tests");
  }
  const std::string prefix = (id.is_string() ? id.get<std::string>() : id.text()) + '#';
  std::vector<CheckedText> texts;
  for (const Json& test : row["tests"]) {
    auto text = test.is_object() ? find_text(test, "text") : std::nullopt;
    if (!text && test.is_object() && test.contains("data")) {
      const Json& data = test["data"];
      text = td::text::ExactNumber::is_in(data) ? td::text::write_json(data) : data.text();
    }
    if (!text) throw td::Error(td::Errc::malformed_document, "", "a test has a text or data");
    texts.push_back({prefix + std::to_string(texts.size()), *std::move(text),
                     find_flag(test, "complete").value_or(true), find_flag(test, "valid")});
  }
  return texts;
}

// "<place>: <keyword>", or the kind of error if it does not concern a keyword.
std::string refusal(const td::Error& error) {
  std::string what(name(error.code()));
  const std::size_t slash = error.where().rfind('/');
  if (slash != std::string::npos && error.code() != td::Errc::unsatisfiable_schema) {
    const std::string last = error.where().substr(slash + 1);
    if (last.find_first_not_of("0123456789") != std::string::npos) what = last;
  }
  return error.where() + ": " + what;
}

class Check {
 public:
  explicit Check(const CheckOptions& options)
      : options_(options),
        tokenizer_(open_tokenizer(options.vocabulary, options.max_inflated)),
        cache_(tokenizer_.vocabulary()) {}

  [[nodiscard]] const CheckTotals& totals() const noexcept { return totals_; }

  std::vector<Json> check_row(const Json& row) {
    const Json id = row.contains("id") ? td::text::ExactNumber::rounded(row["id"]) : Json();
    std::vector<Json> verdicts;
    try {
      if (is_specified(options_.format)) {
        verdicts = check_specified(row, id);
      } else {
        verdicts.push_back(check_calls(row, id));
      }
    } catch (const td::Error& error) {
      verdicts.push_back(rejection(id, error));
    }
    totals_.rows += verdicts.size();
    return verdicts;
  }

 private:
  Json check_calls(const Json& row, const Json& id) {
    const Format& format = format_named(options_.format);
    const char* key      = row.contains("functions") ? "functions"
                           : row.contains("tools")   ? "tools"
                                                     : "apis";
    if (!row.contains(key)) {
      throw td::Error(td::Errc::malformed_document, "", "a row has functions or tools");
    }
    const td::ToolSet tools = td::ToolSet::from_json(
        row[key], {},
        options_.lenient ? td::tools::LenientReadings::all() : td::tools::LenientReadings());
    const CheckedText text{id, text_of(row, format, tools),
                           find_flag(row, "complete").value_or(true)};
    td::ChoiceOptions choice =
        parse_choice(row.contains("choice") ? row["choice"].get<std::string>() : options_.choice);
    choice.documented_order = options_.documented_order;
    choice.reasoning        = parse_reasoning(options_.reasoning, format);
    choice.whitespace       = td::SchemaOptions{}.whitespace;  // the writer's choice
    choice.max_calls        = td::text::Occurrences::unbounded;
    const auto start        = Clock::now();
    const td::ToolCallFSM calls(cache_, tools, format.format, choice);
    const double build = built_since(start);
    CrossCheck cross_check(calls, tokenizer_.vocabulary());
    Json verdict = judge(text, calls, build, cross_check,
                         [&] { return td::explain_refusal(calls, text.text); });
    if (options_.calls && verdict["accepted"] == true) {
      verdict["calls"] = Json::array();
      for (const td::ToolCall& call : calls.parse(text.text)) {
        verdict["calls"].push_back({{"name", call.name}, {"arguments", call.arguments}});
      }
    }
    return verdict;
  }

  td::SchemaOptions schema_options(const Json& row) const {
    td::SchemaOptions options{.documented_order = options_.documented_order,
                              .every_spelling   = true};
    if (!row.contains("documents")) return options;
    if (!row["documents"].is_object()) {
      throw td::Error(td::Errc::malformed_document, "", "documents are an object of schemas");
    }
    for (const auto& [uri, document] : row["documents"].items()) {
      options.rules.documents.emplace(uri, document);
    }
    return options;
  }

  td::Constraint constrain(const Json& row) const { return {cache_, grammar(row)}; }

  td::Grammar grammar(const Json& row) const {
    const td::Vocabulary* vocabulary = &cache_.vocabulary();
    if (options_.format == "json-schema") {
      return td::Grammar::json_schema(row["schema"], schema_options(row));
    }
    if (options_.format == "structural-tag") {
      return td::Grammar::structural_tag(row["spec"],
                                         {.vocabulary = vocabulary, .every_spelling = true});
    }
    const auto spec = row["spec"].get<std::string>();
    if (options_.format == "regex") return td::Grammar::regex(spec);
    if (options_.format == "lark") {
      return td::Grammar::lark(spec, {.vocabulary = vocabulary, .every_spelling = true});
    }
    const std::string root = find_text(row, "root").value_or("root");
    return td::Grammar::ebnf(spec, {.root = root, .vocabulary = vocabulary});
  }

  std::vector<Json> check_specified(const Json& row, const Json& id) {
    const bool is_document = options_.format == "structural-tag";  // a document instead of its text
    if (options_.format == "json-schema"
            ? !row.contains("schema")
            : !find_text(row, "spec") && !(is_document && row.contains("spec"))) {
      throw td::Error(td::Errc::malformed_document, "",
                      options_.format == "json-schema" ? "a row has a schema" : "a row has a spec");
    }
    const std::vector<CheckedText> texts = specified_texts(row, id);
    std::vector<Json> verdicts;
    std::optional<td::Constraint> constraint;
    const auto start = Clock::now();
    try {
      constraint.emplace(constrain(row));
    } catch (const td::Error& error) {
      const std::string code(name(error.code()));
      for (const CheckedText& one : texts) {
        ++totals_.refused;
        ++totals_.reasons[code];
        verdicts.push_back(
            {{"id", one.id}, {"refused", refusal(error)}, {"reason", code + ": " + error.what()}});
      }
      return verdicts;
    }
    const double build = built_since(start);
    CrossCheck cross_check(*constraint, tokenizer_.vocabulary());
    for (const CheckedText& one : texts) {
      try {
        verdicts.push_back(judge(one, *constraint, build, cross_check, [&] {
          return options_.format == "json-schema"
                     ? td::explain_refusal(*constraint, one.text, row["schema"],
                                           schema_options(row))
                     : td::explain_refusal(*constraint, one.text);
        }));
      } catch (const td::Error& error) {
        verdicts.push_back(rejection(one.id, error));
      }
      if (one.valid) {
        ++totals_.judged;
        totals_.right += verdicts.back()["accepted"] == *one.valid;
      }
    }
    return verdicts;
  }

  double built_since(Clock::time_point start) {
    const double build = microseconds_since(start);
    if (options_.timing) totals_.build.push_back(build);
    return build;
  }

  template <td::ConstraintPolicy C, class Explain>
  Json judge(const CheckedText& text, const C& constraint, double build_us,
             CrossCheck<C>& cross_check, const Explain& explain) {
    Json verdict{{"id", text.id}};
    verdict.update(walk_text(constraint, tokenizer_, text, options_.timing, totals_));
    if (options_.timing) verdict["build_us"] = build_us;
    if (options_.cross_check) {
      if (auto disagreement = cross_check.find_disagreement(text.text)) {
        verdict["disagreement"] = *std::move(disagreement);
        ++totals_.disagreements;
      }
    }
    if (verdict["accepted"] == true) {
      ++totals_.accepted;
    } else {
      if (const auto refused = options_.explain ? explain() : std::nullopt) {
        verdict["refusal"] = refused->json();
        std::cerr << text.id.text() << ": " << refused->text() << "\n\n";
      }
      ++totals_.reasons[verdict["reason"].get<std::string>()];
    }
    return verdict;
  }

  Json rejection(const Json& id, const td::Error& error) {
    const std::string code(name(error.code()));
    ++totals_.reasons[code];
    Json verdict{{"id", id},
                 {"accepted", false},
                 {"error_at", nullptr},
                 {"reason", code + ": " + error.what()},
                 {"tokens", 0},
                 {"forced_tokens", 0}};
    if (error.code() != td::Errc::unsupported_keyword &&
        error.code() != td::Errc::unsupported_pattern && !totals_.bad_input) {
      totals_.bad_input = id.text() + ": " + verdict["reason"].get<std::string>();
    }
    return verdict;
  }

  const CheckOptions& options_;
  td::Tokenizer tokenizer_;
  td::VocabularyIndex cache_;
  CheckTotals totals_;
};

void run_check(const CheckOptions& options) {
  if (!is_specified(options.format)) {
    (void)parse_reasoning(options.reasoning, format_named(options.format));
  }
  (void)parse_choice(options.choice);
  Check check(options);
  const CheckTotals& totals = check.totals();
  const auto start          = Clock::now();
  auto shown                = start;
  for (const std::string& path : options.rows) {
    std::istringstream lines(read_file(path, options.max_inflated));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.empty()) continue;
      Json row;
      try {
        row = td::text::parse_exact_json(line);
      } catch (const td::Error& error) {
        throw td::Error(error.code(), path + ":" + std::to_string(number), error.what());
      }
      if (!row.is_object()) {
        throw td::Error(td::Errc::malformed_document, path + ":" + std::to_string(number),
                        "a row is a JSON object");
      }
      for (Json& verdict : check.check_row(row)) {
        if (options.timing) verdict["peak_bytes"] = peak_memory_bytes();
        std::cout << verdict.text() << '\n';
      }
      if (Clock::now() - shown > std::chrono::seconds(2)) {
        shown = Clock::now();
        std::cerr << "  " << totals.rows << " rows, " << totals.accepted << " accepted ...\n";
      }
    }
  }
  std::cout.flush();
  totals.summarise(options.format, microseconds_since(start) / 1e6, options.timing);
  if (totals.bad_input) {
    throw td::Error(td::Errc::malformed_document, "row " + *totals.bad_input,
                    "rows with bad input were rejected");
  }
  if (totals.disagreements != 0) {
    throw std::runtime_error("bytes, tokens and masks disagree about " +
                             std::to_string(totals.disagreements) + " texts");
  }
}

}  // namespace

void add_check(CommandLine& line) {
  auto options = std::make_shared<CheckOptions>();
  Command sub  = line.command(
      "check",
      "Walk texts through the constraint of their tools, schemas, grammars, expressions or "
       "structural tags; one verdict per text on stdout");
  sub.option(
         "--vocabulary", options->vocabulary,
         "tokenizer.json, GGUF, tokenizer.model, .tiktoken, tekken.json or .json.gz; or a directory with a tokenizer.json")
      .required();
  sub.option(
         "--format", options->format,
         "what the texts are. Calls of a row's tools: " + format_names() +
             ", or a .json file with a description. Texts of a row's specification: json-schema, "
             "one JSON value; ebnf, GBNF or EBNF; lark, Lark's syntax as llguidance reads it; "
             "regex, a pattern of ECMA-262 that matches the whole text; structural-tag, "
             "XGrammar's. A specification that is refused gives \"refused\": \"<place>: <keyword "
             "or error>\" in place of \"accepted\"")
      .required();
  sub.option("--choice", options->choice,
             "of calls, for rows without one: auto, none, required or a tool's name")
      .shows_default();
  add_reasoning_option(sub, options->reasoning);
  sub.flag("--documented-order", options->documented_order,
           "admit arguments and properties in the documented order only");
  sub.flag("--cross-check", options->cross_check,
           "judge each text byte by byte and by random tokens too, compare each mask on the "
           "way, and on random ways on from there, with what may follow for every token of "
           "the vocabulary, and add \"disagreement\" where they differ; for small "
           "vocabularies");
  sub.flag(
      "--lenient", options->lenient,
      "read documents of tools against JSON Schema where they are untidy: a default of null "
      "admits null, an enum outweighs its type, a required name that is no property is dropped");
  sub.flag(
      "--explain", options->explain,
      "show each refused text on stderr with a caret at the first byte that cannot follow, what "
      "was expected there, and the keywords of the schema or of the tools' documents that forbid "
      "it; the verdict has the same as \"refusal\"");
  sub.flag("--calls", options->calls, "add the calls that the format reads in an accepted text");
  sub.flag("--timing", options->timing,
           "add microseconds per build and per mask, and the most memory so far");
  sub.option(
         "rows", options->rows,
         "JSONL (or .gz), a row a line, each with an id. For calls: functions, tools or apis, and text, or "
         "call_json or call_python, which are written in the format; choice, if it differs. For "
         "json-schema: schema and text, and documents, more schemas by URI, if it refers to others; for the other specifications: spec and text, for ebnf also "
         "root, if the first rule has another name. In place of text a specification may have tests: "
         "a list of objects with text or data, and valid, the expected verdict, if it is known; "
         "their ids are \"id#k\", k from 0. \"complete\": false beside a text says that it is the "
         "beginning of one")
      .required();
  sub.option("--max-inflated", options->max_inflated,
             "most bytes that a compressed file may inflate to")
      .shows_default();
  sub.runs([options] { run_check(*options); });
}

}  // namespace program
