/// \file
/// plain_prompter: prompts of models without a chat template.
#pragma once

#include <program/assistant.hpp>
#include <program/shots.hpp>

namespace program {

/// Writes dialogues as plain text after the model's begin token, with the documents of tools in
/// their first turn. Only prompts with tools contain the examples.
[[nodiscard]] Prompter plain_prompter(Shots shots);

}  // namespace program
