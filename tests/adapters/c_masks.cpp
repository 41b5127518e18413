#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/c_calls.hpp>
#include <support/catch.hpp>
#include <support/random_vocabulary.hpp>

namespace td = tooldecode;
using namespace tooldecode::test::c;

TEST_CASE("td_fill_mask and td_advance for every kind of constraint equal the library's") {
  const td::Vocabulary tokens = td::test::random_vocabulary(2);
  const td::VocabularyIndex index(tokens);
  const Vocabulary vocabulary = make_vocabulary(tokens);
  const std::size_t width     = td_vocabulary_mask_words(vocabulary.get());
  std::mt19937 random(3);
  for (const Kind& kind : kinds(index)) {
    CAPTURE(kind.name);
    const Constraint made = make_constraint(vocabulary.get(), kind.specification);
    for (int round = 0; round < 5; ++round) {
      auto expected  = kind.expected.initial();
      td_state state = initial(made.get());
      for (int step = 0; step < 40; ++step) {
        td::TokenMask mask(tokens.size());
        kind.expected.fill_mask(expected, mask.words());
        const Words words = mask_of(made.get(), state, width);
        REQUIRE(std::equal(words.begin(), words.end(), mask.words().begin(), mask.words().end()));
        std::int32_t flag = -1;
        REQUIRE(td_is_accepting(made.get(), &state, &flag, nullptr) == TD_OK);
        CHECK(flag == (kind.expected.is_accepting(expected) ? 1 : 0));
        REQUIRE(td_is_finished(made.get(), &state, &flag, nullptr) == TD_OK);
        CHECK(flag == (kind.expected.is_finished(expected) ? 1 : 0));
        std::string forced(256, '\0');
        std::size_t count = 0;
        REQUIRE(td_forced_bytes(made.get(), &state, forced.data(), forced.size(), &count,
                                nullptr) == TD_OK);
        CHECK(forced.substr(0, count) == kind.expected.jump_forward(expected));
        if (flag == 1) break;
        for (int i = 0; i < 10; ++i) {  // tokens past both ends among them
          const auto token = static_cast<std::int32_t>(random() % (tokens.size() + 20)) - 10;
          td_state next{};
          const bool allowed = token >= 0 && mask.contains(token);
          CHECK(td_advance(made.get(), &state, token, &next, nullptr) ==
                (allowed ? TD_OK : TD_NOT_ALLOWED));
        }
        std::vector<td::TokenId> all;
        mask.for_each([&](td::TokenId token) { all.push_back(token); });
        REQUIRE(!all.empty());
        const td::TokenId token = all[random() % all.size()];
        if (!tokens.is_end(token) && tokens.type(token) != td::TokenType::control) {
          td_state by_bytes{};
          REQUIRE(td_advance_bytes(made.get(), &state, text(tokens.bytes(token)), &by_bytes,
                                   nullptr) == TD_OK);
          REQUIRE(td_advance(made.get(), &state, token, &state, nullptr) == TD_OK);
          CHECK(td_state_equal(&state, &by_bytes) == 1);
          CHECK(td_state_hash(&state) == td_state_hash(&by_bytes));
        } else {
          REQUIRE(td_advance(made.get(), &state, token, &state, nullptr) == TD_OK);
        }
        expected = *kind.expected.advance(expected, token);
      }
    }
  }
}

TEST_CASE("td_prepare makes masks ahead, on the calling thread or in the background") {
  const td::Vocabulary tokens = td::test::random_vocabulary(5);
  const td::VocabularyIndex index(tokens);
  const Vocabulary vocabulary = make_vocabulary(tokens);
  for (const Kind& kind : kinds(index)) {
    const Constraint made = make_constraint(vocabulary.get(), kind.specification);
    const td_state begin  = initial(made.get());
    std::size_t masks     = 99;
    const auto prepare    = [&](td_pool* pool, std::size_t most, std::size_t* out) {
      require_ok([&](td_error** e) { return td_prepare(pool, made.get(), &begin, most, out, e); });
    };
    prepare(nullptr, 1, &masks);
    CHECK(masks <= 1);  // another kind may share the state
    td_pool* pool = nullptr;
    REQUIRE(td_pool_make(1, &pool, nullptr) == TD_OK);
    prepare(pool, 30, &masks);
    CHECK(masks == 0);
    prepare(pool, 30, nullptr);
    td_pool_free(pool);  // stops it
    prepare(nullptr, 30, &masks);
    CHECK(masks < 30);
    prepare(nullptr, 30, &masks);
    CHECK(masks == 0);
  }
  CHECK(told([&](td_error** e) {
          return td_prepare(nullptr, nullptr, nullptr, 1, nullptr, e);
        }).where == "constraint");
}

TEST_CASE("td_fill_masks of a batch or tree equals single masks, on any number of threads") {
  const td::Vocabulary tokens = td::test::random_vocabulary(5);
  const td::VocabularyIndex index(tokens);
  const Vocabulary vocabulary = make_vocabulary(tokens);
  const std::size_t width     = td_vocabulary_mask_words(vocabulary.get());
  const std::size_t stride    = width + 3;
  std::vector<Constraint> all;
  for (const Kind& kind : kinds(index)) {
    all.push_back(make_constraint(vocabulary.get(), kind.specification));
  }
  std::vector<const td_constraint*> constraints;
  std::vector<td_state> states;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < 40; ++i) {
    constraints.push_back(all[i % all.size()].get());
    states.push_back(initial(constraints.back()));
    rows.push_back(i < 20 ? 2 * i : 2 * i - 39);
  }
  for (const std::size_t threads : {0U, 1U, 3U}) {
    td_pool* raw = nullptr;
    if (threads > 0) REQUIRE(td_pool_make(threads, &raw, nullptr) == TD_OK);
    const Pool pool(raw);
    Words words(40 * stride, 7);
    td_mask_batch batch{};
    batch.struct_size = sizeof batch;
    batch.constraints = constraints.data();
    batch.states      = states.data();
    batch.count       = states.size();
    batch.rows        = rows.data();
    batch.words       = words.data();
    batch.row_count   = 40;
    batch.row_words   = stride;
    require_ok([&](td_error** error) { return td_fill_masks(raw, &batch, error); });
    for (std::size_t i = 0; i < states.size(); ++i) {
      Words expected = mask_of(constraints[i], states[i], width);
      expected.resize(stride);
      const auto row = words.begin() + static_cast<std::ptrdiff_t>(rows[i] * stride);
      CHECK(std::equal(expected.begin(), expected.end(), row));
    }
    // The rows hold these masks; now they become those of other states.
    std::vector<td_state> next(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      Words mask = mask_of(constraints[i], states[i], width);
      std::vector<td::TokenId> tokens_allowed;
      td::ConstMaskView(mask).for_each([&](td::TokenId t) { tokens_allowed.push_back(t); });
      const td::TokenId token = tokens_allowed[i % tokens_allowed.size()];
      REQUIRE(td_advance(constraints[i], &states[i], token, &next[i], nullptr) == TD_OK);
    }
    std::vector<td_state> shown = states;
    shown[7]                    = td_state{};
    batch.states                = next.data();
    batch.shown                 = shown.data();
    require_ok([&](td_error** error) { return td_fill_masks(raw, &batch, error); });
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Words expected = mask_of(constraints[i], next[i], width);
      const auto row       = words.begin() + static_cast<std::ptrdiff_t>(rows[i] * stride);
      CHECK(std::equal(expected.begin(), expected.end(), row));
    }
    batch.states       = states.data();
    batch.shown        = nullptr;
    const auto refused = [&](auto change) {
      td_mask_batch wrong = batch;
      change(wrong);
      return told([&](td_error** error) { return td_fill_masks(raw, &wrong, error); });
    };
    std::vector<std::size_t> twice = rows;
    twice[3]                       = twice[2];
    CHECK(refused([&](auto& b) { b.rows = twice.data(); }).where == "rows/3");
    CHECK(refused([&](auto& b) { b.row_count = 39; }).code == TD_ERROR_SHAPE_MISMATCH);
    CHECK(refused([&](auto& b) { b.row_count = SIZE_MAX; }).code == TD_OK);
    CHECK(refused([&](auto& b) { b.rows = nullptr, b.row_count = 39; }).where == "rows/39");
    CHECK(refused([&](auto& b) { b.row_words = width - 1; }).where == "row_words");
    CHECK(refused([&](auto& b) { b.states = nullptr; }).where == "states");
    std::vector<td_state> stale = states;
    stale[21].words[0] += 1'000'000;
    const Told unknown = refused([&](auto& b) { b.states = stale.data(); });
    CHECK(unknown.code == TD_ERROR_UNKNOWN_STATE);
    CHECK(unknown.where == "states/21");
    CHECK(refused([&](auto& b) { b.shown = stale.data(); }).where == "shown/21");
    std::vector<const td_constraint*> some = constraints;
    some[5]                                = nullptr;
    CHECK(refused([&](auto& b) { b.constraints = some.data(); }).where == "constraints/5");
    CHECK(refused([&](auto& b) { b.struct_size = 8; }).where == "batch.struct_size");
    CHECK(refused([&](auto& b) { b = {sizeof b, {}, {}, 0, {}, {}, 0, 0, {}}; }).code == TD_OK);

    const td_constraint* regex = all[4].get();
    const auto token           = [&](const char* bytes) { return *tokens.find(bytes); };
    const std::vector<std::size_t> parents{0, 0, 1, 1, 3, 0};
    const std::vector<std::int32_t> drafted{-7,         token("a"), token("b"),
                                            token("0"), token("a"), 1'000'000};
    Words tree_words(parents.size() * stride, 7);
    std::vector<td_state> nodes(parents.size());
    std::vector<std::uint8_t> allowed(parents.size(), 9);
    td_mask_tree tree{};
    tree.struct_size = sizeof tree;
    tree.constraint  = regex;
    tree.root        = initial(regex);
    tree.parents     = parents.data();
    tree.tokens      = drafted.data();
    tree.count       = parents.size();
    tree.words       = tree_words.data();
    tree.row_words   = stride;
    tree.states      = nodes.data();
    tree.allowed     = allowed.data();
    require_ok([&](td_error** error) { return td_fill_tree_masks(raw, &tree, error); });
    CHECK(allowed == std::vector<std::uint8_t>{1, 1, 1, 0, 0, 0});
    for (std::size_t i = 0; i < parents.size(); ++i) {
      Words expected = allowed[i] == 1 ? mask_of(regex, nodes[i], width) : Words(width);
      expected.resize(stride);
      const auto row = tree_words.begin() + static_cast<std::ptrdiff_t>(i * stride);
      CHECK(std::equal(expected.begin(), expected.end(), row));
    }
    tree.root          = {};
    const auto nowhere = told([&](td_error** e) { return td_fill_tree_masks(raw, &tree, e); });
    CHECK(nowhere.where == "root");
    tree.root = initial(regex);
    const std::vector<std::size_t> cycle{0, 0, 2, 1, 3, 0};
    tree.parents      = cycle.data();
    const auto cyclic = told([&](td_error** e) { return td_fill_tree_masks(raw, &tree, e); });
    CHECK(cyclic.code == TD_ERROR_SHAPE_MISMATCH);
    CHECK(cyclic.where == "parents/2");
  }
}

TEST_CASE("td_completions equal the library's and end a text within any budget") {
  const td::Vocabulary tokens = td::test::random_vocabulary(5);
  const Vocabulary vocabulary = make_vocabulary(tokens);
  const td::VocabularyIndex index(tokens);
  const Constraint made =
      make_constraint(vocabulary.get(), specification_of(TD_JSON_SCHEMA, schema));
  const auto known = td::Constraint(index, td::Grammar::json_schema(schema));
  td::Completions judge(known);
  const auto most = judge.shortest(known.initial());
  REQUIRE(most);
  std::size_t shortest = 0;
  require_ok([&](td_error** error) {
    const td_state begin = initial(made.get());
    return td_completions_shortest(make_completions(made.get()).get(), &begin, 0, &shortest, error);
  });
  CHECK(shortest == *most);

  const std::size_t width = td_vocabulary_mask_words(vocabulary.get());
  std::mt19937_64 random(3);
  for (std::size_t budget = shortest; budget < shortest + 12; ++budget) {
    const Completions completions = make_completions(made.get());
    td::Completions expected(known);
    td_state state = initial(made.get());
    auto at        = known.initial();
    std::size_t i  = 0;
    for (std::int32_t finished = 0; finished == 0; ++i) {
      REQUIRE(i < budget);
      Words words(width), same(width);
      require_ok([&](td_error** error) {
        return td_fill_mask(made.get(), &state, words.data(), width, error);
      });
      require_ok([&](td_error** error) {
        return td_completions_narrow(completions.get(), &state, budget - i, words.data(), width,
                                     error);
      });
      known.fill_mask(at, td::MaskView(same));
      expected.narrow(at, budget - i, td::MaskView(same));
      REQUIRE(words == same);
      std::vector<td::TokenId> all;
      td::ConstMaskView(words).for_each([&](td::TokenId token) { all.push_back(token); });
      REQUIRE(!all.empty());
      const td::TokenId token = all[random() % all.size()];
      REQUIRE(td_advance(made.get(), &state, token, &state, nullptr) == TD_OK);
      at = *known.advance(at, token);
      REQUIRE(td_is_finished(made.get(), &state, &finished, nullptr) == TD_OK);
    }
    require_ok([&](td_error** error) {
      return td_completions_shortest(completions.get(), &state, 0, &shortest, error);
    });
    CHECK(shortest == 0);
    shortest = *most;
  }

  const Completions completions = make_completions(made.get());
  const td_state begin          = initial(made.get());
  Words words(width, 5);
  const auto narrowed = [&](const td_state& state, std::size_t remaining, std::size_t count) {
    return told([&](td_error** error) {
      return td_completions_narrow(completions.get(), &state, remaining, words.data(), count,
                                   error);
    });
  };
  CHECK(narrowed(begin, 0, width).where == "remaining");
  CHECK(narrowed(begin, 1, width - 1).code == TD_ERROR_SHAPE_MISMATCH);
  CHECK(narrowed(td_state{{7, 7}}, 1, width).code == TD_ERROR_UNKNOWN_STATE);
  CHECK(words == Words(width, 5));
}
