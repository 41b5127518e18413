/// \file
/// Json: the JSON of the whole program.
#pragma once

#include <tooldecode/text/json_value.hpp>

namespace program {

/// JSON whose objects keep their order.
using Json = tooldecode::JsonValue;

}  // namespace program
