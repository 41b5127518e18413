// A value of a JSON Schema instead of a call: the shape is certain, the model fills it in.
//
// Adds: JsonSchemaConstraint, which a Decoder takes like any other constraint; ForcedTokens, which
// finds the tokens that need no model; explain, which says what was expected where a text breaks
// off; errors that name the place of what a schema cannot say.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/forced_tokens.hpp>
#include <tooldecode/constraint/json_schema_constraint.hpp>

#include <program/answer.hpp>

namespace td = tooldecode;

namespace {

constexpr std::string_view schema = R"({
  "properties": {
    "name": {"const": "rent_car"},
    "arguments": {
      "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 30},
        "insurance": {"type": "boolean"}
      },
      "type": "object", "required": ["city", "days"], "additionalProperties": false
    }
  },
  "type": "object", "required": ["name", "arguments"], "additionalProperties": false
})";

// How far a text conforms.
void judge(const td::JsonSchemaConstraint& constraint, std::string_view text) {
  auto state     = constraint.initial();
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const auto next = constraint.advance_bytes(state, text.substr(at, 1));
    if (!next) break;
    state = *next;
  }
  std::cout << text << '\n'
            << std::string(at, ' ') << "^ "
            << (at == text.size() ? "conforms" : "expected " + td::explain(constraint, state))
            << '\n';
}

void run() {
  const program::Assistant assistant(program::example_data("tiny"));
  const auto constraint =
      td::JsonSchemaConstraint::parse(assistant.masks, schema, {.whitespace = 0});
  const td::Decoder decode{assistant.model, constraint};
  const auto prompt =
      program::make_prompt(assistant.tokenizer, {}, "json",
                           {{"user", "Please rent a car for five days in Lisbon from Friday on."}});
  const td::Output output = decode(prompt, {.max_tokens = 64});
  std::cout << assistant.tokenizer.decode(output.tokens) << "\n\n";

  // Which of these tokens the model need not have been asked for.
  const td::ForcedTokens forced{
      assistant.masks, [&](std::string_view text) { return assistant.tokenizer.encode(text); }};
  std::string written;
  std::size_t spared = 0;
  auto state         = constraint.initial();
  for (std::size_t i = 0, known = 0; i < output.tokens.size(); ++i) {
    known = std::max(known, i + forced(constraint, state, written).size());
    if (i < known) ++spared;
    written += assistant.tokenizer.vocabulary().bytes(output.tokens[i]);
    state = constraint.advance(state, output.tokens[i]).value_or(state);
  }
  std::cout << spared << " of " << output.tokens.size() << " tokens are forced\n\n";

  judge(constraint, R"({"name": "rent_car", "arguments": {"city": "Lisbon", "days": 31}})");
  judge(constraint, R"({"name": "rent_bike", "arguments": {}})");
  judge(constraint, R"({"name": "rent_car", "arguments": {"days": 5, "city": "Lisbon"}})");
  try {
    static_cast<void>(td::JsonSchemaConstraint::parse(
        assistant.masks, R"({"items": {"type": "string"}, "uniqueItems": true})"));
  } catch (const td::Error& error) {
    std::cout << '\n' << error.what() << '\n';
  }
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "05_json_schema: " << error.what() << '\n';
    return 1;
  }
}
