#include <cstdint>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/old_names.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/finite_language.hpp>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

using namespace tooldecode;

TEST_CASE("Constraint types of version 0.2 accept the same texts as Grammar's") {
  const VocabularyIndex index(slow::pieces_of({"ab 12", "{\"a\": 1}"}, 3));
  Grammar literal;
  const NodeId root = literal.literal("ab");
  const auto tag =
      R"({"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}})";
  const std::vector<Constraint> all{GrammarConstraint(index, literal, root),
                                    RegexConstraint(index, "ab"),
                                    EbnfConstraint(index, "root ::= \"ab\""),
                                    LarkConstraint(index, "start: \"ab\""),
                                    StructuralTagConstraint(index, text::parse_exact_json(tag)),
                                    StructuralTagConstraint::parse(index, tag),
                                    ChoiceConstraint(index, {"ab"})};
  for (const Constraint& one : all) {
    CHECK(slow::accepts(one, "ab"));
    CHECK_FALSE(slow::accepts(one, "a"));
  }
  const auto schema = R"({"const": 1})";
  CHECK(slow::accepts(JsonSchemaConstraint::parse(index, schema), "1"));
  CHECK(slow::accepts(JsonSchemaConstraint(index, text::parse_exact_json(schema)), "1"));

  Constraint texts(index, Grammar::regex("ab(1|2)"));
  texts.renew();
  CHECK(texts.forced(texts.initial()) == texts.jump_forward(texts.initial()));
  CHECK(texts.forced(texts.initial()) == "ab");

  std::vector<std::uint32_t> mask{5};
  CHECK(is_allowed(mask, 2));
  CHECK(count_allowed(mask) == 2);
  TokenId sum = 0;
  for_each_allowed(mask, [&](TokenId token) { sum += token; });
  CHECK(sum == 2);
}
