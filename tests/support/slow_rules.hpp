/// \file
/// slow::matches for Rules: what rules accept, by solving their equations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::slow {

/// Where matches that start at a place may end, as bits, for all nodes at once: the least solution
/// of the rules' equations, found by applying them until nothing changes. Texts are ASCII.
class RuleMatcher {
 public:
  using Id                               = ebnf::Rules::Id;
  static constexpr std::size_t max_bytes = 30;

  RuleMatcher(const ebnf::Rules& rules, std::string_view text)
      : text_(text), ends_(rules.size(), std::vector<Ends>(text.size() + 1, 0)) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Id id = 0; id < rules.size(); ++id) {
        for (std::size_t at = 0; at <= text.size(); ++at) {
          const Ends now = ends_[id][at] | find(rules[id], at);
          changed        = changed || now != ends_[id][at];
          ends_[id][at]  = now;
        }
      }
    }
  }
  [[nodiscard]] bool matches(Id id) const { return (ends_[id][0] >> text_.size() & 1) != 0; }

 private:
  using Kind = ebnf::Rules::Kind;
  using Ends = std::uint32_t;

  [[nodiscard]] Ends after(Ends starts, Id id) const {
    Ends result = 0;
    for (std::size_t at = 0; at <= text_.size(); ++at) {
      if (starts >> at & 1) result |= ends_[id][at];
    }
    return result;
  }
  [[nodiscard]] Ends find(const ebnf::Rules::Node& node, std::size_t at) const {
    const Ends here = Ends{1} << at;
    switch (node.kind) {
      case Kind::text:
        return text_.substr(at, node.text.size()) == node.text ? here << node.text.size() : 0;
      case Kind::characters: {
        const bool is_in = at < text_.size() && node.set.contains(static_cast<char32_t>(text_[at]));
        return is_in ? here << 1 : 0;
      }
      case Kind::lexeme:
        return lexeme(*node.dfa, at);
      case Kind::pair:
        return after(after(here, node.parts[0]), node.parts[1]);
      case Kind::repeat:
        return repeat(node, here);
      default: {
        Ends result = 0;
        for (const Id part : node.parts) result |= ends_[part][at];
        return result;
      }
    }
  }
  [[nodiscard]] Ends lexeme(const text::Dfa& dfa, std::size_t at) const {
    if (dfa.empty()) return 0;
    Ends result            = dfa.accepting(0) ? Ends{1} << at : 0;
    text::Dfa::State state = 0;
    for (; at < text_.size(); ++at) {
      state = dfa.next(state, static_cast<std::uint8_t>(text_[at]));
      if (state == text::Dfa::dead) break;
      if (dfa.accepting(state)) result |= Ends{2} << at;
    }
    return result;
  }
  [[nodiscard]] Ends repeat(const ebnf::Rules::Node& node, Ends here) const {
    const auto [min, max] = node.occurrences;
    Ends starts = here, result = 0;
    for (std::size_t count = 0; count <= max && starts != 0; ++count) {
      if (count >= min) result |= starts;
      const Ends next = after(starts, node.parts[0]);
      if (next == starts) return result | starts;
      if (count > min && (next | result) == result) return result;
      starts = next;
    }
    return result;
  }

  std::string_view text_;
  std::vector<std::vector<Ends>> ends_;  // [nodes][places]
};

inline bool matches(const ebnf::Rules& rules, ebnf::Rules::Id id, std::string_view text) {
  return RuleMatcher(rules, text).matches(id);
}

}  // namespace tooldecode::slow
