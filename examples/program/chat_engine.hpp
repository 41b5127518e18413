/// \file
/// ChatEngine: an EngineSpeculator over any model with any drafters.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/execute/tool_cache.hpp>

#include <program/assistant.hpp>
#include <program/drafts.hpp>

namespace program {

class ChatEngine {
 public:
  virtual ~ChatEngine() = default;

  virtual void submit(tooldecode::EngineRequest request, tooldecode::EngineListener listener) = 0;
  virtual void cancel(std::string_view id)                                                    = 0;
  virtual bool step()                                                                         = 0;
  virtual void wait(const std::stop_token& stop)                                              = 0;
  [[nodiscard]] virtual tooldecode::EngineCounts counts() const                               = 0;
};

/// Makes an engine; the arguments are those of EngineSpeculator.
using EngineMaker = std::function<std::unique_ptr<ChatEngine>(tooldecode::ToolCache* cache,
                                                              tooldecode::ResultTokens render,
                                                              tooldecode::EngineOptions options)>;

/// Calls `use` with a function that makes engines over the assistant's model, with the user's
/// drafters and announced outputs as drafts. Answers that end are added to the history. The engines
/// are valid only during the call. Errors as `with_drafter`.
void with_engine_maker(const Assistant& assistant, const Drafting& drafting,
                       const std::function<void(const EngineMaker&)>& use);

}  // namespace program
