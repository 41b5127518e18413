/// \file
/// Includes the adapters for llama.cpp: its vocabularies, samplers for its chains, its grammars, and
/// its models.
#pragma once

// IWYU pragma: begin_exports
#include <tooldecode/adapters/llama_cpp_grammar.hpp>
#include <tooldecode/adapters/llama_cpp_model.hpp>
#include <tooldecode/adapters/llama_cpp_sampler.hpp>
#include <tooldecode/adapters/llama_cpp_vocabulary.hpp>
// IWYU pragma: end_exports
