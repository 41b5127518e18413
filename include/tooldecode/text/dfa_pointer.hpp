/// \file
/// DfaPointer: a shared lexeme automaton, for headers that need no definition of Dfa.
#pragma once

#include <memory>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

class Dfa;

/// Grammars share lexemes, so data per lexeme and vocabulary is computed once.
using DfaPointer = std::shared_ptr<const Dfa>;

}  // namespace tooldecode::text
