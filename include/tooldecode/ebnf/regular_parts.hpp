/// \file
/// RegularParts: the parts of grammar rules that need no stack, as lexemes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/ebnf/strong_components.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

namespace tooldecode::ebnf {

/// Finds lexemes for the nodes of a grammar's rules that are regular, small, and worth one.
///
/// A string or a number that is one lexeme has one state per state of its automaton, and its masks
/// come from slices of the vocabulary that are made once; a repetition of single characters would
/// be walked for each. Parts that need too many states stay as they are, and so does everything
/// once the parts together needed `max_states`.
///
/// \par Complexity  construction O(nodes + edges); a lexeme as compile_pattern
/// \par Threads     const members may run concurrently; `find_lexeme` remembers
class RegularParts {
 public:
  using Id = Rules::Id;
  /// Nodes of one part, copies for repetitions included.
  static constexpr std::uint32_t max_weight = 256;
  static constexpr std::size_t max_states   = 2 * text::TextDfa::max_states;
  /// Longer repetitions of one character are counted, not copied.
  static constexpr std::uint32_t max_copies = 8;

  explicit RegularParts(const Rules& rules)
      : rules_(rules), weight_(rules.size(), 0), varies_(rules.size(), 0) {
    const std::vector<std::uint32_t> component =
        find_strong_components(rules.size(), [&](Id id) { return rules[id].parts; });
    std::vector<Id> order(rules.size());
    for (Id id = 0; id < rules.size(); ++id) order[id] = id;
    std::stable_sort(order.begin(), order.end(),
                     [&](Id a, Id b) { return component[a] < component[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Id id           = order[i];
      const auto& parts     = rules[id].parts;
      const bool in_a_cycle = (i > 0 && component[order[i - 1]] == component[id]) ||
                              (i + 1 < order.size() && component[order[i + 1]] == component[id]) ||
                              std::find(parts.begin(), parts.end(), id) != parts.end();
      weight_[id] = in_a_cycle ? too_heavy : weigh(id);
    }
  }

  /// The lexeme that accepts what a node accepts; null where it stays as it is.
  [[nodiscard]] text::DfaPointer find_lexeme(Id id) {
    if (weight_[id] >= too_heavy || !varies_[id]) return nullptr;
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    return known_[id] = compile(id);
  }
  /// One character of a set.
  [[nodiscard]] text::DfaPointer one_of(const text::CodePointSet& set) {
    text::DfaPointer& one = ones_[set.ranges()];
    if (!one) {
      const text::TextDfa text({set}, {{{1}, false}, {{text::TextDfa::dead}, true}});
      one = std::make_shared<const text::Dfa>(text::utf8_lexeme(text));
    }
    return one;
  }
  /// Any number of characters of a set, each a unit.
  [[nodiscard]] text::DfaPointer run_of(const text::CodePointSet& set) {
    text::DfaPointer& run = runs_[set.ranges()];
    if (!run)
      run = std::make_shared<const text::Dfa>(text::utf8_lexeme(text::TextDfa::repeated(set)));
    return run;
  }
  /// Whether a node is a repetition of one character that is better counted.
  [[nodiscard]] bool is_counted(Id id) const {
    const Rules::Node& node = rules_[id];
    if (node.kind != Kind::repeat || rules_[node.parts[0]].kind != Kind::characters) return false;
    if (rules_[node.parts[0]].set.empty()) return false;  // its run has no text to count
    return copies_of(node.occurrences) > max_copies;
  }

 private:
  using Kind                               = Rules::Kind;
  static constexpr std::uint32_t too_heavy = max_weight + 1;

  static std::uint32_t copies_of(const text::Occurrences& count) {
    return std::max<std::uint32_t>(
        count.max == text::Occurrences::unbounded ? count.min : count.max, 1);
  }
  static std::uint32_t capped(std::uint64_t weight) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(weight, too_heavy));
  }

  std::uint32_t weigh(Id id) {
    const Rules::Node& node = rules_[id];
    std::uint64_t weight    = 1;
    for (const Id part : node.parts) {
      weight += weight_[part];
      if (varies_[part]) varies_[id] = 1;
    }
    switch (node.kind) {
      case Kind::text:
        return capped(weight + node.text.size());
      case Kind::characters:
        varies_[id] = 1;
        return 1;
      case Kind::lexeme:  // anchors inside it mean its own ends
      case Kind::part:
        return too_heavy;
      case Kind::repeat:
        varies_[id] = 1;
        return is_counted(id) ? too_heavy : capped(weight * copies_of(node.occurrences) + 1);
      case Kind::choice:
      case Kind::rule:
        return node.parts.empty() ? too_heavy : capped(weight);
      default:
        return capped(weight);
    }
  }

  text::DfaPointer compile(Id id) {
    if (states_ >= max_states) return nullptr;
    try {
      std::string pattern = "^(?:";
      write(id, pattern);
      const auto [known, fresh] = compiled_.try_emplace(pattern);
      if (!fresh) return known->second;
      const text::TextDfa text = text::compile_pattern(pattern + ")$");
      states_ += text.rows().size();
      if (!text.empty()) known->second = std::make_shared<const text::Dfa>(text::utf8_lexeme(text));
      return known->second;
    } catch (const Error&) {
      states_ += text::TextDfa::max_states;
      return nullptr;
    }
  }

  static void write(char32_t c, std::string& out) {
    static constexpr char digits[] = "0123456789ABCDEF";
    out += "\\u{";
    for (int shift = 20; shift >= 0; shift -= 4) out += digits[c >> shift & 15];
    out += '}';
  }
  // A node as a pattern.
  void write(Id id, std::string& out) const {
    const Rules::Node& node = rules_[id];
    switch (node.kind) {
      case Kind::text:
        for (const char32_t c : text::decode_utf8(node.text)) write(c, out);
        return;
      case Kind::characters:
        out += '[';
        for (const auto& [first, last] : node.set.ranges()) {
          write(first, out);
          out += '-';
          write(last, out);
        }
        out += ']';
        return;
      case Kind::pair:
        write(node.parts[0], out);
        return write(node.parts[1], out);
      case Kind::choice:
        out += "(?:";
        for (const Id part : node.parts) {
          write(part, out);
          out += '|';
        }
        out.back() = ')';
        return;
      case Kind::repeat: {
        const auto& [min, max] = node.occurrences;
        out += "(?:";
        write(node.parts[0], out);
        out += "){" + std::to_string(min) + ',';
        if (max != text::Occurrences::unbounded) out += std::to_string(max);
        out += '}';
        return;
      }
      default:
        return write(node.parts[0], out);
    }
  }

  const Rules& rules_;
  std::vector<std::uint32_t> weight_;  // [nodes]
  std::vector<char> varies_;           // [nodes]: more than some texts
  std::map<Id, text::DfaPointer> known_;
  std::map<std::string, text::DfaPointer> compiled_;  // by pattern
  std::map<std::vector<text::CodePointSet::Range>, text::DfaPointer> ones_, runs_;
  std::size_t states_ = 0;
};

}  // namespace tooldecode::ebnf
