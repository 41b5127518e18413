#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/version.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/c_calls.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/random_vocabulary.hpp>

extern "C" const char* check_c_interface_from_c(void);

namespace td = tooldecode;
using namespace tooldecode::test::c;

TEST_CASE("td_abi_version and the other functions work from C and give the library's version") {
  CHECK(td_abi_version() == TD_ABI_VERSION);
  CHECK(td_version() == td::version);
  CHECK(td_code_name(TD_ERROR_MALFORMED_SCHEMA) == std::string("malformed_schema"));
  const char* wrong = check_c_interface_from_c();
  CHECK((wrong == nullptr ? "" : wrong) == std::string());
  std::vector<std::string> names;
  for (std::size_t i = 0; td_format_name(i) != nullptr; ++i) names.emplace_back(td_format_name(i));
  REQUIRE(names.size() == td::named_formats().size());
  CHECK(std::count(names.begin(), names.end(), "hermes") == 1);
}

TEST_CASE("td_vocabulary of bytes equals the library's vocabulary") {
  const td::Vocabulary expected = td::test::random_vocabulary(1);
  const Vocabulary made         = make_vocabulary(expected);
  CHECK(td_vocabulary_hash(made.get()) == expected.hash());
  CHECK(td_vocabulary_size(made.get()) == expected.size());
  CHECK(td_vocabulary_mask_words(made.get()) == td::mask_word_count(expected.size()));
  const std::int32_t* ends = nullptr;
  std::size_t count        = 0;
  REQUIRE(td_vocabulary_end_tokens(made.get(), &ends, &count, nullptr) == TD_OK);
  CHECK(std::vector(ends, ends + count) == std::vector{0, 1});
  for (std::size_t t = 0; t < expected.size(); t += 7) {
    td_text bytes{};
    REQUIRE(td_vocabulary_bytes(made.get(), static_cast<std::int32_t>(t), &bytes, nullptr) ==
            TD_OK);
    CHECK(std::string_view(bytes.data, bytes.size) == expected.bytes(static_cast<td::TokenId>(t)));
  }
  td_text bytes{};
  const auto past = told([&](td_error** error) {
    return td_vocabulary_bytes(made.get(), static_cast<std::int32_t>(expected.size()), &bytes,
                               error);
  });
  CHECK(past.code == TD_ERROR_UNKNOWN_TOKEN);
  const auto encoded = told([&](td_error** error) {
    return td_vocabulary_encode(made.get(), text("a"), nullptr, 0, &count, error);
  });
  CHECK(encoded.code == TD_ERROR_INVALID_ARGUMENT);
  CHECK(td_vocabulary_size(nullptr) + td_vocabulary_mask_words(nullptr) == 0);
}

TEST_CASE("td_vocabulary_load and _parse read what load_tokenizer reads") {
  const auto path      = td::test::example_data("tiny/tokenizer.json").string();
  const auto tokenizer = td::load_tokenizer(path);
  td_vocabulary* raw   = nullptr;
  require_ok(
      [&](td_error** error) { return td_vocabulary_load(path.c_str(), nullptr, &raw, error); });
  const Vocabulary loaded(raw);
  CHECK(td_vocabulary_hash(raw) == tokenizer.vocabulary().hash());

  const std::string content = td::test::read_text(path);
  const std::int32_t end    = 5;
  td_vocabulary_options options{};
  options.struct_size     = sizeof options;
  options.end_tokens      = &end;
  options.end_token_count = 1;
  options.size            = tokenizer.vocabulary().size() + 40;
  require_ok([&](td_error** error) {
    return td_vocabulary_parse(text(content), nullptr, &options, &raw, error);
  });
  const Vocabulary parsed(raw);
  CHECK(td_vocabulary_hash(raw) ==
        tokenizer.vocabulary().with_end_tokens({5}).with_size(options.size).hash());

  const std::string_view question = "What is the weather in Bern?";
  const auto expected             = tokenizer.encode(question, {.parse_special = true});
  std::vector<std::int32_t> tokens(expected.size());
  std::size_t count = 0;
  const auto encode = [&](std::size_t capacity) {
    return told([&](td_error** error) {
      return td_vocabulary_encode(loaded.get(), text(question), tokens.data(), capacity, &count,
                                  error);
    });
  };
  CHECK(encode(2).code == TD_ERROR_BUFFER_TOO_SMALL);
  CHECK(count == expected.size());
  CHECK(tokens[0] == expected[0]);
  CHECK(tokens[2] == 0);
  CHECK(encode(tokens.size()).code == TD_OK);
  CHECK(tokens == expected);

  const auto missing = told(
      [&](td_error** error) { return td_vocabulary_load("no/such/file", nullptr, &raw, error); });
  CHECK(missing.code == TD_ERROR_FILE_UNREADABLE);
  CHECK(missing.where == "no/such/file");
  CHECK(raw == nullptr);
  const auto broken = told([&](td_error** error) {
    return td_vocabulary_parse(text("{\"a\""), "my.json", nullptr, &raw, error);
  });
  CHECK(broken.code == TD_ERROR_MALFORMED_JSON);
  CHECK(broken.where == "my.json");
}

TEST_CASE(
    "td_validate and td_advance_tokens take a draft up to its first token that is not allowed") {
  const Vocabulary vocabulary = make_vocabulary(td::test::random_vocabulary(4));
  const auto letters          = td::test::random_vocabulary(4);
  const Constraint made = make_constraint(vocabulary.get(), specification_of(TD_REGEX, "abcab"));
  const auto token      = [&](const char* bytes) { return *letters.find(bytes); };
  const td_state begin  = initial(made.get());
  std::vector<std::int32_t> draft{token("a"), token("b"), token("c"), token("c"), token("b")};
  std::size_t allowed = 9;
  REQUIRE(td_validate(made.get(), &begin, draft.data(), draft.size(), &allowed, nullptr) == TD_OK);
  CHECK(allowed == 3);
  td_state next = begin;
  CHECK(td_advance_tokens(made.get(), &begin, draft.data(), draft.size(), &next, nullptr) ==
        TD_NOT_ALLOWED);
  CHECK(td_state_equal(&next, &begin) == 1);
  CHECK(td_advance_tokens(made.get(), &begin, draft.data(), 3, &next, nullptr) == TD_OK);
  CHECK(td_state_equal(&next, &begin) == 0);
  td_state by_bytes{};
  CHECK(td_advance_bytes(made.get(), &begin, text("abc"), &by_bytes, nullptr) == TD_OK);
  CHECK(td_state_equal(&next, &by_bytes) == 1);
  CHECK(td_advance_bytes(made.get(), &begin, text("ac"), &by_bytes, nullptr) == TD_NOT_ALLOWED);
  REQUIRE(td_validate(made.get(), &begin, nullptr, 0, &allowed, nullptr) == TD_OK);
  CHECK(allowed == 0);
  CHECK(td_state_equal(nullptr, nullptr) == 1);
  CHECK(td_state_equal(&begin, nullptr) == 0);
}

TEST_CASE(
    "td_forced_tokens gives the tokenizer's tokens, or without one those without an alternative") {
  const auto path      = td::test::example_data("tiny/tokenizer.json").string();
  const auto tokenizer = td::load_tokenizer(path);
  td_vocabulary* raw   = nullptr;
  REQUIRE(td_vocabulary_load(path.c_str(), nullptr, &raw, nullptr) == TD_OK);
  const Vocabulary loaded(raw);
  const td::VocabularyIndex index(tokenizer.vocabulary());
  const td::FastForwardTokens fast_forward(index, [&](std::string_view from) {
    return tokenizer.encode(from, {.parse_special = true});
  });
  const std::string_view sentence = "(What is the weather in Bern\\?)|(What is the time)";
  const td::Constraint expected(index, td::Grammar::regex(sentence));
  const Constraint made = make_constraint(raw, specification_of(TD_REGEX, sentence));
  const td_state begin  = initial(made.get());
  const auto tokens     = fast_forward(expected, expected.initial(), "");
  REQUIRE(!tokens.empty());
  std::vector<std::int32_t> given(100);
  std::size_t count = 0;
  REQUIRE(td_forced_tokens(made.get(), &begin, text(""), given.data(), given.size(), &count,
                           nullptr) == TD_OK);
  given.resize(count);
  CHECK(given == tokens);
  CHECK(td_forced_tokens(made.get(), &begin, text(""), nullptr, 0, &count, nullptr) ==
        TD_ERROR_BUFFER_TOO_SMALL);
  CHECK(count == tokens.size());

  td_vocabulary_options options{};
  const std::int32_t end     = 2;
  options.struct_size        = sizeof options;
  options.end_tokens         = &end;
  options.end_token_count    = 1;
  const std::uint64_t ends[] = {1, 2, 7};
  REQUIRE(td_vocabulary_make("ab<end>", ends, nullptr, 3, &options, &raw, nullptr) == TD_OK);
  const Vocabulary two(raw);
  const Constraint alone = make_constraint(raw, specification_of(TD_REGEX, "aab?"));
  const td_state first   = initial(alone.get());
  std::vector<std::int32_t> only(9);
  REQUIRE(td_forced_tokens(alone.get(), &first, text(""), only.data(), only.size(), &count,
                           nullptr) == TD_OK);
  only.resize(count);
  CHECK(only == std::vector{0, 0});  // then it may end
}

TEST_CASE("td_constraint_make of a wrong specification gives its code and place") {
  const Vocabulary vocabulary = make_vocabulary(td::test::random_vocabulary(6));
  const auto refused          = [&](const td_specification& specification) {
    td_constraint* made = nullptr;
    const Told result   = told([&](td_error** error) {
      return td_constraint_make(vocabulary.get(), &specification, &made, error);
    });
    CHECK(made == nullptr);
    return std::pair(result.code, result.where);
  };
  using Refused = std::pair<td_code, std::string>;
  CHECK(refused(specification_of(TD_JSON_SCHEMA, R"({"properties": {"a": {"type": "strin"}}})")) ==
        Refused(TD_ERROR_MALFORMED_SCHEMA, "#/properties/a/type"));
  CHECK(refused(specification_of(TD_JSON_SCHEMA, "{")).first == TD_ERROR_MALFORMED_JSON);
  CHECK(refused(specification_of(TD_REGEX, "a(")).first == TD_ERROR_MALFORMED_PATTERN);
  CHECK(refused(specification_of(TD_EBNF, "root ::= other")).first == TD_ERROR_MALFORMED_GRAMMAR);
  CHECK(refused(specification_of(TD_LARK, "start: other")).first == TD_ERROR_MALFORMED_GRAMMAR);
  CHECK(refused(specification_of(TD_CHOICE)).first == TD_ERROR_INVALID_OPTION);
  CHECK(refused(specification_of(77, "a")) == Refused(TD_ERROR_INVALID_OPTION, "kind"));
  auto tools = specification_of(TD_TOOLS, tool_documents);
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_ARGUMENT, "format"));
  tools.format = "yaml";
  CHECK(refused(tools) == Refused(TD_ERROR_UNKNOWN_FORMAT, "yaml"));
  tools.format = "hermes";
  tools.calls  = TD_CALLS_NAMED;
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_ARGUMENT, "tool_name"));
  tools.tool_name = "abd";
  CHECK(refused(tools).first == TD_ERROR_UNKNOWN_TOOL);
  tools.calls = 4;
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_OPTION, "calls"));
  tools.calls     = TD_CALLS_AUTOMATIC;
  tools.reasoning = -1;
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_OPTION, "reasoning"));
  tools.reasoning   = TD_REASONING_BLOCK;
  tools.text_schema = text("{");
  CHECK(refused(tools) == Refused(TD_ERROR_MALFORMED_JSON, "text_schema"));
  tools.text_schema = {nullptr, 4};
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_ARGUMENT, "text_schema"));
  tools.text_schema = {};
  tools.whitespace  = -2;
  CHECK(refused(tools) == Refused(TD_ERROR_INVALID_OPTION, "whitespace"));
  auto sized = specification_of(TD_REGEX, "a");
  sized.struct_size -= 1;
  CHECK(refused(sized) == Refused(TD_ERROR_INVALID_ARGUMENT, "specification.struct_size"));
  auto dear         = specification_of(TD_REGEX, "(a|b)*a(a|b){17}");
  dear.limits.steps = 1000;
  CHECK(refused(dear).first == TD_ERROR_LIMIT_EXCEEDED);
}

TEST_CASE("td_constraint_not_enforced lists what TD_ENFORCEMENT_RELAX and _DROP give up") {
  const Vocabulary vocabulary = make_vocabulary(td::test::random_vocabulary(6));
  auto tools                  = specification_of(TD_TOOLS, R"([{"name": "good"}, {"name": "bad",
      "parameters": {"properties": {"s": {"type": "string", "pattern": "(a)\\1"}}}}])");
  tools.format                = "python";
  const auto lines            = [&](std::int32_t enforcement) {
    tools.enforcement     = enforcement;
    const Constraint made = make_constraint(vocabulary.get(), tools);
    std::size_t count     = 0;
    CHECK(td_constraint_not_enforced(made.get(), nullptr, 0, &count, nullptr) != TD_PENDING);
    std::string bytes(count, '\0');
    CHECK(td_constraint_not_enforced(made.get(), bytes.data(), bytes.size(), &count, nullptr) ==
                     TD_OK);
    return bytes;
  };
  CHECK(
      lines(TD_ENFORCEMENT_RELAX)
          .starts_with("bad\t\"pattern\" is not enforced: #/1/parameters/properties/s/pattern: "));
  CHECK(lines(TD_ENFORCEMENT_DROP).starts_with("bad\tthe tool is left out: #/1/parameters/"));
  for (const std::int32_t refused : {0, 3, -1}) {
    tools.enforcement   = refused;
    td_constraint* made = nullptr;
    CHECK(td_constraint_make(vocabulary.get(), &tools, &made, nullptr) ==
          (refused == TD_ENFORCEMENT_STRICT ? TD_ERROR_UNSUPPORTED_PATTERN
                                            : TD_ERROR_INVALID_OPTION));
    CHECK(made == nullptr);
  }
}

TEST_CASE("td_explain_refusal gives the byte, the lines and the keywords of explain_refusal") {
  const td::Vocabulary tokens = td::test::byte_vocabulary();
  const Vocabulary vocabulary = make_vocabulary(tokens);
  const char* const numbers   = R"({"properties": {"n": {"type": "integer", "maximum": 30}}})";
  const auto explained        = [&](const td_constraint* made, std::string_view given) {
    td_refusal* raw    = nullptr;
    const td_code code = td_explain_refusal(made, text(given), &raw, nullptr);
    CHECK((code == TD_NOT_ALLOWED) == (raw != nullptr));
    CHECK((code == TD_OK) == (raw == nullptr));
    return Refusal(raw);
  };
  const Constraint made =
      make_constraint(vocabulary.get(), specification_of(TD_JSON_SCHEMA, numbers));
  CHECK(explained(made.get(), R"({"n": 3})") == nullptr);
  td_constraint* renewed = nullptr;
  REQUIRE(td_constraint_renew(made.get(), &renewed, nullptr) == TD_OK);
  const Constraint other(renewed);
  for (const td_constraint* one : {made.get(), other.get()}) {
    const std::string_view given = R"({"n": 31})";
    const Refusal found          = explained(one, given);
    const auto expected          = td::explain_refusal(
        td::Constraint(tokens, td::Grammar::json_schema(numbers)), given, numbers);
    REQUIRE((found && expected));
    CHECK(td_refusal_at(found.get()) == expected->at);
    CHECK(td_refusal_text(found.get()) == expected->text());
    CHECK(td_refusal_json(found.get()) == expected->json().text());
    CHECK(expected->rules.front().pointer == "#/properties/n/maximum");
  }
  auto tools   = specification_of(TD_TOOLS, R"([{"name": "f", "parameters": {"type": "object",
      "properties": {"n": {"type": "integer", "maximum": 30}}}}])");
  tools.format = "python";
  tools.calls  = TD_CALLS_REQUIRED;
  const Refusal call = explained(make_constraint(vocabulary.get(), tools).get(), "[f(n=31)]");
  REQUIRE(call);
  CHECK(std::string_view(td_refusal_text(call.get()))
            .find("#/0/parameters/properties/n/maximum: 30") != std::string_view::npos);
  const Refusal of_pattern =
      explained(make_constraint(vocabulary.get(), specification_of(TD_REGEX, "ab")).get(), "ac");
  REQUIRE(of_pattern);
  CHECK(td_refusal_at(of_pattern.get()) == 1);
  CHECK(td_refusal_at(nullptr) == 0);
  CHECK(td_refusal_text(nullptr) == std::string_view());
  CHECK(td_refusal_json(nullptr) == std::string_view());
}

TEST_CASE("td functions given a null pointer return a code, and free functions ignore it") {
  const Vocabulary vocabulary = make_vocabulary(td::test::random_vocabulary(7));
  const Constraint made       = make_constraint(vocabulary.get(), specification_of(TD_REGEX, "ab"));
  const td_state begin        = initial(made.get());
  const auto spec             = specification_of(TD_REGEX, "ab");
  td_state state              = begin;
  std::size_t count           = 0;
  std::int32_t flag           = 0;
  std::int32_t token          = 0;
  std::uint32_t word          = 0;
  td_text bytes               = {nullptr, 1};
  td_vocabulary* tokens       = nullptr;
  td_constraint* another      = nullptr;
  td_pool* pool               = nullptr;
  td_compilation* build       = nullptr;
  td_completions* ends        = nullptr;
  td_refusal* refusal         = nullptr;
  const Completions completed = make_completions(made.get());
  using Call                  = std::function<td_code(td_error**)>;
  const Call calls[]          = {
      [&](td_error** e) { return td_vocabulary_load(nullptr, nullptr, &tokens, e); },
      [&](td_error** e) { return td_vocabulary_load("a", nullptr, nullptr, e); },
      [&](td_error** e) { return td_vocabulary_parse(bytes, nullptr, nullptr, &tokens, e); },
      [&](td_error** e) {
        return td_vocabulary_make(nullptr, nullptr, nullptr, 1, nullptr, &tokens, e);
      },
      [&](td_error** e) { return td_vocabulary_bytes(nullptr, 0, &bytes, e); },
      [&](td_error** e) { return td_vocabulary_bytes(vocabulary.get(), 0, nullptr, e); },
      [&](td_error** e) { return td_vocabulary_end_tokens(nullptr, nullptr, &count, e); },
      [&](td_error** e) { return td_vocabulary_encode(nullptr, bytes, &token, 1, &count, e); },
      [&](td_error** e) { return td_constraint_make(nullptr, &spec, &another, e); },
      [&](td_error** e) { return td_constraint_make(vocabulary.get(), nullptr, &another, e); },
      [&](td_error** e) { return td_constraint_make(vocabulary.get(), &spec, nullptr, e); },
      [&](td_error** e) { return td_constraint_renew(nullptr, &another, e); },
      [&](td_error** e) { return td_explain_refusal(nullptr, {}, &refusal, e); },
      [&](td_error** e) { return td_explain_refusal(made.get(), {}, nullptr, e); },
      [&](td_error** e) { return td_explain_refusal(made.get(), bytes, &refusal, e); },
      [&](td_error** e) { return td_initial(nullptr, &state, e); },
      [&](td_error** e) { return td_initial(made.get(), nullptr, e); },
      [&](td_error** e) { return td_advance(nullptr, &state, 0, &state, e); },
      [&](td_error** e) { return td_advance(made.get(), nullptr, 0, &state, e); },
      [&](td_error** e) { return td_advance(made.get(), &state, 0, nullptr, e); },
      [&](td_error** e) { return td_advance_tokens(made.get(), &state, nullptr, 1, &state, e); },
      [&](td_error** e) { return td_advance_bytes(made.get(), &state, bytes, &state, e); },
      [&](td_error** e) { return td_validate(made.get(), &state, nullptr, 1, &count, e); },
      [&](td_error** e) { return td_validate(made.get(), &state, &token, 1, nullptr, e); },
      [&](td_error** e) { return td_is_accepting(made.get(), &state, nullptr, e); },
      [&](td_error** e) { return td_is_finished(nullptr, &state, &flag, e); },
      [&](td_error** e) { return td_forced_bytes(made.get(), &state, nullptr, 1, &count, e); },
      [&](td_error** e) { return td_forced_bytes(made.get(), &state, nullptr, 0, nullptr, e); },
      [&](td_error** e) {
        return td_forced_tokens(made.get(), &state, bytes, &token, 1, &count, e);
      },
      [&](td_error** e) { return td_fill_mask(made.get(), nullptr, &word, 1, e); },
      [&](td_error** e) { return td_fill_mask(made.get(), &state, nullptr, 1, e); },
      [&](td_error** e) { return td_pool_make(1, nullptr, e); },
      [&](td_error** e) { return td_fill_masks(nullptr, nullptr, e); },
      [&](td_error** e) { return td_fill_tree_masks(nullptr, nullptr, e); },
      [&](td_error** e) {
        return td_compilation_start(nullptr, vocabulary.get(), &spec, &build, e);
      },
      [&](td_error** e) { return td_compilation_poll(nullptr, e); },
      [&](td_error** e) { return td_compilation_wait(nullptr, 0, &another, e); },
      [&](td_error** e) { return td_completions_make(nullptr, &ends, e); },
      [&](td_error** e) { return td_completions_make(made.get(), nullptr, e); },
      [&](td_error** e) { return td_completions_shortest(nullptr, &state, 0, &count, e); },
      [&](td_error** e) { return td_completions_shortest(completed.get(), nullptr, 0, &count, e); },
      [&](td_error** e) { return td_completions_shortest(completed.get(), &state, 0, nullptr, e); },
      [&](td_error** e) { return td_completions_narrow(nullptr, &state, 1, &word, 1, e); },
      [&](td_error** e) { return td_completions_narrow(completed.get(), nullptr, 1, &word, 1, e); },
      [&](td_error** e) {
        return td_completions_narrow(completed.get(), &state, 1, nullptr, 1, e);
      },
  };
  for (const Call& call : calls) {
    const Told result = told(call);
    CHECK(result.code == TD_ERROR_INVALID_ARGUMENT);
    CHECK(!result.where.empty());
    CHECK(call(nullptr) == TD_ERROR_INVALID_ARGUMENT);
  }
  const std::uint64_t descending[] = {100, 2};  // of two bytes
  CHECK(td_vocabulary_make("ab", descending, nullptr, 2, nullptr, &tokens, nullptr) ==
        TD_ERROR_INVALID_ARGUMENT);
  CHECK(td_fill_mask(made.get(), &state, &word, 1, nullptr) == TD_ERROR_SHAPE_MISMATCH);
  CHECK(td_state_equal(&state, &begin) == 1);
  CHECK((tokens == nullptr && another == nullptr && pool == nullptr && build == nullptr));
  CHECK((ends == nullptr && refusal == nullptr));
  td_error_free(nullptr);
  td_refusal_free(nullptr);
  td_vocabulary_free(nullptr);
  td_constraint_free(nullptr);
  td_pool_free(nullptr);
  td_compilation_cancel(nullptr);
  td_compilation_free(nullptr);
  td_completions_free(nullptr);
}

TEST_CASE("td handles may be freed in any order, and a renewed constraint keeps to its budget") {
  const td::Vocabulary tokens = td::test::random_vocabulary(8);
  Vocabulary vocabulary       = make_vocabulary(tokens);
  Constraint made = make_constraint(vocabulary.get(), specification_of(TD_JSON_SCHEMA, schema));
  vocabulary.reset();
  CHECK(td_constraint_bytes(made.get()) > 0);
  CHECK(td_constraint_bytes(nullptr) == 0);
  const td_state begin = initial(made.get());
  td_constraint* raw   = nullptr;
  REQUIRE(td_constraint_renew(made.get(), &raw, nullptr) == TD_OK);
  Constraint same(raw);
  made.reset();
  const td_state again = initial(same.get());
  CHECK(td_state_equal(&begin, &again) == 1);  // there was room left
  (void)mask_of(same.get(), begin, td::mask_word_count(tokens.size()));

  td_vocabulary_options options{};
  const std::int32_t end     = 1;
  const std::uint64_t ends[] = {1, 6};
  options.struct_size        = sizeof options;
  options.end_tokens         = &end;
  options.end_token_count    = 1;
  options.memory_bytes       = 1;
  td_vocabulary* small       = nullptr;
  REQUIRE(td_vocabulary_make("a<end>", ends, nullptr, 2, &options, &small, nullptr) == TD_OK);
  vocabulary.reset(small);
  made                 = make_constraint(small, specification_of(TD_REGEX, "aa"));
  const td_state known = initial(made.get());
  REQUIRE(td_constraint_renew(made.get(), &raw, nullptr) == TD_OK);
  const Constraint other(raw);
  td_state state{};
  CHECK(td_advance(other.get(), &known, 0, &state, nullptr) == TD_ERROR_UNKNOWN_STATE);
  CHECK(td_advance(made.get(), &known, 0, &state, nullptr) == TD_OK);
}

TEST_CASE("td_compilation can be polled, waited for, and cancelled before and while it runs") {
  const td::Vocabulary tokens = td::test::random_vocabulary(9);
  Vocabulary vocabulary       = make_vocabulary(tokens);
  td_pool* raw                = nullptr;
  REQUIRE(td_pool_make(1, &raw, nullptr) == TD_OK);
  Pool pool(raw);
  const auto start = [&](const td_specification& specification) {
    td_compilation* made = nullptr;
    require_ok([&](td_error** error) {
      return td_compilation_start(pool.get(), vocabulary.get(), &specification, &made, error);
    });
    return Compilation(made);
  };
  td_constraint* built = nullptr;
  const auto wait      = [&](const Compilation& one, std::int64_t milliseconds) {
    return told([&](td_error** error) {
      return td_compilation_wait(one.get(), milliseconds, &built, error);
    });
  };
  {
    std::string copied(pattern);
    const Compilation one = start(specification_of(TD_REGEX, copied));
    copied.assign(copied.size(), '(');
    REQUIRE(wait(one, -1).code == TD_OK);
    const Constraint first(built);
    REQUIRE(wait(one, 0).code == TD_OK);
    const Constraint second(built);
    CHECK(first != second);
    CHECK(td_compilation_poll(one.get(), nullptr) == TD_OK);
    const Constraint here = make_constraint(vocabulary.get(), specification_of(TD_REGEX, pattern));
    const std::size_t width = td::mask_word_count(tokens.size());
    CHECK(mask_of(first.get(), initial(second.get()), width) ==
          mask_of(here.get(), initial(here.get()), width));
    td_compilation_cancel(one.get());
    CHECK(td_compilation_poll(one.get(), nullptr) == TD_OK);
  }
  const Compilation wrong = start(specification_of(TD_REGEX, "("));
  CHECK(wait(wrong, -1).code == TD_ERROR_MALFORMED_PATTERN);
  CHECK(built == nullptr);

  const Compilation running = start(endless());
  const Compilation queued  = start(endless());
  CHECK(wait(running, 20).code == TD_PENDING);
  CHECK(td_compilation_poll(queued.get(), nullptr) == TD_PENDING);
  td_compilation_cancel(queued.get());
  td_compilation_cancel(running.get());
  CHECK(wait(running, -1).code == TD_ERROR_CANCELLED);
  CHECK(wait(queued, -1).code == TD_ERROR_CANCELLED);

  const Compilation left = start(endless());
  start(endless()).reset();  // freed without waiting
  vocabulary.reset();
  pool.reset();  // ends all
  CHECK(wait(left, 0).code == TD_ERROR_CANCELLED);
}

TEST_CASE("td functions allow threads to share a constraint, a pool and a compilation") {
  const td::Vocabulary tokens = td::test::random_vocabulary(10);
  const Vocabulary vocabulary = make_vocabulary(tokens);
  const std::size_t width     = td_vocabulary_mask_words(vocabulary.get());
  td_pool* pool               = nullptr;
  REQUIRE(td_pool_make(2, &pool, nullptr) == TD_OK);
  const Pool kept(pool);
  const auto specification   = specification_of(TD_JSON_SCHEMA, schema);
  td_compilation* background = nullptr;
  REQUIRE(td_compilation_start(pool, vocabulary.get(), &specification, &background, nullptr) ==
          TD_OK);
  const Compilation compilation(background);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      td_constraint* made = nullptr;
      if (td_compilation_wait(background, -1, &made, nullptr) != TD_OK) {
        ++failed;
        return;
      }
      const Constraint constraint(made);
      std::mt19937 random(t);
      for (int round = 0; round < 20; ++round) {
        std::vector<td_state> states(1);
        std::vector<const td_constraint*> constraints{made};
        if (td_initial(made, states.data(), nullptr) != TD_OK) ++failed;
        Words words(width);
        for (int step = 0; step < 10; ++step) {
          td_mask_batch batch{
              sizeof batch, constraints.data(), states.data(), 1, nullptr, words.data(), 1, width,
              nullptr};
          if (td_fill_masks(pool, &batch, nullptr) != TD_OK) ++failed;
          std::vector<td::TokenId> all;
          td::ConstMaskView(words).for_each([&](td::TokenId token) { all.push_back(token); });
          if (all.empty()) break;
          if (td_advance(made, states.data(), all[random() % all.size()], states.data(), nullptr) !=
              TD_OK) {
            ++failed;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

namespace {

// Random calls of the interface with valid, invalid and missing arguments.
class RandomCalls {
 public:
  explicit RandomCalls(unsigned seed) : random_(seed) {
    pool_ = nullptr;
    REQUIRE(td_pool_make(2, &pool_, nullptr) == TD_OK);
    kept_.reset(pool_);
    for (unsigned i = 0; i < 2; ++i) {
      tokens_.push_back(td::test::random_vocabulary(20 + i));
      vocabularies_.push_back(make_vocabulary(tokens_.back()));
    }
  }

  // One call; checks what holds for any arguments.
  void step() {
    td_error* raw      = nullptr;
    const td_code code = call(one_of(30) ? nullptr : &raw);
    const Error error(raw);
    ++codes_[code];
    if (code >= TD_ERROR && td_code_name(code) == std::string("unknown")) FAIL("unknown code");
    if (code < TD_ERROR && raw != nullptr) FAIL("an error without its code");
    if (raw != nullptr && td_error_code(raw) != code) FAIL("another code than the error's");
    if (code == TD_ERROR) FAIL(td_error_text(raw));
  }
  [[nodiscard]] const std::map<td_code, std::size_t>& codes() const { return codes_; }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_of(std::size_t count) { return below(count) == 0; }
  template <class T>
  T* seldom_null(T* pointer) {
    return one_of(60) ? nullptr : pointer;
  }

  const td_vocabulary* vocabulary() {
    return seldom_null(vocabularies_[below(vocabularies_.size())].get());
  }
  const td_constraint* constraint() {
    if (constraints_.empty()) return nullptr;
    current_ = below(constraints_.size());
    return seldom_null(constraints_[current_].made.get());
  }
  // A state that the chosen constraint has made, mostly.
  const td_state* state() {
    if (one_of(60)) return nullptr;
    scratch_ = {};
    if (!constraints_.empty()) {
      const auto& states = constraints_[one_of(40) ? below(constraints_.size()) : current_].states;
      if (!states.empty()) scratch_ = states[below(states.size())];
    }
    if (one_of(40)) scratch_.words[below(2)] ^= std::uint64_t{1} << below(64);
    if (one_of(100)) scratch_ = {{random_(), one_of(2) ? random_() : 0}};
    return &scratch_;
  }
  void keep(const td_state& state) {
    if (constraints_.empty()) return;
    auto& states = constraints_[current_].states;
    if (states.size() < 64) {
      states.push_back(state);
    } else {
      states[below(states.size())] = state;
    }
  }
  std::int32_t token() {
    if (one_of(20)) return static_cast<std::int32_t>(random_());
    return static_cast<std::int32_t>(below(4500));
  }
  std::string mutated(std::string_view from) {
    std::string made(from);
    while (one_of(4) && !made.empty()) {
      made[below(made.size())] = "\"{}[](),:ab0\\\xFF"[below(14)];
    }
    return made;
  }

  td_code make_constraint(td_error** error) {
    td_specification from = specification_of(static_cast<std::int32_t>(below(7)));
    const std::string document =
        mutated(std::array{tool_documents, schema, pattern, grammar}[below(4)]);
    const std::string fitting =
        mutated(std::array{pattern, tool_documents, schema, pattern, grammar, grammar,
                           grammar}[static_cast<std::size_t>(from.kind)]);
    from.text             = text(one_of(8) ? document : fitting);
    from.choices          = seldom_null(static_cast<const td_text*>(labels));
    from.choice_count     = below(4);
    from.root             = one_of(3) ? nullptr : "start";
    from.whitespace       = static_cast<std::int32_t>(below(5)) - 2 + (one_of(9) ? 0 : 1);
    from.documented_order = one_of(2) ? 1 : 0;
    from.format           = one_of(9) ? "none" : td_format_name(below(16));
    from.calls            = static_cast<std::int32_t>(below(4)) + (one_of(20) ? 1 : 0);
    from.tool_name        = one_of(3) ? nullptr : "abc";
    from.max_calls        = static_cast<std::uint32_t>(below(3));
    from.reasoning        = static_cast<std::int32_t>(below(3));
    if (one_of(10)) from.text_schema = text(schema);
    from.limits.steps = one_of(10) ? below(20000) : 5'000'000;
    if (one_of(30)) from.struct_size = below(200);
    td_constraint* made = nullptr;
    td_code code        = TD_OK;
    if (one_of(2)) {
      code = td_constraint_make(vocabulary(), seldom_null(&from), &made, error);
    } else {
      td_compilation* raw = nullptr;
      code =
          td_compilation_start(seldom_null(pool_), vocabulary(), seldom_null(&from), &raw, error);
      const Compilation compilation(raw);
      if (code != TD_OK || one_of(8)) return code;
      if (one_of(4)) td_compilation_cancel(raw);
      if (one_of(2)) (void)td_compilation_poll(raw, nullptr);
      code = td_compilation_wait(raw, one_of(5) ? 0 : -1, &made, error);
    }
    if (made == nullptr) return code;
    if (constraints_.size() < 12) {
      constraints_.push_back({Constraint(made), {}});
      current_ = constraints_.size() - 1;
    } else {
      current_               = below(constraints_.size());
      constraints_[current_] = {Constraint(made), {}};
    }
    keep(initial(made));
    return code;
  }

  td_code call(td_error** error) {
    td_state next{};
    std::size_t count = 0;
    std::int32_t flag = 0;
    switch (below(constraints_.empty() ? 2 : 40)) {
      case 0:
        return make_constraint(error);
      case 1: {
        td_text bytes{};
        return td_vocabulary_bytes(vocabulary(), token(), seldom_null(&bytes), error);
      }
      case 2: {
        const td_constraint* from = constraint();
        td_constraint* made       = nullptr;
        const td_code code        = td_constraint_renew(from, seldom_null(&made), error);
        if (made != nullptr) constraints_[current_].made.reset(made);
        return code;
      }
      case 3:
        if (one_of(20)) constraints_.pop_back();
        return TD_OK;
      case 4: {
        const td_constraint* from = constraint();
        std::vector<char> bytes(below(300));
        return td_forced_bytes(from, state(), bytes.data(), bytes.size(), seldom_null(&count),
                               error);
      }
      case 5: {
        const td_constraint* from = constraint();
        std::vector<std::int32_t> tokens(below(20));
        return td_forced_tokens(from, state(), text("ab"), tokens.data(), tokens.size(),
                                seldom_null(&count), error);
      }
      case 6: {
        const td_constraint* from = constraint();
        return td_is_accepting(from, state(), seldom_null(&flag), error);
      }
      case 7: {
        const td_constraint* from = constraint();
        return td_is_finished(from, state(), seldom_null(&flag), error);
      }
      case 8: {
        const td_constraint* from = constraint();
        const std::string bytes   = mutated("{\"name\": \"abc\"");
        const td_code code =
            td_advance_bytes(from, state(), text(std::string_view(bytes).substr(0, below(8))),
                             seldom_null(&next), error);
        if (code == TD_OK) keep(next);
        return code;
      }
      case 9:
      case 10:
        return batch(error);
      case 11:
      case 12:
        return tree(error);
      case 13:
        return narrow(error);
      default:
        return walk(error);
    }
  }

  // A mask, a token of it or any other, and the states that follow.
  td_code walk(td_error** error) {
    const td_constraint* from = constraint();
    const td_state* at        = state();
    const std::size_t width   = td_vocabulary_mask_words(vocabularies_[0].get());
    Words words(width);
    const td_code code =
        td_fill_mask(from, at, seldom_null(words.data()), one_of(50) ? width - 1 : width, error);
    if (code != TD_OK) return code;
    const td_state here = *at;
    std::vector<td::TokenId> all;
    td::ConstMaskView(words).for_each([&](td::TokenId token) { all.push_back(token); });
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 1 + below(3); i > 0; --i) {
      tokens.push_back(all.empty() || one_of(4) ? token() : all[below(all.size())]);
    }
    td_state next{};
    const td_code advanced = td_advance(from, &here, tokens[0], &next, nullptr);
    const bool is_in       = td::ConstMaskView(words).contains(tokens[0]);
    if (advanced != (is_in ? TD_OK : TD_NOT_ALLOWED)) FAIL("a mask that its advance contradicts");
    if (advanced == TD_OK) keep(next);
    std::size_t allowed = 0;
    if (td_validate(from, &here, tokens.data(), tokens.size(), &allowed, nullptr) != TD_OK ||
        allowed > tokens.size() || (allowed > 0) != is_in) {
      FAIL("a draft that its first token contradicts");
    }
    td_state last{};
    const td_code together = td_advance_tokens(from, &here, tokens.data(), allowed, &last, nullptr);
    if (together != TD_OK) FAIL("tokens that were allowed");
    keep(last);
    return code;
  }

  // A mask with room for an end still has it after narrowing to that room.
  td_code narrow(td_error** error) {
    const td_constraint* from = constraint();
    td_completions* raw       = nullptr;
    const td_code made        = td_completions_make(from, seldom_null(&raw), error);
    const Completions completions(raw);
    if (made != TD_OK) return made;
    const td_state* at = state();
    std::size_t count  = 0;
    const td_code code = td_completions_shortest(raw, at, below(9), seldom_null(&count), error);
    const std::size_t budget = one_of(9) ? below(9) : count;
    if (code != TD_OK || count == 0 || count == SIZE_MAX) return code;
    Words words(td_vocabulary_mask_words(vocabularies_[0].get()));
    const td_code filled = td_fill_mask(from, at, words.data(), words.size(), error);
    if (filled != TD_OK) return filled;
    const td_code narrowed =
        td_completions_narrow(raw, at, budget, words.data(), words.size(), error);
    if (budget >= count && td::ConstMaskView(words).count() == 0)
      FAIL("no token, and room for the shortest text");
    return narrowed;
  }

  td_code batch(td_error** error) {
    const std::size_t rows = below(5), width = 140 + below(4);
    std::vector<const td_constraint*> constraints;
    std::vector<td_state> states;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows; ++i) {
      constraints.push_back(constraint());
      const td_state* at = state();
      states.push_back(at == nullptr ? td_state{} : *at);
      order.push_back(one_of(20) ? below(9) : rows - 1 - i);
    }
    Words words(9 * width);
    td_mask_batch all{sizeof all,
                      constraints.data(),
                      states.data(),
                      rows,
                      one_of(2) ? nullptr : order.data(),
                      seldom_null(words.data()),
                      one_of(20) ? rows / 2 : rows,
                      width,
                      one_of(2) ? nullptr : states.data()};
    if (one_of(40)) all.struct_size = below(99);
    return td_fill_masks(one_of(2) ? nullptr : pool_, seldom_null(&all), error);
  }

  td_code tree(td_error** error) {
    const std::size_t nodes = below(6), width = 140 + below(4);
    std::vector<std::size_t> parents;
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < nodes; ++i) {
      parents.push_back(one_of(40) ? below(9) : i == 0 ? 0 : below(i));
      tokens.push_back(token());
    }
    Words words(nodes * width);
    std::vector<td_state> states(nodes);
    std::vector<std::uint8_t> allowed(nodes);
    td_mask_tree all{};
    all.struct_size    = one_of(40) ? below(99) : sizeof all;
    all.constraint     = constraint();
    const td_state* at = state();
    if (at != nullptr) all.root = *at;
    all.parents        = seldom_null(parents.data());
    all.tokens         = seldom_null(tokens.data());
    all.count          = nodes;
    all.words          = seldom_null(words.data());
    all.row_words      = width;
    all.states         = seldom_null(states.data());
    all.allowed        = seldom_null(allowed.data());
    const td_code code = td_fill_tree_masks(one_of(2) ? nullptr : pool_, seldom_null(&all), error);
    for (std::size_t i = 0; code == TD_OK && i < nodes; ++i) {
      if (all.states != nullptr && all.allowed != nullptr && allowed[i] == 1) keep(states[i]);
    }
    return code;
  }

  struct Made {
    Constraint made;
    std::vector<td_state> states;
  };

  std::mt19937_64 random_;
  td_pool* pool_;
  Pool kept_;
  std::vector<td::Vocabulary> tokens_;
  std::vector<Vocabulary> vocabularies_;
  std::vector<Made> constraints_;
  std::size_t current_ = 0;
  td_state scratch_{};
  std::map<td_code, std::size_t> codes_;
};

}  // namespace

// TOOLDECODE_C_CALLS says how many calls: a million takes seconds, with sanitizers minutes.
TEST_CASE("td functions called at random with any arguments return codes") {
  const char* given      = std::getenv("TOOLDECODE_C_CALLS");
  const std::size_t most = given != nullptr ? std::stoul(given) : 20'000;
  RandomCalls calls(11);
  for (std::size_t i = 0; i < most; ++i) calls.step();
  const auto& codes = calls.codes();
  CHECK(codes.at(TD_OK) > most / 4);
  CHECK(codes.at(TD_ERROR_INVALID_ARGUMENT) > most / 100);
  CHECK(codes.at(TD_ERROR_UNKNOWN_STATE) > most / 100);
  CHECK(codes.size() > 8);
}
