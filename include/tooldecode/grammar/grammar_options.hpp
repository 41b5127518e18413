/// \file
/// How grammars that are written as text are read: EbnfOptions, LarkOptions, StructuralTagOptions.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/core/build_budget.hpp>

namespace tooldecode {

class Vocabulary;

/// How Grammar::ebnf reads a grammar.
struct EbnfOptions {
  std::string_view root        = "root";   ///< the rule that whole texts match
  const Vocabulary* vocabulary = nullptr;  ///< what `<token>` may name; null: no token
  BuildLimits limits{};                    ///< what building it may cost
};

/// How Grammar::lark reads a grammar.
struct LarkOptions {
  const Vocabulary* vocabulary = nullptr;  ///< what `<token>` may name; null: no token
  std::uint32_t whitespace     = 40;       ///< of `%json`, see SchemaOptions
  bool every_spelling          = false;    ///< of `%json`, see SchemaOptions
  BuildLimits limits{};                    ///< what building it may cost
};

/// How Grammar::structural_tag reads a document.
struct StructuralTagOptions {
  const Vocabulary* vocabulary = nullptr;  ///< what formats of tokens may name; null: no token
  std::uint32_t whitespace     = 40;       ///< most bytes of optional white space, in values of
                                           ///< schemas and between elements, where a tag has none
  bool every_spelling = false;             ///< as in SchemaOptions
  BuildLimits limits{};                    ///< what building it may cost
};

}  // namespace tooldecode
