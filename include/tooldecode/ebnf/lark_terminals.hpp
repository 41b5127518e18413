/// \file
/// LarkTerminals: compiles the terminals of a Lark grammar to automata over code points.
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
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::ebnf {

/// The expression of a terminal that `%import common.NAME` imports.
///
/// \par Source      Lark, grammars/common.lark
[[nodiscard]] std::optional<std::string_view> find_lark_common(std::string_view name);

/// Compiles the expressions of one file's terminals.
///
/// \par Complexity  as compile_pattern
/// \par Threads     one at a time
/// \par Errors      Error{malformed_grammar, malformed_pattern, unsupported_pattern} with the byte;
///                  Error{unsupported_keyword} for an intersection or a negation inside a sequence
///                  or a repetition; Error{limit_exceeded}
class LarkTerminals {
 public:
  /// \param file  must outlive this object
  explicit LarkTerminals(const LarkFile& file) : file_(file) {}

  /// The texts of an expression, which may name terminals only.
  [[nodiscard]] text::TextDfa compile(const LarkExpression& expression);

 private:
  using Kind                                  = LarkExpression::Kind;
  static constexpr std::size_t max_pattern    = std::size_t{1} << 18;
  static constexpr std::size_t max_substrings = std::size_t{1} << 22;  // bytes of their pattern
  static constexpr std::size_t max_chunks     = 200;
  static constexpr std::uint32_t max_nested   = 1'000;

  [[noreturn]] static void fail(const std::string& what, std::size_t at);
  // Limits the depth of recursion to what the call stack allows.
  struct Descent {
    Descent(LarkTerminals& terminals, std::size_t at);
    Descent(const Descent&)            = delete;
    Descent& operator=(const Descent&) = delete;
    ~Descent();
    std::uint32_t& depth;
  };
  // Calls `use` with the body of a terminal, which must not contain itself.
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

  // Whether an ECMA-262 pattern can express it: no intersection and no negation.
  bool is_plain(const LarkExpression& expression);
  text::TextDfa combined(const LarkExpression& expression);

  void write(const LarkExpression& expression, std::string& out);
  // Throws if a pattern has more than `most` bytes.
  static void require_room(const LarkExpression& expression, const std::string& out,
                           std::size_t most);

  // Any run of consecutive chunks, including the empty one.
  static void write_substring(const LarkExpression& expression, std::string& out);
  static std::vector<std::u32string> chunks_of(const LarkExpression& expression);

  const LarkFile& file_;
  std::set<std::string, std::less<>> open_;  // terminals being compiled
  std::map<std::string, std::string> patterns_;
  std::map<std::string, bool> is_plain_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_terminals.ipp>
#endif
