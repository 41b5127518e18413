/// \file
/// Everything that users of the host library write, under one include.
///
/// Who needs a part of it includes <tooldecode/constrain.hpp>, <tooldecode/decode.hpp>,
/// <tooldecode/speculate.hpp> or <tooldecode/execute.hpp>, which compile sooner. The library itself
/// includes none of the five.
#pragma once

#include <tooldecode/constrain.hpp>
#include <tooldecode/decode.hpp>
#include <tooldecode/execute.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/speculate.hpp>
