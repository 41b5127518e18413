/// \file
/// Pattern: an ECMA-262 regular expression as a syntax tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/pattern_reader.hpp>

namespace tooldecode::text {

/// The syntax tree of a pattern in Unicode mode, for JSON Schema's `pattern`.
///
/// Groups are not stored, and lazy quantifiers become greedy: neither changes which texts match.
/// Some syntax that only ECMA-262's older annex B allows is accepted if it means the same
/// everywhere: unpaired brackets and braces, `[\w-.]`, escaped punctuation. Every other SyntaxError
/// of the Unicode mode is an error here, including `a{,3}` and `(?P<n>a)`, which other dialects
/// interpret differently.
///
/// Two adjacent escaped surrogates are the character that they encode. A text is a sequence of
/// Unicode scalar values, so a lone surrogate matches nothing, in a class too. A quantifier bound
/// above 2^31 - 2 means no bound, as in browser engines.
///
/// \par Complexity  O(length), and O(ranges) for a property
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_pattern}, or Error{unsupported_pattern} for a pattern with
///                  correct syntax that is not regular or not supported, with the byte;
///                  Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2.1 and annex B.1.2
class Pattern {
 public:
  using Index = std::uint32_t;
  enum class Kind : std::uint8_t {
    set,
    sequence,  ///< all children in order
    choice,
    repeat,  ///< the child, repeated
    begin,
    end,
    edge,       ///< a word boundary; negated: no word boundary
    lookahead,  ///< the child matches from here on; negated: it does not
  };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<Index> children{};
    Index set = 0;  ///< for set: its index
    Occurrences count{};
    bool negated   = false;
    bool has_look  = false;  ///< contains a lookahead
    bool can_empty = true;   ///< may match the empty text
  };

  explicit Pattern(std::string_view pattern);

  [[nodiscard]] const Node& operator[](Index node) const { return nodes_[node]; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] Index root() const noexcept { return root_; }
  /// The distinct character sets.
  [[nodiscard]] const std::vector<CodePointSet>& sets() const noexcept { return sets_; }

 private:
  static constexpr std::size_t max_ranges   = 200'000;
  static constexpr std::uint32_t max_nested = 200;

  Index add(Node node);
  Index characters(CodePointSet set);

  Index alternatives();
  Index terms();
  Index term();
  std::optional<Occurrences> quantifier();
  Index atom();

  // A reference can be checked only at the end of the pattern.
  Index reference(std::size_t begin);
  Index named_reference(std::size_t begin);
  void check_references();
  Index group();
  // Reads a group's flag changes, up to its colon.
  void flags(std::size_t begin);

  struct Reference {
    std::size_t begin;
    std::uint64_t number;
    std::u32string name;  // empty: by number
  };

  PatternReader text_;
  std::uint32_t depth_  = 0;
  bool is_assertion_    = false;  // the last atom is one
  std::uint64_t groups_ = 0;
  std::vector<std::u32string> names_;  // of groups that may match together with what follows
  std::vector<Reference> references_;
  std::vector<Node> nodes_;
  std::vector<CodePointSet> sets_;
  std::map<std::vector<CodePointSet::Range>, Index> set_nodes_;
  std::size_t ranges_ = 0;  // of all sets
  Index root_         = 0;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/pattern.ipp>
#endif
