#include <cstddef>
#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

TEST_CASE("Constraint over a structural tag has the masks of its texts") {
  const char* tag = R"({"type": "structural_tag", "format": {"type": "sequence", "elements": [
    {"type": "any_text", "max_chars": 2, "excludes": ["é", "a", "<"]},
    {"type": "tags_with_separator", "separator": ", ", "stop_after_first": false, "at_least_one": true,
     "tags": [{"begin": "<f>", "content": {"type": "regex", "pattern": "[12]"}, "end": ["</f>", ""]}]},
    {"type": "const_string", "value": "."}]}})";
  // The same without what has too many texts to be written out.
  tooldecode::JsonValue few                        = tooldecode::text::parse_json(tag);
  few["format"]["elements"][0]                     = {{"type", "regex"}, {"pattern", "b?"}};
  few["format"]["elements"][1]["stop_after_first"] = true;
  slow::Language texts;
  for (const char* before : {"", "b"}) {
    for (const char* inner : {"1", "2"}) {
      for (const char* end : {"</f>", ""}) {
        texts.insert(std::string(before) + "<f>" + inner + end + ".");
      }
    }
  }
  const Constraint constraint(slow::pieces_of(texts, 7), Grammar::structural_tag(few));
  CHECK(slow::check_masks(constraint, texts, 7, 40, control_open) > 100);
  const auto whole = Constraint(slow::pieces_of(texts, 7), Grammar::structural_tag(tag));
  CHECK(slow::accepts(whole, "xy<f>1, <f>2</f>, <f>1."));
  CHECK_FALSE(slow::accepts(whole, "xyz<f>1."));
  CHECK_FALSE(slow::accepts(whole, "xy."));
}

TEST_CASE("Constraint over any_text with max_chars allows a token that reaches past it") {
  const Vocabulary vocabulary = slow::pieces_of({"bbaz"}, 1);
  const auto constraint       = Constraint(
      vocabulary,
      Grammar::structural_tag(
          R"({"format": {"type": "sequence", "elements": [{"type": "any_text", "max_chars": 2},
                                 {"type": "const_string", "value": "a"}]}})"));
  TokenMask mask(vocabulary.size());
  constraint.fill_mask(constraint.initial(), mask.words());
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    CHECK(mask.contains(token) == constraint.advance(constraint.initial(), token).has_value());
  }
  CHECK(slow::accepts(constraint, "bba"));
}

TEST_CASE("Constraint over triggered_tags accepts a long text with few states") {
  const auto constraint = Constraint(
      slow::pieces_of({"ab"}, 1),
      Grammar::structural_tag(R"({"format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [
         {"begin": "<f>", "content": {"type": "any_text"}, "end": "</f>"}]}})"));
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a <f>b</f>";
  CHECK(slow::accepts(constraint, text));
  CHECK_FALSE(slow::accepts(constraint, text + "<f"));
  CHECK(constraint.automaton().size() < 40);
}

TEST_CASE("Grammar::structural_tag refuses malformed JSON, a malformed tag and exceeded limits") {
  const Vocabulary vocabulary = slow::pieces_of({"a"}, 1);
  const auto error_of         = [&](const char* tag, const StructuralTagOptions& options = {}) {
    try {
      (void)Constraint(vocabulary, Grammar::structural_tag(tag, options));
    } catch (const Error& error) {
      return std::string(name(error.code())) + ' ' + error.where();
    }
    return std::string("none");
  };
  CHECK(error_of("{").starts_with("malformed_json"));
  CHECK(error_of(R"({"format": {"type": "tag"}})") == "malformed_document #/format");
  CHECK(error_of(R"({"format": {"type": "regex", "pattern": "[a-z]{1,200}"}})",
                 {.limits = {.steps = 1000}}) == "limit_exceeded #/format/pattern");
}
