#pragma once

#include <algorithm>
#include <memory>

#include <tooldecode/ebnf/lark_pattern.hpp>
#include <tooldecode/ebnf/regular_parts.hpp>
#include <tooldecode/ebnf/strong_components.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE RegularParts::RegularParts(const Rules& rules)
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

TOOLDECODE_INLINE text::DfaPointer RegularParts::find_lexeme(Id id) {
  if (weight_[id] >= too_heavy || !varies_[id]) return nullptr;
  if (const auto known = known_.find(id); known != known_.end()) return known->second;
  return known_[id] = compile(id);
}

TOOLDECODE_INLINE text::DfaPointer RegularParts::one_of(const text::CodePointSet& set) {
  text::DfaPointer& one = ones_[set.ranges()];
  if (!one) {
    const text::TextDfa text({set}, {{{1}, false}, {{text::TextDfa::dead}, true}});
    one = std::make_shared<const text::Dfa>(text::utf8_lexeme(text));
  }
  return one;
}

TOOLDECODE_INLINE text::DfaPointer RegularParts::run_of(const text::CodePointSet& set) {
  text::DfaPointer& run = runs_[set.ranges()];
  if (!run)
    run = std::make_shared<const text::Dfa>(text::utf8_lexeme(text::TextDfa::repeated(set)));
  return run;
}

TOOLDECODE_INLINE bool RegularParts::is_counted(Id id) const {
  const Rules::Node& node = rules_[id];
  if (node.kind != Kind::repeat || rules_[node.parts[0]].kind != Kind::characters) return false;
  if (rules_[node.parts[0]].set.empty()) return false;  // its run would have no text to count
  return copies_of(node.occurrences) > max_copies;
}

TOOLDECODE_INLINE std::uint32_t RegularParts::copies_of(const text::Occurrences& count) {
  return std::max<std::uint32_t>(count.max == text::Occurrences::unbounded ? count.min : count.max,
                                 1);
}

TOOLDECODE_INLINE std::uint32_t RegularParts::capped(std::uint64_t weight) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(weight, too_heavy));
}

TOOLDECODE_INLINE std::uint32_t RegularParts::weigh(Id id) {
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
    case Kind::lexeme:  // its anchors mean its own ends
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

TOOLDECODE_INLINE text::DfaPointer RegularParts::compile(Id id) {
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

TOOLDECODE_INLINE void RegularParts::write(Id id, std::string& out) const {
  const Rules::Node& node = rules_[id];
  switch (node.kind) {
    case Kind::text:
      for (const char32_t c : text::decode_utf8(node.text)) write_pattern(c, out);
      return;
    case Kind::characters:
      return write_pattern(node.set, out);
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

}  // namespace tooldecode::ebnf
