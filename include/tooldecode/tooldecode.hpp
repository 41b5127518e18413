/// \file
/// The whole host library under one include.
///
/// For shorter compile times include only <tooldecode/constrain.hpp>, <tooldecode/grammars.hpp>,
/// <tooldecode/decode.hpp>, <tooldecode/speculate.hpp> or <tooldecode/execute.hpp>. No header in a
/// folder of the library includes one of these.
#pragma once

#include <tooldecode/constrain.hpp>
#include <tooldecode/decode.hpp>
#include <tooldecode/execute.hpp>
#include <tooldecode/grammars.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/speculate.hpp>
