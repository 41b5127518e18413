/// \file
/// LarkTerminals: what the terminals of a Lark grammar match, as automata over code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_pattern.hpp>
#include <tooldecode/ebnf/lark_syntax.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/unicode_properties.hpp>

namespace tooldecode::ebnf {

/// The expression of a terminal that `%import common.NAME` brings.
///
/// \par Source  Lark, grammars/common.lark
[[nodiscard]] std::optional<std::string_view> find_lark_common(std::string_view name);

/// Compiles the expressions of one file's terminals.
///
/// \par Complexity  as compile_pattern
/// \par Threads     one at a time
/// \par Errors      Error{malformed_grammar, malformed_pattern, unsupported_pattern} with the byte;
///                  Error{unsupported_keyword} for an intersection or a negation inside a sequence or
///                  a repetition; Error{limit_exceeded}
class LarkTerminals {
 public:
  /// \param file  outlives this
  explicit LarkTerminals(const LarkFile& file) : file_(file) {}

  /// The texts of an expression, which names terminals alone.
  [[nodiscard]] text::TextDfa compile(const LarkExpression& expression);

 private:
  using Kind                                = LarkExpression::Kind;
  static constexpr std::size_t max_pattern  = std::size_t{1} << 18;
  static constexpr std::size_t max_chunks   = 200;
  static constexpr std::uint32_t max_nested = 1'000;

  [[noreturn]] static void fail(const std::string& what, std::size_t at);
  // A recursion, no deeper than the stack allows.
  struct Descent {
    Descent(LarkTerminals& terminals, std::size_t at);
    Descent(const Descent&)            = delete;
    Descent& operator=(const Descent&) = delete;
    ~Descent();
    std::uint32_t& depth;
  };
  // Calls with the body of a terminal, which may not be inside itself.
  template <class Use>
  auto with_body(const LarkExpression& expression, const Use& use) {
    const auto known = file_.rules.find(expression.text);
    if (known == file_.rules.end()) {
      fail("'" + expression.text + "' is not defined", expression.at);
    }
    if (!is_lark_terminal(expression.text)) {
      fail("the rule '" + expression.text + "' inside a terminal", expression.at);
    }
    if (!open_.insert(expression.text).second) {
      fail("the terminal '" + expression.text + "' is inside itself", expression.at);
    }
    auto result = use(known->second.body);
    open_.erase(expression.text);
    return result;
  }

  // Whether a pattern of ECMA-262 says it: it holds no intersection and no negation.
  bool is_plain(const LarkExpression& expression);
  text::TextDfa combined(const LarkExpression& expression);

  void write(const LarkExpression& expression, std::string& out);

  // Any run of a list of chunks, the empty one too.
  static void write_substring(const LarkExpression& expression, std::string& out);
  static std::vector<std::u32string> chunks_of(const LarkExpression& expression);

  const LarkFile& file_;
  std::set<std::string, std::less<>> open_;      // terminals that are being written
  std::map<std::string, std::string> patterns_;  // of terminals
  std::map<std::string, bool> is_plain_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_terminals.ipp>
#endif
