// tooldecode sample: samples texts from a constraint with artificial logits, to test the
// constraint.
#include <bit>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/philox.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/files.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>

namespace program {
namespace {

namespace td = tooldecode;

struct SampleOptions {
  std::string vocabulary;
  std::string format = "python";
  std::vector<std::string> rows;
  std::size_t count        = 1000;
  std::size_t max_tokens   = 400;
  std::uint64_t seed       = 1;
  std::size_t max_inflated = max_inflated_bytes;
};

// Three kinds of artificial logits: uniform noise; a few peaks, mostly on tokens that are not
// allowed; and an adversary that prefers the longest token, or the token that delays the end most.
enum class Distribution : std::uint8_t { random, peaked, adversarial };

// The scores of each token of a vocabulary. After some tokens every distribution prefers tokens
// that close texts, or hardly any text would end.
class Scores {
 public:
  explicit Scores(const td::Vocabulary& vocabulary) {
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const auto token             = static_cast<td::TokenId>(i);
      const std::string_view bytes = vocabulary.bytes(token);
      const bool closes            = bytes.find_first_of("\"'])}>,") != std::string_view::npos;
      const bool ends              = vocabulary.is_end(token);
      sizes_.push_back(ends ? 0 : static_cast<double>(bytes.size()));
      closing_.push_back(ends ? 2000 : closes ? 1000 : 0);
      is_end_.push_back(ends);
    }
  }

  // Monotone in the noise.
  double operator()(Distribution distribution, td::TokenId token, double noise,
                    bool closing) const {
    const auto i = static_cast<std::size_t>(token);
    if (closing) return is_end_[i] ? closing_[i] : closing_[i] + noise - sizes_[i];
    if (is_end_[i] || distribution == Distribution::random) return noise;
    if (distribution == Distribution::peaked) return noise > 0.999 ? 100 * noise : noise;
    return sizes_[i] + noise;
  }

 private:
  std::vector<double> sizes_, closing_;  // [V]
  std::vector<char> is_end_;             // [V]
};

// One text; empty if it did not end in time.
//
// C is any constraint with a vocabulary.
template <td::ConstraintPolicy C>
std::optional<std::string> sample(const C& constraint, const Scores& scores,
                                  Distribution distribution, std::uint64_t seed,
                                  std::size_t max_tokens, td::TokenMask& mask) {
  std::string text;
  auto state = constraint.initial();
  for (std::size_t position = 0; position < max_tokens; ++position) {
    constraint.fill_mask(state, mask.words());
    const bool closing = position >= 24;
    td::TokenId best   = -1;
    double best_score  = -1e300;
    for (std::size_t w = 0; w < mask.words().size(); ++w) {
      for (std::uint32_t bits = mask.words()[w]; bits != 0; bits &= bits - 1) {
        const auto token =
            static_cast<td::TokenId>(32 * w + static_cast<std::size_t>(std::countr_zero(bits)));
        if (scores(distribution, token, 1.0, closing) <= best_score)
          continue;  // cannot win with any noise
        const auto noise   = static_cast<double>(td::core::uniform(seed, position, token));
        const double value = scores(distribution, token, noise, closing);
        if (value > best_score) best_score = value, best = token;
      }
    }
    if (best < 0) throw td::Error(td::Errc::invalid_option, text, "no token is allowed here");
    const auto next = constraint.advance(state, best);
    if (!next) throw td::Error(td::Errc::invalid_option, text, "the mask allowed a wrong token");
    if (constraint.is_finished(*next)) return text;
    text += constraint.vocabulary().answer_bytes(best);
    state = *next;
  }
  return std::nullopt;
}

std::vector<Json> read_rows(const SampleOptions& options) {
  std::vector<Json> rows;
  for (const std::string& path : options.rows) {
    std::istringstream lines(read_file(path, options.max_inflated));
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) rows.push_back(td::text::parse_exact_json(line));
    }
  }
  return rows;
}

// Samples until there are enough texts.
//
// \param draw  returns a row of the output for its number, or nothing if a text did not end
template <class Draw>
void draw_all(const SampleOptions& options, const Draw& draw) {
  std::size_t done = 0, unfinished = 0;
  for (std::uint64_t i = 0; done < options.count; ++i) {
    if (unfinished > options.count)
      throw td::Error(td::Errc::limit_exceeded, "", "texts do not end");
    const std::optional<Json> row = draw(i);
    if (!row) {
      ++unfinished;
      continue;
    }
    ++done;
    std::cout << row->text() << '\n';
    if (done % 1000 == 0) std::cerr << "  " << done << " of " << options.count << " ...\n";
  }
  std::cerr << done << " texts, " << unfinished << " more did not end in " << options.max_tokens
            << " tokens\n";
}

void run_sample(const SampleOptions& options) {
  const bool is_lark            = options.format == "lark";
  const bool is_tag             = options.format == "structural-tag" || is_lark;
  const Format* format          = is_tag ? nullptr : &format_named(options.format);
  const td::Tokenizer tokenizer = open_tokenizer(options.vocabulary, options.max_inflated);
  const td::VocabularyIndex cache{tokenizer.vocabulary()};
  const Scores scores(tokenizer.vocabulary());
  td::TokenMask mask(tokenizer.vocabulary().size());
  const auto distribution = [](std::uint64_t i) { return static_cast<Distribution>(i % 3); };
  const auto described    = [&](std::uint64_t i, const std::string& text) {
    return Json{{"distribution", static_cast<int>(distribution(i))},
                   {"seed", options.seed + i},
                   {"text", text}};
  };
  if (is_tag) {
    std::vector<Json> specs;
    for (const Json& row : read_rows(options)) {
      if (!row.contains("spec")) {
        throw td::Error(td::Errc::malformed_document, "rows", "a row has a spec");
      }
      specs.push_back(row["spec"].is_string() && !is_lark
                          ? td::text::parse_exact_json(row["spec"].get<std::string>())
                          : row["spec"]);
    }
    if (specs.empty()) throw td::Error(td::Errc::malformed_document, "rows", "no row has a spec");
    draw_all(options, [&](std::uint64_t i) -> std::optional<Json> {
      const Json& spec      = specs[i % specs.size()];
      const auto constraint = [&]() -> td::Constraint {
        const td::Vocabulary* vocabulary = &cache.vocabulary();
        return {cache, is_lark
                           ? td::Grammar::lark(spec.get<std::string>(), {.vocabulary = vocabulary})
                           : td::Grammar::structural_tag(spec, {.vocabulary = vocabulary})};
      }();
      const auto text =
          sample(constraint, scores, distribution(i), options.seed + i, options.max_tokens, mask);
      if (!text) return std::nullopt;
      Json row    = described(i, *text);
      row["spec"] = is_lark ? spec : td::text::ExactNumber::rounded(spec);
      return row;
    });
    return;
  }
  std::vector<td::ToolSet> sets;
  for (const Json& row : read_rows(options)) {
    const char* key = row.contains("functions") ? "functions"
                      : row.contains("tools")   ? "tools"
                                                : "apis";
    if (row.contains(key) && !row[key].empty()) sets.push_back(td::ToolSet::from_json(row[key]));
  }
  if (sets.empty()) throw td::Error(td::Errc::malformed_document, "rows", "no row has tools");
  draw_all(options, [&](std::uint64_t i) -> std::optional<Json> {
    const td::ToolSet& tools = sets[i % sets.size()];
    const td::ToolCallFSM calls(cache, tools, format->format,
                                {.choice     = td::ToolChoice::required,
                                 .parallel   = i % 2 == 0,
                                 .whitespace = td::SchemaOptions{}.whitespace});
    const auto text =
        sample(calls, scores, distribution(i), options.seed + i, options.max_tokens, mask);
    if (!text) return std::nullopt;
    Json parameters = Json::object();
    for (const td::Tool& tool : tools) parameters[tool.name] = tool.parameters;
    Json made = Json::array();
    for (const td::ToolCall& call : calls.parse(*text)) {
      made.push_back({{"name", call.name}, {"arguments", call.arguments}});
    }
    Json row          = described(i, *text);
    row["calls"]      = made;
    row["parameters"] = parameters;
    return row;
  });
}

}  // namespace

void add_sample(CommandLine& line) {
  auto options = std::make_shared<SampleOptions>();
  Command sub  = line.command(
      "sample",
      "Draw calls, or texts of structural tags and Lark grammars, from constraints by made-up logits; one JSON object "
       "per text on stdout");
  sub.option("--vocabulary", options->vocabulary,
             "tokenizer.json, GGUF, tokenizer.model, .tiktoken, tekken.json or .json.gz")
      .required();
  sub.option("--format", options->format,
             "call format: " + format_names() + "; structural-tag or lark")
      .shows_default();
  sub.option("--count", options->count, "how many texts").shows_default();
  sub.option("--max-tokens", options->max_tokens, "most tokens of a text").shows_default();
  sub.option("--seed", options->seed, "of the made-up logits").shows_default();
  sub.option(
         "rows", options->rows,
         "JSONL (or .gz) with functions or tools; of structural tags and Lark grammars, with spec")
      .required();
  sub.option("--max-inflated", options->max_inflated,
             "most bytes that a compressed file may inflate to")
      .shows_default();
  sub.runs([options] { run_sample(*options); });
}

}  // namespace program
