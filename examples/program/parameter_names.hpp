/// \file
/// The names of the parameters of requests: which are read, and what becomes of the others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// A parameter that would change an answer and is not supported, and what to use instead.
struct UnsupportedParameter {
  std::string_view name;
  std::string_view instead = "";
  std::string_view usual   = "";  ///< JSON of the value that changes nothing here; empty: none
};

/// The parameters of one API beside those that every API has.
struct ParameterNames {
  std::span<const std::string_view> read;
  std::span<const std::string_view> ignored;  ///< without effect here
  std::span<const UnsupportedParameter> unsupported;
};

const ParameterNames& chat_parameters();
const ParameterNames& response_parameters();
const ParameterNames& completion_parameters();

/// Refuses parameters that are unknown or unsupported; returns those without effect.
std::vector<std::string> read_names(const Json& body, const Fields& request,
                                    const ParameterNames& names);

}  // namespace program
