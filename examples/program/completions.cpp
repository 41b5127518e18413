#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <program/completions.hpp>
#include <program/parameter_names.hpp>

namespace program {

namespace {

constexpr std::size_t default_tokens = 16;  // as OpenAI documents it

RawPrompt read_prompt(const Fields& request, std::size_t vocabulary_size) {
  const Json& given = request.at("prompt");
  if (given.is_string()) return {.text = given.string(), .tokens = {}};
  if (!given.is_array()) {
    request.fail("prompt", "must be a string, or an array of token ids", "invalid_type");
  }
  if (given.size() == 1 && given[0].is_string()) return {.text = given[0].string(), .tokens = {}};
  RawPrompt prompt;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string place = "prompt[" + std::to_string(i) + ']';
    if (given[i].is_string() || given[i].is_array()) {
      request.fail("prompt", "must be one prompt: send a request for each", "unsupported_value");
    }
    if (!given[i].is_number_integer()) {
      request.fail(place, "must be an integer, a token's id", "invalid_type");
    }
    if (!given[i].is_number_unsigned() || given[i].get<std::uint64_t>() >= vocabulary_size) {
      request.fail(place, "is no token's id");
    }
    prompt.tokens.push_back(static_cast<tooldecode::TokenId>(given[i].get<std::uint64_t>()));
  }
  if (prompt.tokens.empty()) request.fail("prompt", "must not be empty");
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
  chat.stops   = read_stop(request);
  detail::read_stream(request, chat);
  read_text_rules(request, chat);
  if (chat.text.any()) {
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
