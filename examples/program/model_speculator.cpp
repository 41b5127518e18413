#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include <program/dialogue.hpp>
#include <program/fields.hpp>
#include <program/model_speculator.hpp>

namespace program {

ModelSpeculator::ModelSpeculator(std::shared_ptr<const Assistant> assistant,
                                 tooldecode::ToolSet tools, const GuessOptions& options)
    : assistant_(std::move(assistant)),
      model_(assistant_->model_ref()),
      tools_(std::move(tools)),
      options_(options),
      calls_(
          tooldecode::ToolCallFSM(assistant_->masks, tools_, format().format,
                                  {.choice = tools_.empty() ? tooldecode::ToolChoice::none
                                                            : tooldecode::ToolChoice::automatic})),
      batch_(model_, {.max_batch = 1}) {
  static_cast<void>(decode(prompt({}), {.max_tokens = 1}));
}

tooldecode::Reply ModelSpeculator::operator()(const Json& request, const std::stop_token& stop) {
  Dialogue dialogue(format(), tools_);
  Json body{{"messages", messages(request)}};
  const Fields fields(body, "");
  for (const Fields& message : fields.objects("messages")) dialogue.add(message);
  const auto output =
      decode(prompt(dialogue.finish(fields)),
             {.max_tokens  = options_.max_tokens,
              .temperature = options_.temperature,
              .seed        = options_.seed,
              .ends_after  = [&](const tooldecode::TokenEvent&) { return stop.stop_requested(); }});
  tooldecode::Reply guess{.text = calls_.vocabulary().answer_text(output.tokens)};
  if (output.finish == tooldecode::Finish::end) guess.calls = calls_.parse(guess.text);
  return guess;
}

Json ModelSpeculator::messages(const Json& request) {
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

std::vector<tooldecode::TokenId> ModelSpeculator::prompt(
    const std::vector<Message>& messages) const {
  return assistant_->prompt(tools_, format(), messages);
}

tooldecode::Output ModelSpeculator::decode(std::vector<tooldecode::TokenId> prompt,
                                           tooldecode::DecodeOptions options) {
  tooldecode::Output output;
  batch_.add({.prompt     = std::move(prompt),
              .constraint = calls_,
              .options    = std::move(options),
              .drafter    = Drafter{tooldecode::SuffixDrafter{assistant_->masks},
                                 tooldecode::JumpForwardDrafter{[this](std::string_view text) {
                                   return assistant_->tokenizer.encode(text);
                                 }}},
              .on_end     = [&](const tooldecode::Output& done) {
                output = done;
                return tooldecode::AfterTurn(tooldecode::Leave{});
              }});
  while (batch_.step()) {}
  return output;
}

}  // namespace program
