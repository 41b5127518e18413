// tooldecode check: walks given texts through a constraint, token by token.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/exact_number.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/commands.hpp>
#include <program/files.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>

namespace program {
namespace {

namespace td = tooldecode;
using Clock  = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

constexpr const char* json_schema = "json-schema";

struct CheckOptions {
  std::string vocabulary;
  std::string format = "python";
  std::vector<std::string> rows;
  std::string choice       = "required";
  std::string reasoning    = "no";
  bool documented_order    = false;
  bool timing              = false;
  std::size_t max_inflated = most_inflated_bytes;
};

struct Percentiles {
  double mean = 0, p50 = 0, p99 = 0;
};

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const double value : values) total += value;
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {total / static_cast<double>(values.size()), at(0.5), at(0.99)};
}

// A byte as a person reads it.
std::string quoted(std::string_view text, std::size_t at) {
  if (at >= text.size()) return "the end of the text";
  return Json(std::string(1, text[at])).dump(-1, ' ', true, Json::error_handler_t::replace);
}

struct Totals {
  std::size_t rows = 0, accepted = 0, refused = 0, tokens = 0, forced = 0;
  std::size_t judged = 0, right = 0;  // of the tests whose rows say what is valid
  std::vector<double> build, first, masks;
  std::map<std::string, std::size_t> reasons;
  std::optional<std::string> bad_input;
};

// Walks one text; every token must be in the mask, and the text must be able to end.
template <td::Constraint C>
Json walk(const C& constraint, const td::Tokenizer& tokenizer, const std::string& text, bool timing,
          Totals& totals) {
  Json verdict{
      {"accepted", false}, {"error_at", nullptr}, {"reason", nullptr}, {"expected", nullptr}};
  std::size_t tokens = 0, forced = 0, offset = 0;
  std::vector<double> masks;
  td::TokenMask mask(constraint.vocabulary_size());
  auto state      = constraint.initial();
  const auto fill = [&] {
    const auto start = Clock::now();
    constraint.fill_mask(state, mask.words());
    masks.push_back(microseconds_since(start));
  };
  const auto refuse = [&](std::size_t at, std::string reason) {
    verdict["error_at"] = at;
    verdict["reason"]   = std::move(reason);
    verdict["expected"] = td::explain(constraint, state);
  };
  for (const td::TokenId token : tokenizer.encode(text)) {
    fill();
    const std::string_view bytes = tokenizer.vocabulary().bytes(token);
    const auto next              = constraint.advance(state, token);
    if (!next || !mask.contains(token)) {
      std::size_t good = 0;
      for (; good < bytes.size(); ++good) {
        const auto after = constraint.advance_bytes(state, bytes.substr(good, 1));
        if (!after) break;
        state = *after;
      }
      refuse(offset + good, good < bytes.size()
                                ? quoted(text, offset + good) + " cannot follow here"
                                : "the mask and the automaton disagree");
      break;
    }
    ++tokens;
    forced += mask.count() == 1;
    offset += bytes.size();
    state = *next;
  }
  if (verdict["reason"].is_null()) {
    fill();
    const auto ends  = tokenizer.vocabulary().end_tokens();
    const bool ended = constraint.is_accepting(state);
    if (!ended) {
      refuse(text.size(), "the text ends too early");
    } else if (!ends.empty() && !mask.contains(ends[0])) {
      refuse(text.size(), "the mask and the automaton disagree");
    } else {
      verdict["accepted"] = true;
    }
  }
  verdict["tokens"]        = tokens;
  verdict["forced_tokens"] = forced;
  totals.tokens += tokens;
  totals.forced += forced;
  if (timing && !masks.empty()) {
    const Percentiles p      = percentiles(masks);
    verdict["first_mask_us"] = masks[0];
    verdict["mask_us"]       = {{"mean", p.mean}, {"p50", p.p50}, {"p99", p.p99}};
    totals.first.push_back(masks[0]);
    totals.masks.insert(totals.masks.end(), masks.begin(), masks.end());
  }
  return verdict;
}

// The row's text: as given, or its calls written in the format.
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

Json rejection(const Json& id, const td::Error& error, Totals& totals) {
  const std::string code(name(error.code()));
  ++totals.reasons[code];
  Json verdict{{"id", id},
               {"accepted", false},
               {"error_at", nullptr},
               {"reason", code + ": " + error.what()},
               {"tokens", 0},
               {"forced_tokens", 0}};
  if (error.code() != td::Errc::unsupported_keyword &&
      error.code() != td::Errc::unsupported_pattern && !totals.bad_input) {
    totals.bad_input = id.dump() + ": " + verdict["reason"].get<std::string>();
  }
  return verdict;
}

// The verdict on one text, and what it adds to the totals.
template <td::Constraint C>
Json judge(const Json& id, const C& constraint, const std::string& text, double build_us,
           const CheckOptions& options, const td::Tokenizer& tokenizer, Totals& totals) {
  Json verdict{{"id", id}};
  verdict.update(walk(constraint, tokenizer, text, options.timing, totals));
  if (options.timing) verdict["build_us"] = build_us;
  if (verdict["accepted"] == true) {
    ++totals.accepted;
  } else {
    ++totals.reasons[verdict["reason"].get<std::string>()];
  }
  return verdict;
}

Json check_calls(const Json& row, const Json& id, const CheckOptions& options,
                 const td::MaskCache& cache, const td::Tokenizer& tokenizer, Totals& totals) {
  const Format& format = format_named(options.format);
  const char* key      = row.contains("functions") ? "functions"
                         : row.contains("tools")   ? "tools"
                                                   : "apis";
  if (!row.contains(key)) {
    throw td::Error(td::Errc::malformed_document, "", "a row has functions or tools");
  }
  const td::ToolSet tools = td::ToolSet::from_json(row[key]);
  const std::string text  = text_of(row, format, tools);
  td::ChoiceOptions choice =
      parse_choice(row.contains("choice") ? row["choice"].get<std::string>() : options.choice);
  choice.documented_order     = options.documented_order;
  choice.reasoning            = parse_reasoning(options.reasoning, format);
  const auto start            = Clock::now();
  const td::ToolCallFSM calls = format.constrain(cache, tools, choice);
  const double build          = microseconds_since(start);
  if (options.timing) totals.build.push_back(build);
  return judge(id, calls, text, build, options, tokenizer, totals);
}

// A text under a schema: `valid` where the row says so.
struct SchemaText {
  Json id;
  std::string text;
  std::optional<bool> valid;
};

std::vector<SchemaText> texts_under_schema(const Json& row, const Json& id) {
  if (row.contains("schema") && row.contains("text") && row["text"].is_string()) {
    return {{id, row["text"].get<std::string>(), std::nullopt}};
  }
  if (!row.contains("schema") || !row.contains("tests") || !row["tests"].is_array()) {
    throw td::Error(td::Errc::malformed_document, "", "a row has a schema and a text or tests");
  }
  const std::string prefix = (id.is_string() ? id.get<std::string>() : id.dump()) + '#';
  std::vector<SchemaText> texts;
  for (const Json& test : row["tests"]) {
    if (!test.is_object() || !test.contains("data")) {
      throw td::Error(td::Errc::malformed_document, "", "a test has data");
    }
    const Json& data = test["data"];
    texts.push_back({prefix + std::to_string(texts.size()),
                     td::ExactNumber::is_in(data) ? td::write_json(data) : data.dump(),
                     std::nullopt});
    if (test.contains("valid") && test["valid"].is_boolean()) texts.back().valid = test["valid"];
  }
  return texts;
}

// "<pointer>: <keyword>", or the kind of error where no keyword is to blame.
std::string refusal(const td::Error& error) {
  std::string what(name(error.code()));
  const std::string last = error.where().substr(error.where().rfind('/') + 1);
  if (error.code() != td::Errc::unsatisfiable_schema &&
      last.find_first_not_of("#0123456789") != std::string::npos) {
    what = last;
  }
  return error.where() + ": " + what;
}

std::vector<Json> check_schema(const Json& row, const Json& id, const CheckOptions& options,
                               const td::MaskCache& cache, const td::Tokenizer& tokenizer,
                               Totals& totals) {
  const std::vector<SchemaText> texts = texts_under_schema(row, id);
  std::vector<Json> verdicts;
  std::optional<td::JsonSchemaConstraint> constraint;
  const auto start = Clock::now();
  try {
    constraint.emplace(cache, row["schema"],
                       td::SchemaOptions{.documented_order = options.documented_order});
  } catch (const td::Error& error) {
    for (const SchemaText& one : texts) {
      ++totals.refused;
      ++totals.reasons[std::string(name(error.code()))];
      verdicts.push_back({{"id", one.id},
                          {"refused", refusal(error)},
                          {"reason", std::string(name(error.code())) + ": " + error.what()}});
    }
    return verdicts;
  }
  const double build = microseconds_since(start);
  if (options.timing) totals.build.push_back(build);
  for (const SchemaText& one : texts) {
    try {
      verdicts.push_back(judge(one.id, *constraint, one.text, build, options, tokenizer, totals));
    } catch (const td::Error& error) {
      verdicts.push_back(rejection(one.id, error, totals));
    }
    if (one.valid) {
      ++totals.judged;
      totals.right += verdicts.back()["accepted"] == *one.valid;
    }
  }
  return verdicts;
}

// One verdict per text of a row.
std::vector<Json> check_row(const Json& row, const CheckOptions& options,
                            const td::MaskCache& cache, const td::Tokenizer& tokenizer,
                            Totals& totals) {
  const Json id = row.contains("id") ? td::ExactNumber::rounded(row["id"]) : Json();
  std::vector<Json> verdicts;
  try {
    if (options.format == json_schema) {
      verdicts = check_schema(row, id, options, cache, tokenizer, totals);
    } else {
      verdicts.push_back(check_calls(row, id, options, cache, tokenizer, totals));
    }
  } catch (const td::Error& error) {
    verdicts.push_back(rejection(id, error, totals));
  }
  totals.rows += verdicts.size();
  return verdicts;
}

void summarise(const CheckOptions& options, const Totals& totals, double seconds) {
  const auto share = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::cerr << std::fixed << std::setprecision(2);
  std::cerr << totals.rows << " rows in " << seconds << " s, format " << options.format << ": "
            << totals.accepted << " accepted (" << share(totals.accepted, totals.rows) << " %), "
            << totals.rows - totals.accepted - totals.refused << " rejected; ";
  if (totals.refused != 0) std::cerr << totals.refused << " under schemas that are refused; ";
  if (totals.judged != 0) {
    std::cerr << totals.right << " of " << totals.judged << " verdicts as the rows have them; ";
  }
  std::cerr << totals.tokens << " tokens, " << share(totals.forced, totals.tokens)
            << " % of them forced\n";
  std::vector<std::pair<std::size_t, std::string>> reasons;
  for (const auto& [reason, count] : totals.reasons) reasons.emplace_back(count, reason);
  std::sort(reasons.rbegin(), reasons.rend());
  for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 12); ++i) {
    std::cerr << std::setw(8) << reasons[i].first << "  " << reasons[i].second << '\n';
  }
  if (!options.timing) return;
  const auto line = [](const char* what, const std::vector<double>& values) {
    const Percentiles p = percentiles(values);
    std::cerr << std::left << std::setw(14) << what << std::right << std::setw(12) << p.mean
              << std::setw(12) << p.p50 << std::setw(12) << p.p99 << '\n';
  };
  std::cerr << "microseconds         mean         p50         p99\n";
  line("build", totals.build);
  line("first mask", totals.first);
  line("mask", totals.masks);
}

void run_check(const CheckOptions& options) {
  if (options.format != json_schema) {
    (void)parse_reasoning(options.reasoning, format_named(options.format));
  }
  (void)parse_choice(options.choice);
  const td::Tokenizer tokenizer =
      std::filesystem::is_directory(options.vocabulary)
          ? td::load_tokenizer(options.vocabulary)
          : td::parse_tokenizer(read_file(options.vocabulary, options.max_inflated),
                                options.vocabulary);
  const td::MaskCache cache{tokenizer.vocabulary()};
  Totals totals;
  const auto start = Clock::now();
  auto shown       = start;
  for (const std::string& path : options.rows) {
    std::istringstream lines(read_file(path, options.max_inflated));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.empty()) continue;
      Json row;
      try {
        row = td::parse_exact_json(line);
      } catch (const td::Error& error) {
        throw td::Error(error.code(), path + ":" + std::to_string(number), error.what());
      }
      if (!row.is_object()) {
        throw td::Error(td::Errc::malformed_document, path + ":" + std::to_string(number),
                        "a row is a JSON object");
      }
      for (const Json& verdict : check_row(row, options, cache, tokenizer, totals)) {
        std::cout << verdict.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
      }
      if (Clock::now() - shown > std::chrono::seconds(2)) {
        shown = Clock::now();
        std::cerr << "  " << totals.rows << " rows, " << totals.accepted << " accepted ...\n";
      }
    }
  }
  std::cout.flush();
  summarise(options, totals, microseconds_since(start) / 1e6);
  if (totals.bad_input) {
    throw td::Error(td::Errc::malformed_document, "row " + *totals.bad_input,
                    "rows with bad input were rejected");
  }
}

}  // namespace

void add_check(CLI::App& app) {
  auto options  = std::make_shared<CheckOptions>();
  CLI::App* sub = app.add_subcommand(
      "check",
      "Walk texts through the constraint of their tools, or of their schemas; one verdict per text "
      "on stdout");
  sub->add_option("--vocabulary", options->vocabulary,
                  "tokenizer.json, GGUF or .json.gz; or a directory with a tokenizer.json")
      ->required();
  sub->add_option(
         "--format", options->format,
         "call format, python or hermes; or json-schema: one JSON value, spaced freely, of "
         "the row's schema; a schema that is refused gives \"refused\": \"<pointer>: "
         "<keyword>\" in place of \"accepted\"")
      ->required();
  sub->add_option("--choice", options->choice,
                  "of calls, for rows without one: auto, none, required or a tool's name")
      ->capture_default_str();
  sub->add_option("--reasoning", options->reasoning,
                  "before the answer: no, block where it may be, or open where the prompt has "
                  "opened one that is to be closed")
      ->capture_default_str();
  sub->add_flag("--documented-order", options->documented_order,
                "admit arguments and properties in the documented order only");
  sub->add_flag("--timing", options->timing, "add microseconds per build and per mask");
  sub->add_option("rows", options->rows,
                  "JSONL (or .gz) with id, functions or tools, text and, if wanted, choice; "
                  "without text, call_json or call_python is written in the format. With "
                  "json-schema: id, schema and text, or tests: a list of objects with data, and "
                  "perhaps valid, each told as \"id#k\", k from 0")
      ->required();
  sub->add_option("--max-inflated", options->max_inflated,
                  "most bytes that a compressed file may inflate to")
      ->capture_default_str();
  sub->callback([options] { run_check(*options); });
}

}  // namespace program
