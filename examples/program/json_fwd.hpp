/// \file
/// Json, declared: enough for who passes it on.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace program {

/// JSON whose objects keep their order.
using Json = nlohmann::ordered_json;

}  // namespace program
