/// \file
/// ModelSpeculator: a model as one that guesses what another model is going to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/forced_drafter.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/assistant.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/prompt.hpp>

namespace program {

/// How a speculator samples; the default is greedy.
struct GuessOptions {
  float temperature      = 0;
  std::uint64_t seed     = 0;
  std::size_t max_tokens = 128;  ///< of a guess; one that is longer proposes nothing
};

/// Guesses the next answer of a dialogue: of a request for a chat completion it reads the messages,
/// whatever else stands there and whichever server they are meant for.
///
/// A guess is of use only where it is there before the reply. So what every guess needs is made
/// beforehand: the constraint of the tools, and the prompt that tells of them; earlier turns stay
/// in a prefix cache, and tokens are drafted from the prompt.
///
/// \par Threads  one guess at a time
/// \par Errors   from the constructor as ToolCallFSM; from a guess ApiError for messages that
/// cannot
///               be read, Error for a prompt that the model cannot hold
class ModelSpeculator {
 public:
  ModelSpeculator(std::shared_ptr<const Assistant> assistant, tooldecode::ToolSet tools,
                  const GuessOptions& options);

  [[nodiscard]] tooldecode::Reply operator()(const Json& request, const std::stop_token& stop);

 private:
  using Drafter =
      tooldecode::DrafterGroup<tooldecode::PromptLookupDrafter, tooldecode::ForcedDrafter>;
  using Batch = tooldecode::ContinuousBatch<tooldecode::ModelRef, tooldecode::ToolCallFSM, Drafter>;

  static const Format& format() { return format_named("python"); }

  // Servers have members of their own in their replies, which say nothing about the next call.
  static Json messages(const Json& request);

  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(const std::vector<Message>& messages) const;

  tooldecode::Output decode(std::vector<tooldecode::TokenId> prompt,
                            tooldecode::DecodeOptions options);

  std::shared_ptr<const Assistant> assistant_;
  tooldecode::ModelRef model_;
  tooldecode::ToolSet tools_;
  GuessOptions options_;
  tooldecode::ToolCallFSM calls_;
  Batch batch_;
};

}  // namespace program
