#include <atomic>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/prepare_options.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;

TEST_CASE("PrepareOptions bound how many masks are prepared, and cancel it") {
  const VocabularyIndex index(test::call_vocabulary());
  const Constraint constraint(
      index, Grammar::json_schema(R"({"type": "object", "properties": {"city": {"type": "string"}},
                                      "required": ["city"], "additionalProperties": false})"));
  const auto begin    = constraint.initial();
  const auto is_known = [&] {
    const auto& automaton = constraint.automaton();
    return automaton.attachment(automaton.representative(begin.id)).load() != nullptr;
  };
  CHECK(constraint.prepare(begin, {.max_masks = 0}) == 0);
  CHECK(constraint.prepare(begin, {.max_steps = 0}) == 0);
  std::atomic<bool> cancelled = true;
  CHECK(constraint.prepare(begin, {.cancelled = &cancelled}) == 0);
  CHECK_FALSE(is_known());
  cancelled = false;
  CHECK(constraint.prepare(begin, {.max_masks = 1, .cancelled = &cancelled}) == 1);
  CHECK(is_known());
  CHECK(constraint.prepare(begin, {.max_masks = 7}) == 6);  // one was known
  CHECK_THROWS_AS(constraint.prepare({begin.id, begin.memory + 1}), Error);
}
