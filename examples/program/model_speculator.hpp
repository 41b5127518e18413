/// \file
/// ModelSpeculator: a model that guesses the next call of another model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/assistant.hpp>
#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/prompt.hpp>

namespace program {

/// How a speculator samples; greedy by default.
struct GuessOptions {
  float temperature      = 0;
  std::uint64_t seed     = 0;
  std::size_t max_tokens = 128;  ///< of a guess; a longer one proposes nothing
};

/// Guesses the next answer of a dialogue. Of a chat completion request it reads only the messages,
/// in the form of any server.
///
/// A guess is useful only before the reply. So everything shared by guesses is made in advance: the
/// constraint of the tools and the prompt that describes them. Earlier turns stay in a prefix
/// cache, and tokens are drafted from the prompt.
///
/// \par Threads     one guess at a time
/// \par Errors      constructor: as ToolCallFSM; a guess: ApiError for messages that cannot be
///                  read, Error for a prompt that the model cannot hold
class ModelSpeculator {
 public:
  ModelSpeculator(std::shared_ptr<const Assistant> assistant, tooldecode::ToolSet tools,
                  const GuessOptions& options);

  [[nodiscard]] tooldecode::Reply operator()(const Json& request, const std::stop_token& stop);

 private:
  using Drafter =
      tooldecode::DrafterGroup<tooldecode::SuffixDrafter, tooldecode::JumpForwardDrafter>;
  using Batch = tooldecode::ContinuousBatch<tooldecode::ModelRef, tooldecode::ToolCallFSM, Drafter>;

  static const Format& format() { return format_named("python"); }

  // Servers add members to their replies that do not affect the next call.
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
