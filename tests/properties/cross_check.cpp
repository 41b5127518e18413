// `tooldecode check --cross-check` finds each way in which a constraint could contradict itself.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/cross_check.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;

namespace {

enum class Fault {
  none,
  mask_lacks,
  mask_adds,
  mask_lacks_end,
  advance_refuses,
  advance_elsewhere
};

constexpr TokenId name_token = 257, e_token = 258;

const Vocabulary& all_tokens() {
  static const Vocabulary all =
      test::byte_vocabulary({{"name", TokenType::normal}, {"e\":", TokenType::normal}});
  return all;
}

// A constraint that has one fault where the text so far is `{"`, or at its end.
struct Faulty {
  using State = Constraint::State;

  Constraint schema{VocabularyIndex{all_tokens()},
                    Grammar::json_schema(tooldecode::text::parse_json(
                        R"({"type": "object", "properties": {"name": {"type": "null"}},
                                        "required": ["name"], "additionalProperties": false})"))};
  Fault fault = Fault::none;
  State place = *schema.advance_bytes(schema.initial(), "{\"");
  State end   = *schema.advance_bytes(schema.initial(), "{\"name\":null}");

  [[nodiscard]] std::size_t vocabulary_size() const { return schema.vocabulary_size(); }
  [[nodiscard]] State initial() const { return schema.initial(); }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (state == place && token == name_token) {
      if (fault == Fault::advance_refuses) return std::nullopt;
      if (fault == Fault::advance_elsewhere) return schema.advance_bytes(place, "n");
    }
    return schema.advance(state, token);
  }
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    return schema.advance_bytes(state, bytes);
  }
  void fill_mask(State state, MaskView words) const {
    schema.fill_mask(state, words);
    const auto flip = [&](TokenId token) {
      words[static_cast<std::size_t>(token) / 32] ^= std::uint32_t{1} << (token % 32);
    };
    if (state == place && fault == Fault::mask_lacks) flip(name_token);
    if (state == place && fault == Fault::mask_adds) flip(e_token);
    if (state == end && fault == Fault::mask_lacks_end) flip(256);
  }
  [[nodiscard]] bool is_accepting(State state) const { return schema.is_accepting(state); }
  [[nodiscard]] bool is_finished(State state) const { return schema.is_finished(state); }
  [[nodiscard]] std::string jump_forward(State state) const { return schema.jump_forward(state); }
};
static_assert(ConstraintPolicy<Faulty>);

// What a few random walks over a text find.
std::string found(Fault fault, std::string_view text) {
  const Faulty constraint{.fault = fault};
  program::CrossCheck check(constraint, all_tokens());
  for (int walk = 0; walk < 20; ++walk) {
    if (auto wrong = check.find_disagreement(text)) return *wrong;
  }
  return "";
}

}  // namespace

TEST_CASE("cross_check of a constraint without a fault finds nothing in any text") {
  for (const std::string text : {R"({"name":null})", R"({"name":null)", R"({"nam":null})", "[]", "",
                                 R"({"name" : null} )"}) {
    INFO(text);
    CHECK(found(Fault::none, text).empty());
  }
}

TEST_CASE("cross_check finds and describes each fault") {
  const std::string_view text = R"({"name":null})";
  CHECK(found(Fault::mask_lacks, text) ==
        R"(token 257, "name", after "{"": bytes yes, mask no, advance yes)");
  CHECK(found(Fault::mask_adds, text) ==
        R"(token 258, "e":", after "{"": bytes no, mask yes, advance no)");
  CHECK(found(Fault::mask_lacks_end, text) ==
        R"(token 256, "<end>", after "{"name":null}": bytes yes, mask no, advance yes)");
  CHECK(found(Fault::advance_refuses, text) ==
        R"(token 257, "name", after "{"": bytes yes, mask yes, advance no)");
  CHECK(found(Fault::advance_elsewhere, text) ==
        R"(token 34, """, after "{"name" is read by its bytes and not as a token)");
}

TEST_CASE("cross_check finds faults beyond the place where a text becomes impossible") {
  CHECK_FALSE(found(Fault::mask_lacks_end, R"({"x)").empty());
  CHECK_FALSE(found(Fault::mask_lacks, "{x").empty());
}
