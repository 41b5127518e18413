#include <cstddef>
#include <string>
#include <utility>

#include <program/chat_writer.hpp>

namespace program {

std::string ChatWriter::response(Json choices, const Usage& usage) {
  Json whole       = object("chat.completion");
  whole["choices"] = std::move(choices);
  whole["usage"]   = usage.json();
  whole.update(head().notes);
  return json_text(whole);
}

std::string ChatWriter::begin(std::size_t choices) {
  std::string events;
  for (std::size_t i = 0; i < choices; ++i) {
    const Json delta{{"role", "assistant"}, {"content", ""}};
    Json first = chunk_json(i, delta, Json::array(), nullptr);
    first.update(head().notes);
    events += sse_event(first);
  }
  return events;
}

std::string ChatWriter::chunk(std::size_t choice, const Json& delta, const Json& tokens,
                              const AnswerEnd* end) {
  return sse_event(chunk_json(choice, delta, tokens, end));
}

std::string ChatWriter::end(const Usage& usage) {
  return stream_end(with_usage_ ? object("chat.completion.chunk") : Json(nullptr), usage);
}

Json ChatWriter::object(const char* kind) const {
  return {
      {"id", head().id}, {"object", kind}, {"created", head().created}, {"model", head().model}};
}

Json ChatWriter::chunk_json(std::size_t choice, const Json& delta, const Json& tokens,
                            const AnswerEnd* end) const {
  Json whole = object("chat.completion.chunk");
  Json part{{"index", choice},
            {"delta", delta},
            {"logprobs", log_probabilities_json(tokens)},
            {"finish_reason", end == nullptr ? Json(nullptr) : Json(end->reason)}};
  if (end != nullptr) {
    part["stop_reason"] = end->stop;
    if (!end->votes.empty()) part["consistency"] = end->votes;
  }
  whole["choices"] = Json::array({std::move(part)});
  if (with_usage_) whole["usage"] = nullptr;
  return whole;
}

}  // namespace program
