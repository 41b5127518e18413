/// \file
/// Json: the JSON of the whole program.
#pragma once

#include <nlohmann/json.hpp>

namespace program {

/// JSON whose objects keep their order.
using Json = nlohmann::ordered_json;

}  // namespace program
