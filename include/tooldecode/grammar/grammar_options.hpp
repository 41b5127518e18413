/// \file
/// Options of grammars that are read from text: EbnfOptions, LarkOptions, StructuralTagOptions.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/core/build_budget.hpp>

namespace tooldecode {

class Vocabulary;

/// Options of Grammar::ebnf.
struct EbnfOptions {
  std::string_view root        = "root";   ///< the rule of whole texts
  const Vocabulary* vocabulary = nullptr;  ///< for `<token>`; null: no tokens
  BuildLimits limits{};
};

/// Options of Grammar::lark.
struct LarkOptions {
  const Vocabulary* vocabulary = nullptr;  ///< for `<token>`; null: no tokens
  std::uint32_t whitespace     = 40;       ///< of `%json`, see SchemaOptions
  bool every_spelling          = false;    ///< of `%json`, see SchemaOptions
  BuildLimits limits{};
};

/// Options of Grammar::structural_tag.
struct StructuralTagOptions {
  const Vocabulary* vocabulary = nullptr;  ///< for token formats; null: no tokens
  std::uint32_t whitespace     = 40;  ///< most bytes of optional white space in schema values and
                                      ///< between elements, if a tag sets no limit
  bool every_spelling = false;        ///< see SchemaOptions
  BuildLimits limits{};
};

}  // namespace tooldecode
