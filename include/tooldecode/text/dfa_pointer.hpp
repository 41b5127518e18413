/// \file
/// DfaPointer: a lexeme's automaton, for headers that only hand it on.
#pragma once

#include <memory>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

class Dfa;

/// Lexemes are shared between grammars, so that what is computed per vocabulary is computed once.
using DfaPointer = std::shared_ptr<const Dfa>;

}  // namespace tooldecode::text
