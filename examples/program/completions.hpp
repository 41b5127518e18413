/// \file
/// Parses requests of OpenAI's older completions, which continue a text.
#pragma once

#include <cstddef>

#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/openai.hpp>

namespace program {

/// Parses a completion request; ApiError names what is wrong and where. The prompt is one text,
/// whose names of control tokens are these tokens, or one list of token ids.
ChatRequest parse_completion(const Json& body, const Format& format, std::size_t vocabulary_size);

}  // namespace program
