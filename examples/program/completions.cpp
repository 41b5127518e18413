#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <program/completions.hpp>
#include <program/parameter_names.hpp>

namespace program {

namespace {

constexpr std::size_t default_tokens = 16;  // as OpenAI documents it

RawPrompt read_prompt(const Fields& request, std::size_t vocabulary_size) {
  const Json& given = request.at("prompt");
  std::string name  = "prompt";
  const Json* list  = &given;
  if (given.is_string()) return {.text = given.string(), .tokens = {}};
  if (!given.is_array()) {
    request.fail("prompt", "must be a string, or an array of token ids", "invalid_type");
  }
  if (given.size() == 1 && given[0].is_string()) return {.text = given[0].string(), .tokens = {}};
  if (given.size() == 1 && given[0].is_array()) {
    name = "prompt[0]";
    list = &given[0];
  }
  RawPrompt prompt;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& id = (*list)[i];
    if (list == &given && (id.is_string() || id.is_array())) {
      request.fail("prompt", "must be one prompt: send a request for each", "unsupported_value");
    }
    const std::string place = name + '[' + std::to_string(i) + ']';
    prompt.tokens.push_back(detail::read_token(request, place, id, vocabulary_size));
  }
  if (prompt.tokens.empty()) request.fail(name, "must not be empty");
  return prompt;
}

}  // namespace

ChatRequest parse_completion(const Json& body, const Format& /*format*/,
                             std::size_t vocabulary_size) {
  constexpr int most_likely = 20;
  const Fields request(body, "");
  ChatRequest chat;
  chat.api     = Api::completions;
  chat.ignored = read_names(body, request, completion_parameters());
  request.allow_only("echo", false);
  request.allow_only("best_of", 1);
  request.allow_only("suffix", "");
  request.allow_only("ignore_eos", false);
  request.allow_only("include_stop_str_in_output", false);
  chat.model   = request.text("model");
  chat.prompt  = read_prompt(request, vocabulary_size);
  chat.choices = detail::read_choices(request);
  if (chat.choices > 1 && request.find("best_of") != nullptr) {
    request.fail("best_of", "is supported where n is 1 only", "unsupported_value");
  }
  chat.stops = read_stop(request);
  detail::read_stream(request, chat);
  read_text_rules(request, chat);
  // No format's messages are around the text.
  if (chat.text.schema) {
    auto [schema, place] = *std::exchange(chat.text.schema, std::nullopt);
    chat.text.grammar = TextGrammar{TextGrammar::Kind::schema, std::move(schema), std::move(place)};
  } else if (!chat.text.grammar) {
    chat.text.grammar = TextGrammar{TextGrammar::Kind::any, nullptr, "prompt"};
  }
  chat.decode = detail::read_decode(request, vocabulary_size);
  chat.seed   = detail::read_seed(request);
  if (const auto likeliest = request.find_integer("logprobs", 0)) {
    if (*likeliest > most_likely) {
      request.fail("logprobs", "must be at most " + std::to_string(most_likely));
    }
    chat.log_probabilities = true;
    chat.decode.likeliest  = static_cast<std::size_t>(*likeliest);
  }
  const auto most = request.find_integer("max_tokens", 1);
  chat.max_tokens = most ? static_cast<std::size_t>(*most) : default_tokens;
  return chat;
}

}  // namespace program
