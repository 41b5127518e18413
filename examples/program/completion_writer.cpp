#include <cstddef>
#include <string>
#include <utility>

#include <tooldecode/text/utf8.hpp>

#include <program/completion_writer.hpp>

namespace program {

namespace {

// The text of a token; that of a part of a character is `bytes:\xf0\x9f`, as OpenAI writes it.
std::string token_name(const Json& token) {
  constexpr const char* digits = "0123456789abcdef";
  std::string bytes, escaped = "bytes:";
  for (const Json& byte : token.at("bytes")) {
    const auto value = byte.get<unsigned>();
    bytes += static_cast<char>(value);
    (escaped += "\\x") += digits[value / 16];
    escaped += digits[value % 16];
  }
  return tooldecode::text::is_utf8(bytes) ? bytes : escaped;
}

}  // namespace

std::string CompletionWriter::response(Json choices, const Usage& usage) {
  characters_.assign(choices.size(), 0);
  Json texts = Json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Json& choice = choices[i];
    const Json listed  = choice.at("logprobs");
    texts.push_back({{"index", i},
                     {"text", choice.at("message").at("content")},
                     {"logprobs", log_probabilities(
                                      i, listed.is_null() ? Json::array() : listed.at("content"))},
                     {"finish_reason", choice.at("finish_reason")},
                     {"stop_reason", choice.at("stop_reason")}});
  }
  Json whole       = object();
  whole["choices"] = std::move(texts);
  whole["usage"]   = usage.json();
  return json_text(whole);
}

std::string CompletionWriter::begin(std::size_t choices) {
  characters_.assign(choices, 0);
  return "";
}

std::string CompletionWriter::chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                    const AnswerEnd* end) {
  Json part{{"index", choice},
            {"text", delta.value("content", Json(""))},
            {"logprobs", log_probabilities(choice, tokens)},
            {"finish_reason", end == nullptr ? Json(nullptr) : Json(end->reason)}};
  if (end != nullptr) part["stop_reason"] = end->stop;
  Json whole       = object();
  whole["choices"] = Json::array({std::move(part)});
  if (with_usage_) whole["usage"] = nullptr;
  return sse_event(whole);
}

std::string CompletionWriter::end(const Usage& usage) {
  return stream_end(with_usage_ ? object() : Json(nullptr), usage);
}

Json CompletionWriter::object() const {
  return {{"id", head().id},
          {"object", "text_completion"},
          {"created", head().created},
          {"model", head().model}};
}

Json CompletionWriter::log_probabilities(std::size_t choice, const Json& tokens) {
  if (tokens.empty()) return nullptr;
  Json texts = Json::array(), values = Json::array(), top = Json::array(), offsets = Json::array();
  for (const Json& token : tokens) {
    texts.push_back(token_name(token));
    values.push_back(token.at("logprob"));
    Json likeliest = Json::object();
    for (const Json& one : token.at("top_logprobs")) {
      // They come most likely first.
      if (const std::string name = token_name(one); !likeliest.contains(name)) {
        likeliest[name] = one.at("logprob");
      }
    }
    top.push_back(likeliest.empty() ? Json(nullptr) : std::move(likeliest));
    offsets.push_back(characters_[choice]);
    for (const Json& byte : token.at("bytes")) {
      const bool begins = (byte.get<unsigned>() & 0xC0U) != 0x80U;  // a character of UTF-8
      characters_[choice] += begins ? 1 : 0;
    }
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace program
