/// \file
/// Json: the JSON of the whole program.
#pragma once

#include <nlohmann/json.hpp>
#include <program/json_fwd.hpp>
