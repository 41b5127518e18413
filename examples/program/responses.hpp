/// \file
/// Parses requests of OpenAI's Responses API.
#pragma once

#include <cstddef>

#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/openai.hpp>

namespace program {

/// Parses a request of the Responses API into what a chat completion would ask; ApiError names what
/// is wrong and where. The server keeps no responses, so the input is the whole dialogue.
ChatRequest parse_response(const Json& body, const Format& format, std::size_t vocabulary_size);

}  // namespace program
