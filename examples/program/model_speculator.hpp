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
#include <program/dialogue.hpp>
#include <program/fields.hpp>
#include <program/formats.hpp>
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
template <class M>
class ModelSpeculator {
 public:
  ModelSpeculator(std::shared_ptr<const Assistant<M>> assistant, tooldecode::ToolSet tools,
                  const GuessOptions& options)
      : assistant_(std::move(assistant)),
        tools_(std::move(tools)),
        options_(options),
        calls_(format().constrain(assistant_->masks, tools_,
                                  {.choice = tools_.empty() ? tooldecode::ToolChoice::none
                                                            : tooldecode::ToolChoice::automatic})),
        batch_(assistant_->model, {.max_batch = 1}) {
    static_cast<void>(decode(prompt({}), {.max_tokens = 1}));
  }

  [[nodiscard]] tooldecode::Reply operator()(const Json& request, const std::stop_token& stop) {
    Dialogue dialogue(format());
    Json body{{"messages", messages(request)}};
    const Fields fields(body, "");
    for (const Fields& message : fields.objects("messages")) dialogue.add(message);
    const auto output = decode(
        prompt(dialogue.finish(fields)),
        {.max_tokens  = options_.max_tokens,
         .temperature = options_.temperature,
         .seed        = options_.seed,
         .ends_after  = [&](const tooldecode::TokenEvent&) { return stop.stop_requested(); }});
    tooldecode::Reply guess{.text = assistant_->tokenizer.decode(output.tokens)};
    if (output.finish == tooldecode::Finish::end) guess.calls = calls_.parse(guess.text);
    return guess;
  }

 private:
  using Drafter =
      tooldecode::DrafterGroup<tooldecode::PromptLookupDrafter, tooldecode::ForcedDrafter>;
  using Batch = tooldecode::ContinuousBatch<M, tooldecode::ToolCallFSM, Drafter>;

  static const Format& format() { return format_named("python"); }

  // Servers have members of their own in their replies, which say nothing about the next call.
  static Json messages(const Json& request) {
    Json kept = Json::array();
    for (Json message : Fields(request, "").at("messages")) {
      if (message.is_object() && message.value("role", Json()) == "assistant") {
        Json known = Json::object();
        for (const char* key : {"role", "content", "tool_calls", "cached_tool_calls"}) {
          if (message.contains(key)) known[key] = std::move(message[key]);
        }
        message = std::move(known);
      }
      kept.push_back(std::move(message));
    }
    return kept;
  }

  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(
      const std::vector<Message>& messages) const {
    return assistant_->prompt(tools_, format(), messages);
  }

  tooldecode::Output decode(std::vector<tooldecode::TokenId> prompt,
                            tooldecode::DecodeOptions options) {
    tooldecode::Output output;
    batch_.add({.prompt     = std::move(prompt),
                .constraint = calls_,
                .options    = std::move(options),
                .drafter    = Drafter{tooldecode::PromptLookupDrafter{assistant_->masks},
                                   tooldecode::ForcedDrafter{[this](std::string_view text) {
                                     return assistant_->tokenizer.encode(text);
                                   }}},
                .on_end     = [&](const tooldecode::Output& done) {
                  output = done;
                  return tooldecode::AfterTurn(tooldecode::Leave{});
                }});
    while (batch_.step()) {}
    return output;
  }

  std::shared_ptr<const Assistant<M>> assistant_;
  tooldecode::ToolSet tools_;
  GuessOptions options_;
  tooldecode::ToolCallFSM calls_;
  Batch batch_;
};

}  // namespace program
