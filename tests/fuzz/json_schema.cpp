// A JSON Schema gives a typed error, or an automaton whose texts are values that conform to it.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <fuzz/fuzz.hpp>
#include <fuzz/walk.hpp>
#include <support/slow_validator.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::text;

// The slow validator's result; true for what it cannot judge.
bool conforms(const JsonValue& value, const JsonValue& schema) {
  try {
    return slow::conforms(value, schema, schema);
  } catch (const std::exception&) {
    return true;
  }
}

void walk(const JsonValue& schema, const SchemaOptions& options, std::uint32_t seed) {
  Grammar grammar;
  SchemaCompiler compiler(grammar, schema, options);
  const NodeId root     = compiler.value(schema, "#");
  const auto constraint = fuzz::constraint_of(grammar.rooted(root));
  std::mt19937 random(seed);
  fuzz::walk_masks(constraint, random);
  const bool json = options.syntax == ValueSyntax::json;
  // The validator's patterns backtrack, some of them forever.
  const bool judged =
      fuzz::judges_schemas && schema.text().find("\"pattern\"") == std::string::npos;
  for (int i = 0; i < 4; ++i) {
    const auto text = fuzz::random_text(constraint.automaton(), random);
    if (!text) continue;
    fuzz::must_read(*text, [&](std::string_view value) {
      ValueReader reader(value, json ? ValueReader::Language::json : ValueReader::Language::python,
                         Errc::malformed_call);
      reader.allow_repeated_keys();
      const auto read = reader.value();
      fuzz::demand(reader.at_end(), "more than a value", value);
      fuzz::demand(!judged || conforms(read, schema), "does not conform", value);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  for (const bool json : {true, false}) {
    try {
      walk(parse_json(text),
           {.syntax           = json ? ValueSyntax::json : ValueSyntax::python,
            .documented_order = !json,
            .whitespace       = json ? 40U : 0U},
           fuzz::seed_of(text));
    } catch (const Error&) {
      continue;
    }
  }
  return 0;
}
