// Decodes a value of a JSON Schema instead of a call: the shape is certain, the model fills it in.
//
// Adds: Constraint, used like any other constraint; FastForwardTokens, which need no model;
// explain_refusal, which says where a text breaks off, what was expected and which keyword forbids it;
// errors that name their place.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/decode.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

namespace {

constexpr std::string_view schema = R"({"properties": {
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

// Prints whether a text conforms, and if not, why.
void judge(const td::Constraint& constraint, std::string_view text) {
  //! [refusal]
  const auto refused = td::explain_refusal(constraint, text, schema, {.whitespace = 0});
  std::cout << (refused ? refused->text() : "conforms") << "\n\n";
  //! [refusal]
}

void run(const std::filesystem::path& directory) {
  const auto model              = td::LlamaModel::load(directory);
  const td::Tokenizer tokenizer = td::load_tokenizer(directory);
  const td::VocabularyIndex index{tokenizer.vocabulary()};  // shared by several constraints
  //! [schema]
  const auto constraint =
      td::Constraint(index, td::Grammar::json_schema(schema, {.whitespace = 0}));
  const td::Decoder decode{model, constraint};
  const td::Output output = decode(
      tokenizer.encode("<|begin|><|tools|>format: json\n<|user|>Please rent a car for five days in "
                       "Lisbon from Friday on.<|assistant|>",
                       {.parse_special = true}),
      {.max_tokens = 64});
  //! [schema]
  std::cout << tokenizer.decode(output.tokens) << "\n\n";

  // Which of these tokens need no model pass.
  const td::FastForwardTokens fast_forward{
      index, [&](std::string_view text) { return tokenizer.encode(text); }};
  std::string written;
  std::size_t spared = 0;
  auto state         = constraint.initial();
  for (std::size_t i = 0, known = 0; i < output.tokens.size(); ++i) {
    known = std::max(known, i + fast_forward(constraint, state, written).size());
    if (i < known) ++spared;
    written += tokenizer.vocabulary().bytes(output.tokens[i]);
    state = constraint.advance(state, output.tokens[i]).value_or(state);
  }
  std::cout << spared << " of " << output.tokens.size() << " tokens are forced\n\n";

  judge(constraint, R"({"name": "rent_car", "arguments": {"city": "Lisbon", "days": 31}})");
  judge(constraint, R"({"name": "rent_bike", "arguments": {}})");
  judge(constraint, R"({"name": "rent_car", "arguments": {"days": 5, "city": "Lisbon"}})");
  try {
    static_cast<void>(td::Constraint(
        index, td::Grammar::json_schema(R"({"items": {"type": "object"}, "uniqueItems": true})")));
  } catch (const td::Error& error) {
    std::cout << error.what() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/tiny");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "05_json_schema: " << error.what() << '\n';
    return 1;
  }
}
