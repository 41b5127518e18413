/// \file
/// walk_text: how far a constraint accepts a text, and why it stops.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <program/check_totals.hpp>
#include <program/json.hpp>

namespace program {

struct CheckedText {
  Json id{};
  std::string text{};
  bool is_complete = true;      ///< else a prefix of a text
  std::optional<bool> valid{};  ///< the expected verdict, if known
};

inline double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// A byte of a text in readable form.
inline std::string quoted_byte(std::string_view text, std::size_t at) {
  if (at >= text.size()) return "the end of the text";
  return Json(std::string(1, text[at])).text({.ascii = true});
}

/// The verdict on one text as JSON: every token must be in the mask, and a complete text must be
/// able to end.
template <tooldecode::ConstraintPolicy C>
Json walk_text(const C& constraint, const tooldecode::Tokenizer& tokenizer,
               const CheckedText& checked, bool timing, CheckTotals& totals) {
  const std::string& text = checked.text;
  Json verdict{
      {"accepted", false}, {"error_at", nullptr}, {"reason", nullptr}, {"expected", nullptr}};
  std::size_t tokens = 0, forced = 0, offset = 0;
  std::vector<double> masks;
  tooldecode::TokenMask mask(constraint.vocabulary_size());
  auto state      = constraint.initial();
  const auto fill = [&] {
    const auto start = std::chrono::steady_clock::now();
    constraint.fill_mask(state, mask.words());
    masks.push_back(microseconds_since(start));
  };
  const auto refuse = [&](std::size_t at, std::string reason) {
    verdict["error_at"] = at;
    verdict["reason"]   = std::move(reason);
    verdict["expected"] = tooldecode::explain(constraint, state);
  };
  for (const tooldecode::TokenId token : tokenizer.encode(text)) {
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
                                ? quoted_byte(text, offset + good) + " cannot follow here"
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
    if (!ended && checked.is_complete) {
      refuse(text.size(), "the text ends too early");
    } else if (ended && !ends.empty() && !mask.contains(ends[0])) {
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

}  // namespace program
