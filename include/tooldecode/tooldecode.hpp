/// \file
/// The whole host library under one include.
///
/// For shorter compile times include only <tooldecode/constrain.hpp>, <tooldecode/grammars.hpp>,
/// <tooldecode/decode.hpp>, <tooldecode/speculate.hpp> or <tooldecode/execute.hpp>. The library itself includes none of
/// these six headers.
#pragma once

#include <tooldecode/constrain.hpp>
#include <tooldecode/decode.hpp>
#include <tooldecode/execute.hpp>
#include <tooldecode/grammars.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/speculate.hpp>
