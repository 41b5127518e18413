/// \file
/// RegexConstraint: a text that a regular expression matches as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/regex.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

namespace tooldecode {

namespace detail {

// A TextDfa over the bytes of strict UTF-8: its states, and between them those inside characters.
class Utf8Dfa {
 public:
  explicit Utf8Dfa(const TextDfa& text) : rows_(text.rows().size()) {
    for (std::size_t s = 0; s < text.rows().size(); ++s) {
      runs_.clear();
      for (std::size_t c = 0; c < text.classes().size(); ++c) {
        const TextDfa::State to = text.rows()[s].next[c];
        if (to == TextDfa::dead) continue;
        for (const auto& [first, last] : text.classes()[c].ranges()) {
          runs_.push_back({first, last, to});
        }
      }
      std::sort(runs_.begin(), runs_.end(),
                [](const Run& a, const Run& b) { return a.first < b.first; });
      rows_[s].accepting = text.rows()[s].accepting;
      for (char32_t c = 0; c < 0x80; ++c) rows_[s].next[c] = find(c).to;
      for (unsigned b = 0xC2; b <= 0xF4; ++b) {
        const unsigned more = b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
        const char32_t bits = b & (0x3FU >> more);
        // Not through a reference into rows_, which grows.
        const Dfa::State next = continuation(bits << (6 * more), more, true);
        rows_[s].next[b]      = next;
      }
    }
  }

  [[nodiscard]] std::vector<Dfa::Row> take() && { return std::move(rows_); }

 private:
  struct Run {
    char32_t first, last;
    Dfa::State to;
  };
  // What fewer bytes can write is not written with more.
  static constexpr char32_t least_of(unsigned levels) noexcept {
    return levels == 1 ? 0x80 : levels == 2 ? 0x800 : 0x10000;
  }

  // The run that holds a code point, or the gap up to the next one.
  [[nodiscard]] Run find(char32_t c) const {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), c,
                                        [](char32_t v, const Run& run) { return v < run.first; });
    if (after != runs_.begin() && (after - 1)->last >= c) return *(after - 1);
    return {c, after == runs_.end() ? char32_t{0x7FFFFFFF} : after->first - 1, Dfa::dead};
  }
  // The state before the last `levels` bytes of the code points from `first`; `lead`: their lead
  // byte alone has been read.
  Dfa::State continuation(char32_t first, unsigned levels, bool lead) {
    if (levels == 0) return find(first).to;
    const char32_t count = char32_t{1} << (6 * levels);
    const char32_t start = lead ? std::max(first, least_of(levels)) : first;
    const Run run        = find(start);
    if (run.to == Dfa::dead && run.last >= first + (count - 1)) return Dfa::dead;
    std::vector<Dfa::State> next(64, Dfa::dead);
    const char32_t part = count / 64;
    for (char32_t i = 0; i < 64; ++i) {
      const char32_t from = first + i * part;
      if (from + part > start) next[i] = continuation(from, levels - 1, false);
    }
    if (std::all_of(next.begin(), next.end(), [](Dfa::State t) { return t == Dfa::dead; })) {
      return Dfa::dead;
    }
    const auto [known, fresh] = inside_.emplace(next, static_cast<Dfa::State>(rows_.size()));
    if (fresh) std::copy(next.begin(), next.end(), rows_.emplace_back().next.begin() + 0x80);
    return known->second;
  }

  std::vector<Dfa::Row> rows_;
  std::vector<Run> runs_;  // of the state at hand, ascending
  std::map<std::vector<Dfa::State>, Dfa::State> inside_;
};

}  // namespace detail

/// The texts that an ECMA-262 pattern matches from their first character to their last, as UTF-8.
///
/// The syntax is that of JSON Schema's `pattern`, see compile_pattern; only there does a pattern
/// search. Anchors are allowed where they hold.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as compile_pattern; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      Error{malformed_pattern, unsupported_pattern} with the character,
///                  Error{limit_exceeded}, Error{unsatisfiable_schema} where no text matches
/// \par Source      ECMA-262, section 22.2; RFC 3629
class RegexConstraint : public GrammarConstraint {
 public:
  RegexConstraint(MaskCache cache, std::string_view pattern)
      : RegexConstraint(build(pattern), std::move(cache)) {}

 private:
  using Texts = std::pair<Grammar, NodeId>;

  RegexConstraint(Texts texts, MaskCache cache)
      : GrammarConstraint(std::move(cache), std::move(texts.first), texts.second) {}

  static Texts build(std::string_view pattern) {
    // By itself first: between brackets `a)(b` would be a pattern, and its places would be others.
    (void)detail::PatternNfa(pattern);
    const TextDfa text = compile_pattern("^(?:" + std::string(pattern) + ")$");
    if (text.empty()) throw Error(Errc::unsatisfiable_schema, "", "no text matches this pattern");
    Grammar grammar;
    const NodeId root = grammar.lexeme(std::make_shared<const Dfa>(detail::Utf8Dfa(text).take()));
    return {std::move(grammar), root};
  }
};
static_assert(Constraint<RegexConstraint>);

}  // namespace tooldecode
