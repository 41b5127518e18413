#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/decode/decoder.hpp>

#include <program/name_repairs.hpp>

namespace program {

std::vector<WrittenName> find_written_names(std::string_view text) {
  const auto is_part = [](char c) {
    return std::string_view("_.-/").find(c) != std::string_view::npos || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::vector<WrittenName> names;
  std::size_t depth = 0;
  char quote        = 0;  // quote of the current string in a call
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (depth > 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (c == '(' && depth++ == 0) {
      std::size_t begin = i;
      while (begin > 0 && is_part(text[begin - 1])) --begin;
      if (begin < i) names.push_back({begin, i - begin});
    }
  }
  return names;
}

std::optional<std::size_t> find_by_suffix(const tooldecode::ToolSet& tools,
                                          std::string_view written) {
  std::optional<std::size_t> best;
  std::size_t longest = 0;
  for (std::size_t t = 0; t < tools.size(); ++t) {
    const std::string_view name = tools[t].name;
    const auto differs =
        std::mismatch(name.rbegin(), name.rend(), written.rbegin(), written.rend());
    const auto shared = static_cast<std::size_t>(differs.first - name.rbegin());
    if (shared > longest) {
      longest = shared;
      best    = t;
    }
  }
  return best;
}

tooldecode::Output repair_by_suffix(tooldecode::Output output,
                                    const tooldecode::Tokenizer& tokenizer,
                                    const tooldecode::ToolSet& tools) {
  std::string text   = tokenizer.vocabulary().answer_text(output.tokens);
  const auto written = find_written_names(text);
  bool is_repaired   = false;
  for (auto at = written.rbegin(); at != written.rend(); ++at) {
    const std::string name = text.substr(at->begin, at->length);
    if (tools.find(name)) continue;
    if (const auto tool = find_by_suffix(tools, name)) {
      text.replace(at->begin, at->length, tools[*tool].name);
      is_repaired = true;
    }
  }
  if (is_repaired) output.tokens = tokenizer.encode(text, {.parse_special = true});
  return output;
}

Backtrace::Backtrace(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer,
                     const tooldecode::ToolCallFSM& calls, std::size_t tries)
    : model_(model), tokenizer_(&tokenizer), calls_(&calls), tries_(tries) {}

tooldecode::Output Backtrace::operator()(std::span<const tooldecode::TokenId> prompt,
                                         tooldecode::DecodeOptions options) const {
  const auto ends    = tokenizer_->vocabulary().end_tokens();
  options.end_tokens = {ends.begin(), ends.end()};
  const tooldecode::Decoder decode{model_};
  tooldecode::Output first = decode(prompt, options);
  const auto failed        = find_failure(first.tokens);
  if (!failed) return first;
  std::vector<tooldecode::TokenId> beginning(prompt.begin(), prompt.end());
  beginning.insert(beginning.end(), first.tokens.begin(),
                   first.tokens.begin() + static_cast<std::ptrdiff_t>(*failed));
  std::size_t passes = first.passes + 1;
  auto without       = std::vector(ends.begin(), ends.end());
  if (*failed < first.tokens.size()) without.push_back(first.tokens[*failed]);
  for (const tooldecode::TokenId token : most_probable(beginning, without)) {
    beginning.push_back(token);
    options.max_tokens -= *failed + 1;
    tooldecode::Output again = decode(beginning, options);
    options.max_tokens += *failed + 1;
    passes += again.passes;
    again.tokens.insert(again.tokens.begin(),
                        beginning.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
                        beginning.end());
    beginning.pop_back();
    again.log_probabilities.clear();  // unknown for the tokens before it
    again.passes = passes;
    if (!find_failure(again.tokens)) return again;
  }
  first.passes = passes;
  return first;
}

std::optional<std::size_t> Backtrace::find_failure(
    const std::vector<tooldecode::TokenId>& tokens) const {
  const auto& vocabulary = tokenizer_->vocabulary();
  const std::string text = vocabulary.answer_text(tokens);
  const auto written     = find_written_names(text);
  std::size_t begin      = 0;
  const auto unknown     = std::ranges::find_if(written, [&](const WrittenName& name) {
    return !calls_->tools().find(text.substr(name.begin, name.length));
  });
  if (unknown != written.end()) {
    begin = unknown->begin;
  } else {
    try {
      if (!calls_->parse(text).empty()) return std::nullopt;
    } catch (const tooldecode::Error&) {
      if (!written.empty()) begin = written.front().begin;
    }
  }
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    bytes += vocabulary.answer_bytes(tokens[i]).size();
    if (bytes > begin) return i;
  }
  return 0;
}

std::vector<tooldecode::TokenId> Backtrace::most_probable(
    std::span<const tooldecode::TokenId> beginning,
    std::span<const tooldecode::TokenId> without) const {
  std::vector<float> logits(model_.vocabulary_size());
  auto cache = model_.make_cache();
  model_.forward(cache, beginning, logits);
  std::vector<tooldecode::TokenId> tokens(tokenizer_->vocabulary().size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::erase_if(tokens,
                [&](auto token) { return std::ranges::find(without, token) != without.end(); });
  const std::size_t kept = std::min(tries_ - 1, tokens.size());
  std::ranges::partial_sort(
      tokens, tokens.begin() + static_cast<std::ptrdiff_t>(kept), [&](auto a, auto b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
  tokens.resize(kept);
  return tokens;
}

}  // namespace program
