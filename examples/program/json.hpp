/// \file
/// Json: the JSON type of the program.
#pragma once

#include <tooldecode/text/json_value.hpp>

namespace program {

using Json = tooldecode::JsonValue;

}  // namespace program
