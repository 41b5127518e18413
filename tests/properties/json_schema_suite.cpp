#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

namespace {

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

bool accepts(const std::optional<Automaton>& automaton, const std::string& text) {
  return automaton && test::accepts(*automaton, text);
}

// Nothing for a schema that no value satisfies.
std::optional<Automaton> compiled(const Json& schema, const DocumentRules& rules) {
  try {
    Grammar grammar;
    // Texts are judged in every spelling: `0.0` is the integer 0.
    const NodeId root = SchemaCompiler(grammar, schema, {.every_spelling = true, .rules = rules})
                            .value(schema, "#");
    return std::optional<Automaton>(std::in_place, std::move(grammar), root);
  } catch (const Error& error) {
    if (error.code() != Errc::unsatisfiable_schema) throw;
    return std::nullopt;
  }
}

struct Tally {
  int right = 0, refused = 0;
};

}  // namespace

TEST_CASE(
    "SchemaCompiler on the official test suite is right on a whole schema or refuses it by name") {
  TOOLDECODE_REQUIRE_SHARED(suite, "jsonschema/test-suite");
  std::map<std::string, JsonValue> documents;
  for (const auto& file : std::filesystem::recursive_directory_iterator(suite / "remotes")) {
    if (!file.is_regular_file()) continue;
    const auto path = std::filesystem::relative(file.path(), suite / "remotes");
    documents["http://localhost:1234/" + path.generic_string()] =
        tooldecode::text::parse_json(test::read_text(file.path()));
  }
  for (const auto& [folder, draft] : std::map<std::string, SchemaDraft>{
           {"draft2020-12", SchemaDraft::draft2020}, {"draft7", SchemaDraft::draft7}}) {
    const DocumentRules rules{.draft = draft, .documents = documents};
    std::map<std::string, Tally> tallies;
    Tally all;
    for (const auto& file : std::filesystem::directory_iterator(suite / folder)) {
      Tally& tally = tallies[file.path().stem().string()];
      for (const Json& group : tooldecode::text::parse_json(test::read_text(file.path()))) {
        try {
          const auto automaton = compiled(group["schema"], rules);
          for (const Json& one : group["tests"]) {
            INFO(file.path().filename()
                 << ": " << group["description"] << ": " << one["description"]);
            CHECK(accepts(automaton, one["data"].text()) == one["valid"].get<bool>());
          }
          ++tally.right, ++all.right;
        } catch (const Error& error) {
          INFO(error.what());
          CHECK((error.code() == Errc::unsupported_keyword ||
                 error.code() == Errc::unsupported_pattern ||
                 error.code() == Errc::limit_exceeded));
          CHECK(error.where().starts_with("#"));
          ++tally.refused, ++all.refused;
        }
      }
    }
    std::cout << folder << ": schemas right on all tests " << all.right << ", refused "
              << all.refused << "; keywords with refusals:\n";
    for (const auto& [keyword, tally] : tallies) {
      if (tally.refused == 0) continue;
      std::cout << "  " << std::left << std::setw(24) << keyword << tally.right << " right, "
                << tally.refused << " refused\n";
    }
    // A divisor of nine digits, and items of any type that do not repeat.
    CHECK(all.refused <= 3);
  }
}
