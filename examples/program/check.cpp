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

#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_set.hpp>
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

struct CheckOptions {
  std::string vocabulary;
  std::string format = "python";
  std::vector<std::string> rows;
  std::string choice    = "required";
  bool documented_order = false;
  bool timing           = false;
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
  std::size_t rows = 0, accepted = 0, tokens = 0, forced = 0;
  std::vector<double> build, first, masks;
  std::map<std::string, std::size_t> reasons;
  std::optional<std::string> bad_input;
};

// Walks one text; every token must be in the mask, and the text must be able to end.
Json walk(const td::ToolCallFSM& calls, const td::Tokenizer& tokenizer, const std::string& text,
          bool timing, Totals& totals) {
  Json verdict{{"accepted", false}, {"error_at", nullptr}, {"reason", nullptr}};
  std::size_t tokens = 0, forced = 0, offset = 0;
  std::vector<double> masks;
  td::TokenMask mask(calls.vocabulary_size());
  auto state      = calls.initial();
  const auto fill = [&] {
    const auto start = Clock::now();
    calls.fill_mask(state, mask.words());
    masks.push_back(microseconds_since(start));
  };
  const auto refuse = [&](std::size_t at, std::string reason) {
    verdict["error_at"] = at;
    verdict["reason"]   = std::move(reason);
  };
  for (const td::TokenId token : tokenizer.encode(text)) {
    fill();
    const std::string_view bytes = tokenizer.vocabulary().bytes(token);
    const auto next              = calls.advance(state, token);
    if (!next || !mask.contains(token)) {
      std::size_t good = 0;
      for (auto s = state; good < bytes.size(); ++good) {
        const auto after = calls.advance_bytes(s, bytes.substr(good, 1));
        if (!after) break;
        s = *after;
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
    const bool ended = calls.is_accepting(state);
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
std::string text_of(const Json& row, const Format& format) {
  if (row.contains("text")) return row.at("text").get<std::string>();
  if (row.contains("call_json") && !row["call_json"].is_null()) {
    std::vector<td::ToolCall> calls;
    const Json& written = row["call_json"];
    for (const Json& call : written.is_array() ? written : Json::array({written})) {
      calls.push_back({call.at("name").get<std::string>(), call.at("arguments")});
    }
    return format.write(calls);
  }
  if (row.contains("call_python") && row["call_python"].is_string()) {
    const auto text = row["call_python"].get<std::string>();
    return format.name == "python" ? text : format.write(format_named("python").parse(text, {}));
  }
  throw td::Error(td::Errc::malformed_document, "", "a row has a text, call_json or call_python");
}

Json check_row(const Json& row, const CheckOptions& options, const td::MaskCache& cache,
               const td::Tokenizer& tokenizer, Totals& totals) {
  const Format& format = format_named(options.format);
  Json verdict;
  verdict["id"] = row.contains("id") ? row["id"] : Json();
  try {
    const char* key = row.contains("functions") ? "functions"
                      : row.contains("tools")   ? "tools"
                                                : "apis";
    if (!row.contains(key)) {
      throw td::Error(td::Errc::malformed_document, "", "a row has functions or tools");
    }
    const td::ToolSet tools = td::ToolSet::from_json(row[key]);
    const std::string text  = text_of(row, format);
    td::ChoiceOptions choice =
        parse_choice(row.contains("choice") ? row["choice"].get<std::string>() : options.choice);
    choice.documented_order     = options.documented_order;
    const auto start            = Clock::now();
    const td::ToolCallFSM calls = format.constrain(cache, tools, choice);
    const double build          = microseconds_since(start);
    verdict.update(walk(calls, tokenizer, text, options.timing, totals));
    if (options.timing) {
      verdict["build_us"] = build;
      totals.build.push_back(build);
    }
    if (verdict["accepted"] == true) {
      ++totals.accepted;
    } else {
      ++totals.reasons[verdict["reason"].get<std::string>()];
    }
  } catch (const td::Error& error) {
    verdict.update(Json{{"accepted", false},
                        {"error_at", nullptr},
                        {"reason", std::string(name(error.code())) + ": " + error.what()},
                        {"tokens", 0},
                        {"forced_tokens", 0}});
    ++totals.reasons[std::string(name(error.code()))];
    if (error.code() != td::Errc::unsupported_keyword &&
        error.code() != td::Errc::unsupported_pattern && !totals.bad_input) {
      totals.bad_input = verdict["id"].dump() + ": " + verdict["reason"].get<std::string>();
    }
  }
  ++totals.rows;
  return verdict;
}

void summarise(const CheckOptions& options, const Totals& totals, double seconds) {
  const auto share = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::cerr << std::fixed << std::setprecision(2);
  std::cerr << totals.rows << " rows in " << seconds << " s, format " << options.format << ": "
            << totals.accepted << " accepted (" << share(totals.accepted, totals.rows) << " %), "
            << totals.rows - totals.accepted << " rejected; " << totals.tokens << " tokens, "
            << share(totals.forced, totals.tokens) << " % of them forced\n";
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
  (void)format_named(options.format);
  (void)parse_choice(options.choice);
  const td::Tokenizer tokenizer =
      std::filesystem::is_directory(options.vocabulary)
          ? td::load_tokenizer(options.vocabulary)
          : td::parse_tokenizer(read_file(options.vocabulary), options.vocabulary);
  const td::MaskCache cache{tokenizer.vocabulary()};
  Totals totals;
  const auto start = Clock::now();
  auto shown       = start;
  for (const std::string& path : options.rows) {
    std::istringstream lines(read_file(path));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.empty()) continue;
      Json row;
      try {
        row = td::parse_json(line);
      } catch (const td::Error& error) {
        throw td::Error(error.code(), path + ":" + std::to_string(number), error.what());
      }
      if (!row.is_object()) {
        throw td::Error(td::Errc::malformed_document, path + ":" + std::to_string(number),
                        "a row is a JSON object");
      }
      std::cout << check_row(row, options, cache, tokenizer, totals)
                       .dump(-1, ' ', false, Json::error_handler_t::replace)
                << '\n';
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
      "check", "Walk texts through the constraint of their tools; one verdict per row on stdout");
  sub->add_option("--vocabulary", options->vocabulary,
                  "tokenizer.json, GGUF or .json.gz; or a directory with a tokenizer.json")
      ->required();
  sub->add_option("--format", options->format, "call format: python or hermes")->required();
  sub->add_option("--choice", options->choice,
                  "for rows without one: auto, none, required or a tool's name")
      ->capture_default_str();
  sub->add_flag("--documented-order", options->documented_order,
                "admit arguments in the documented order only");
  sub->add_flag("--timing", options->timing, "add microseconds per build and per mask");
  sub->add_option("rows", options->rows,
                  "JSONL (or .gz) with id, functions or tools, text and, if wanted, choice; "
                  "without text, call_json or call_python is written in the format")
      ->required();
  sub->callback([options] { run_check(*options); });
}

}  // namespace program
