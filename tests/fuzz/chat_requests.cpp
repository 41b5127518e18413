// A request body gives an error that says what and where, or a chat that can be answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>

#include <fuzz/fuzz.hpp>
#include <program/completions.hpp>
#include <program/formats.hpp>
#include <program/openai.hpp>
#include <program/responses.hpp>

namespace {

using namespace tooldecode;

// Reads a body; a refusal must be JSON with a client error status.
template <class Read>
void read(std::string_view text, Read read_body) {
  try {
    read_body(program::parse_exact_body(text));
  } catch (const program::ApiError& error) {
    fuzz::demand(error.status() >= 400 && error.status() < 500, "not the client's fault", text);
    const auto told = text::parse_json(program::json_text(error.json()));
    fuzz::demand(!told["error"]["message"].get<std::string>().empty(), "no message", text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  for (const char* format : {"python", "hermes"}) {
    read(text, [&](const program::Json&) {
      const auto chat =
          program::parse_chat(program::parse_body(text), program::format_named(format), 1000);
      fuzz::demand(!chat.messages.empty(), "nothing to answer", text);
      const bool calls = chat.tools.choice.choice == ToolChoice::required ||
                         chat.tools.choice.choice == ToolChoice::named;
      fuzz::demand(!calls || !chat.tools.callable.empty(), "a call to nothing", text);
      fuzz::demand(chat.tools.callable.size() <= chat.tools.all.size(), "tools of nobody", text);
      for (const TokenId token : chat.decode.end_tokens) {
        fuzz::demand(token >= 0 && token < 1000, "an end by no token", text);
      }
      fuzz::demand(
          chat.stops.size() <= 4 && std::count(chat.stops.begin(), chat.stops.end(), "") == 0,
          "texts that end nothing", text);
      for (const auto& [token, bias] : chat.decode.bias) {
        fuzz::demand(token >= 0 && token < 1000, "a bias of no token", text);
      }
    });
  }
  read(text, [&](const program::Json&) {
    const auto chat =
        program::parse_response(program::parse_body(text), program::format_named("hermes"), 1000);
    fuzz::demand(!chat.messages.empty(), "nothing to answer", text);
    fuzz::demand(chat.choices == 1 && chat.response_id.empty(), "several responses", text);
  });
  read(text, [&](const program::Json&) {
    const auto chat =
        program::parse_completion(program::parse_body(text), program::format_named("hermes"), 1000);
    fuzz::demand(chat.prompt && chat.messages.empty(), "nothing to continue", text);
    for (const TokenId token : chat.prompt->tokens) {
      fuzz::demand(token >= 0 && token < 1000, "a prompt of no token", text);
    }
  });
  read(text, [&](const program::Json& body) {
    const auto all = program::parse_cached_outputs(body);
    fuzz::demand(all.size() == (body.is_array() ? body.size() : 1), "some are lost", text);
    for (const program::CachedOutput& cached : all) {
      fuzz::demand(cached.any_arguments || cached.call.arguments.is_object(),
                   "arguments are no object", text);
    }
  });
  return 0;
}
