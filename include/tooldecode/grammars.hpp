/// \file
/// Readers of grammars that are texts: Grammar::ebnf, Grammar::lark and Grammar::structural_tag.
///
/// Without TOOLDECODE_COMPILED their definitions are here, so that a program with tools and schemas
/// alone does not compile them.
#pragma once

#include <tooldecode/constrain.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/structural_tag.hpp>
