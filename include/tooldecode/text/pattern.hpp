/// \file
/// Pattern: an ECMA-262 regular expression as a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/pattern_reader.hpp>

namespace tooldecode::text {

/// The syntax tree of a pattern in Unicode mode, as JSON Schema's `pattern` has it.
///
/// Groups leave no trace, lazy quantifiers are greedy ones: neither changes which texts match. What
/// only the older, lenient grammar of ECMA-262's annex B allows and what means the same everywhere
/// is taken too: brackets and braces that stand alone, `[\w-.]`, escapes of punctuation. Every
/// other SyntaxError of the Unicode mode is one here, `a{,3}` and `(?P<n>a)` among them, which
/// other dialects read in ways of their own.
///
/// Two escaped surrogates in a row are the character that they write. A surrogate that stands alone
/// is in no text, which is a sequence of Unicode scalar values: it matches nothing, in a class too.
/// A bound of a quantifier past 2^31 - 2 is as good as none, as in the engines of browsers.
///
/// \par Complexity  O(length), and O(ranges) for a property
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_pattern} or, for what is no regular language or is not
///                  supported and where the syntax is right, Error{unsupported_pattern}, with the
///                  byte; Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2.1 and annex B.1.2
class Pattern {
 public:
  using Index = std::uint32_t;
  enum class Kind : std::uint8_t {
    set,        ///< one character
    sequence,   ///< all children in turn
    choice,     ///< one of the children
    repeat,     ///< the child, so many times
    begin,      ///< the begin of the text
    end,        ///< the end of the text
    edge,       ///< a word begins or ends here; negated: none does
    lookahead,  ///< the child matches from here on, negated: does not
  };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<Index> children{};
    Index set = 0;  ///< of a set: which one
    Occurrences count{};
    bool negated   = false;
    bool has_look  = false;  ///< it holds a lookahead
    bool can_empty = true;   ///< it may match the empty text somewhere
  };

  explicit Pattern(std::string_view pattern);

  [[nodiscard]] const Node& operator[](Index node) const { return nodes_[node]; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] Index root() const noexcept { return root_; }
  /// The sets of characters, each once.
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

  // A group's number or name is known to be right at the end of the pattern only.
  Index reference(std::size_t begin);
  Index named_reference(std::size_t begin);
  void check_references();
  Index group();
  // What changes the flags for one group, up to its colon.
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
  std::map<std::vector<CodePointSet::Range>, Index> set_index_;
  std::size_t ranges_ = 0;  // of all sets
  Index root_         = 0;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/pattern.ipp>
#endif
