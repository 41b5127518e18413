#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

extern "C" std::size_t count_voted_tokens(const td_constraint* constraint, const td_model* model,
                                          const std::int32_t* prompt, std::size_t prompt_size);

namespace td = tooldecode;

namespace {

constexpr std::string_view booking = R"([{"name": "book", "parameters": {
  "type": "object", "required": ["city", "days", "people"],
  "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"enum": [1, 2, 3]},
                 "people": {"enum": [10, 11]}, "window": {"type": "boolean"}}}}])";

// A RandomModel behind C functions, which counts the caches that are there.
struct CallersModel {
  explicit CallersModel(unsigned seed)
      : random(td::test::call_vocabulary().size(), {.seed = seed, .spread = 3}) {}
  CallersModel(const CallersModel&)            = delete;
  CallersModel& operator=(const CallersModel&) = delete;

  td::test::RandomModel random;
  std::size_t caches = 0, passes = 0, widest = 0;
  std::size_t fails_at = 0;  // the pass that returns 7; 0: none

  using Cache = td::test::RandomModel::Cache;
  static CallersModel& of(void* self) { return *static_cast<CallersModel*>(self); }
  static void* make_cache(void* self) {
    ++of(self).caches;
    return new Cache(of(self).random.make_cache());
  }
  static void* fork(void* self, const void* cache) {
    ++of(self).caches;
    return new Cache(of(self).random.fork(*static_cast<const Cache*>(cache)));
  }
  static std::int32_t truncate(void* self, void* cache, std::size_t length) {
    of(self).random.truncate(*static_cast<Cache*>(cache), length);
    return 0;
  }
  static void free_cache(void* self, void* cache) {
    --of(self).caches;
    delete static_cast<Cache*>(cache);
  }
  static std::int32_t forward(void* self, void* const* all, std::size_t count,
                              const std::int32_t* tokens, const std::size_t* ends, float* logits) {
    CallersModel& model = of(self);
    if (++model.passes == model.fails_at) return 7;
    model.widest            = std::max(model.widest, count);
    const std::size_t width = model.random.vocabulary_size();
    for (std::size_t i = 0, begin = 0; i < count; begin = ends[i], ++i) {
      model.random.forward(*static_cast<Cache*>(all[i]), {tokens + begin, ends[i] - begin},
                           {logits + i * width, width});
    }
    return 0;
  }
  [[nodiscard]] td_model functions() {
    return {sizeof(td_model), this, make_cache, fork, truncate, free_cache, forward};
  }
};

struct Handles {
  td_vocabulary* vocabulary = nullptr;
  td_constraint* constraint = nullptr;

  Handles() {
    const td::Vocabulary from = td::test::call_vocabulary();
    std::string bytes;
    std::vector<std::uint64_t> ends;
    std::vector<std::uint8_t> types;
    for (std::size_t t = 0; t < from.token_count(); ++t) {
      bytes += from.name(static_cast<td::TokenId>(t));
      ends.push_back(bytes.size());
      types.push_back(static_cast<std::uint8_t>(from.type(static_cast<td::TokenId>(t))));
    }
    td_vocabulary_options options{};
    options.struct_size     = sizeof options;
    options.end_tokens      = from.end_tokens().data();
    options.end_token_count = from.end_tokens().size();
    REQUIRE(td_vocabulary_make(bytes.data(), ends.data(), types.data(), ends.size(), &options,
                               &vocabulary, nullptr) == TD_OK);
    td_specification specification{};
    specification.struct_size = sizeof specification;
    specification.kind        = TD_TOOLS;
    specification.text        = {booking.data(), booking.size()};
    specification.format      = "hermes";
    specification.calls       = TD_CALLS_REQUIRED;
    specification.max_calls   = 2;
    REQUIRE(td_constraint_make(vocabulary, &specification, &constraint, nullptr) == TD_OK);
  }
  Handles(const Handles&)            = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    td_constraint_free(constraint);
    td_vocabulary_free(vocabulary);
  }
};

// The error's code and place, after a call that must leave no handle.
std::pair<td_code, std::string> refusal_of(const Handles& handles, const td_model* model,
                                           const td_order_options* options,
                                           std::size_t prompt_size = 2) {
  const std::int32_t prompt[] = {1, 2};
  td_consensus* out           = nullptr;
  td_error* error             = nullptr;
  const td_code code =
      td_order_consistency(handles.constraint, model, prompt, prompt_size, options, &out, &error);
  CHECK(out == nullptr);
  const std::string where = td_error_where(error);
  td_error_free(error);
  return {code, where};
}

}  // namespace

TEST_CASE("td_order_consistency gives the answer and the votes of OrderConsistencySampler") {
  const Handles handles;
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::ToolCallFSM calls(vocabulary, td::ToolSet::parse(booking), td::JsonCall::hermes(),
                              {.choice = td::ToolChoice::required, .max_calls = 2});
  std::size_t disputed = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    CallersModel model(seed);
    const td_model functions = model.functions();
    td_order_options options{};
    options.struct_size = sizeof options;
    options.max_orders  = seed % 7;  // 0: the default
    options.max_tokens  = 300;
    options.temperature = seed % 2 == 0 ? 0.0F : 0.9F;
    options.seed        = seed;
    options.all_orders  = seed % 3 == 0 ? 1 : 0;
    const std::vector<std::int32_t> prompt{1, 2, static_cast<std::int32_t>(seed)};
    td_consensus* made = nullptr;
    td_error* error    = nullptr;
    const td_code code = td_order_consistency(handles.constraint, &functions, prompt.data(),
                                              prompt.size(), &options, &made, &error);
    INFO(td_error_text(error));
    REQUIRE(code == TD_OK);
    CHECK(model.caches == 0);
    CHECK(td_consensus_passes(made) == model.passes);
    const std::size_t most = options.max_orders == 0 ? 6 : options.max_orders;
    CHECK(model.widest <= most);
    CHECK((most == 1 || model.widest > 1));

    const td::Decoder decoder(model.random, calls);
    const td::OrderConsistencySampler sampler(
        decoder, {.max_orders = most, .adaptive = options.all_orders == 0, .seed = seed});
    const td::Consensus expected = sampler(
        prompt,
        {.max_tokens = 300, .temperature = options.temperature, .seed = seed, .always_ends = true});
    std::size_t count          = 0;
    const std::int32_t* tokens = td_consensus_tokens(made, &count);
    CHECK(std::vector<td::TokenId>(tokens, tokens + count) == expected.output.tokens);
    const auto votes = td::text::parse_exact_json(td_consensus_votes(made));
    REQUIRE(votes.size() == expected.calls.size());
    for (std::size_t i = 0; i < votes.size(); ++i) {
      const td::CallVote& vote = expected.calls[i];
      CHECK(votes[i]["name"] == td::JsonValue(vote.call.name));
      CHECK(votes[i]["arguments"] == vote.call.arguments);
      CHECK(votes[i]["sampled"] == td::JsonValue(vote.candidates.size()));
      for (const td::JsonValue& parameter : votes[i]["parameters"]) {
        disputed += parameter["choices"].size() > 1;
        // The winner is what the call has, or lacks.
        const td::JsonValue& winner = parameter["choices"][0];
        const auto& key             = parameter["key"].string();
        REQUIRE(winner.contains("value") == vote.call.arguments.contains(key));
        if (winner.contains("value")) CHECK(winner["value"] == vote.call.arguments[key]);
      }
    }
    td_consensus_free(made);
  }
  CHECK(disputed > 20);
}

TEST_CASE("td_order_consistency in C gives as many tokens as in C++") {
  const Handles handles;
  CallersModel model(5);
  const td_model functions    = model.functions();
  const std::int32_t prompt[] = {1, 2};
  td_consensus* made          = nullptr;
  REQUIRE(td_order_consistency(handles.constraint, &functions, prompt, 2, nullptr, &made,
                               nullptr) == TD_OK);
  std::size_t count = 0;
  td_consensus_tokens(made, &count);
  CHECK(count_voted_tokens(handles.constraint, &functions, prompt, 2) == count);
  CHECK(count > 10);
  td_consensus_free(made);
}

TEST_CASE("td_order_consistency with a model that fails returns TD_ERROR_MODEL and frees caches") {
  const Handles handles;
  for (std::size_t pass = 1; pass < 30; pass += 4) {
    CallersModel model(3);
    model.fails_at           = pass;
    const td_model functions = model.functions();
    CHECK(refusal_of(handles, &functions, nullptr) ==
          std::pair<td_code, std::string>(TD_ERROR_MODEL, "model/forward"));
    CHECK(model.caches == 0);
  }
  CallersModel model(3);
  td_model functions   = model.functions();
  functions.make_cache = [](void*) -> void* { return nullptr; };
  CHECK(refusal_of(handles, &functions, nullptr) ==
        std::pair<td_code, std::string>(TD_ERROR_MODEL, "model/make_cache"));
}

TEST_CASE("td_order_consistency with bad input returns the argument that is wrong") {
  const Handles handles;
  CallersModel model(1);
  const td_model whole = model.functions();
  using Refused        = std::pair<td_code, std::string>;
  CHECK(refusal_of(handles, nullptr, nullptr) == Refused(TD_ERROR_INVALID_ARGUMENT, "model"));
  td_model functions = whole;
  functions.fork     = nullptr;
  CHECK(refusal_of(handles, &functions, nullptr) ==
        Refused(TD_ERROR_INVALID_ARGUMENT, "model/fork"));
  functions             = whole;
  functions.struct_size = 8;
  CHECK(refusal_of(handles, &functions, nullptr).second == "model.struct_size");
  td_order_options options{};
  CHECK(refusal_of(handles, &whole, &options).second == "options.struct_size");
  options.struct_size = sizeof options;
  options.max_tokens  = 3;
  CHECK(refusal_of(handles, &whole, &options).first == TD_ERROR_INVALID_OPTION);
  CHECK(refusal_of(handles, &whole, nullptr, 0) == Refused(TD_ERROR_INVALID_OPTION, "prompt"));
  td_specification regex{};
  regex.struct_size        = sizeof regex;
  regex.kind               = TD_REGEX;
  regex.text               = {"a+", 2};
  td_constraint* other     = nullptr;
  td_consensus* out        = nullptr;
  td_error* error          = nullptr;
  const std::int32_t one[] = {1};
  REQUIRE(td_constraint_make(handles.vocabulary, &regex, &other, nullptr) == TD_OK);
  CHECK(td_order_consistency(other, &whole, one, 1, nullptr, &out, &error) ==
        TD_ERROR_INVALID_ARGUMENT);
  CHECK(td_error_where(error) == std::string("constraint"));
  td_error_free(error);
  td_constraint_free(other);
  CHECK(td_consensus_tokens(nullptr, nullptr) == nullptr);
  CHECK(td_consensus_votes(nullptr) == std::string("[]"));
  CHECK(td_consensus_passes(nullptr) == 0);
}
