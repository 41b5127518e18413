#include <limits>
#include <random>

#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
    {"name": "again", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": false, "idempotentHint": true}},
    {"name": "silent", "inputSchema": {"type": "object"}},
    {"name": "text", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true"}},
    {"name": "openai", "parameters": {"type": "object"}, "readOnlyHint": true}])");
  return set;
}

ToolCall call(double cost) {
  return {"read", Json{{"cost", cost}}};
}

const auto cost_of         = [](const ToolCall& c) { return c.arguments.at("cost").get<double>(); };
const auto time_of         = [](const ToolCall& c) { return Seconds(cost_of(c)); };
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("SpeculationPolicy allows tools that are marked read-only or listed") {
  const SpeculationPolicy policy(documents());
  CHECK(policy.is_eligible("read"));
  for (const char* name : {"again", "silent", "text", "openai", "unknown", ""}) {
    INFO(name);
    CHECK_FALSE(policy.is_eligible(name));
  }
  const SpeculationPolicy listed(documents(), {.allowed = {"silent", "read"}});
  CHECK(listed.is_eligible("read"));
  CHECK(listed.is_eligible("silent"));
  CHECK_FALSE(listed.is_eligible("again"));
  CHECK_FALSE(SpeculationPolicy().is_eligible("read"));
}

TEST_CASE("SpeculationPolicy refuses unknown tools and invalid bounds") {
  const auto code_of = [](PolicyOptions options) {
    try {
      const SpeculationPolicy policy(documents(), options);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::malformed_json;
  };
  using Policy = SpeculationPolicy;
  CHECK_THROWS_WITH(Policy(documents(), {.allowed = {"raed"}}),
                    "allowed \"raed\": must be the name of a tool");
  CHECK_THROWS_WITH(Policy(documents(), {.max_time = Seconds(-1), .time = time_of}),
                    "max_time -1: must be 0 or more");
  CHECK_THROWS_WITH(Policy(documents(), {.max_cost = 1}),
                    "max_cost 1: must be infinite where no function says what a call takes");
  CHECK(code_of({.allowed = {"read", "raed"}}) == Errc::unknown_tool);
  CHECK(code_of({.max_time = Seconds(1)}) == Errc::invalid_option);
  CHECK(code_of({.max_cost = 1}) == Errc::invalid_option);
  CHECK(code_of({.max_time = Seconds(-1), .time = time_of}) == Errc::invalid_option);
  CHECK(code_of({.max_cost = no_number, .cost = cost_of}) == Errc::invalid_option);
}

TEST_CASE("SpeculationBudget bounds the number of calls, their time and their cost") {
  const SpeculationPolicy few(documents(), {.max_calls = 2});
  SpeculationBudget budget = few.budget();
  CHECK(budget.take(call(1)));
  CHECK(budget.take(call(1e9)));
  CHECK_FALSE(budget.take(call(0)));
  CHECK(few.budget().take(call(0)));  // another turn, another budget
  CHECK_FALSE(SpeculationPolicy(documents(), {.max_calls = 0}).budget().take(call(0)));

  SpeculationBudget time =
      SpeculationPolicy(documents(), {.max_time = Seconds(3), .time = time_of}).budget();
  CHECK(time.take(call(2)));
  CHECK_FALSE(time.take(call(1.5)));
  CHECK(time.take(call(1)));
  CHECK(time.take(call(0)));
  CHECK_FALSE(time.take(call(0.25)));

  SpeculationBudget cost =
      SpeculationPolicy(documents(), {.max_cost = 3, .cost = cost_of}).budget();
  CHECK_FALSE(cost.take(call(-1)));
  CHECK_FALSE(cost.take(call(4)));
  CHECK(cost.take(call(3)));
  CHECK_FALSE(SpeculationPolicy(documents(), {.cost = [](auto&) { return no_number; }})
                  .budget()
                  .take(call(1)));
}

TEST_CASE("SpeculationBudget without bounds refuses an infinite call and takes the next one") {
  const double infinite = std::numeric_limits<double>::infinity();
  SpeculationBudget budget =
      SpeculationPolicy(documents(), {.cost = [](const ToolCall& one) { return cost_of(one); }})
          .budget();
  CHECK_FALSE(budget.take(call(infinite)));
  CHECK(budget.take(call(1)));
}

TEST_CASE("SpeculationBudget::take accepts a call exactly where it fits the bounds") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    // Quarters add up without rounding.
    const auto quarters   = [&](unsigned max) { return static_cast<double>(random() % max) / 4; };
    const double max_time = quarters(40), max_cost = quarters(40);
    const std::size_t max_calls = random() % 8;
    double time_of_call = 0, time_sum = 0, cost_sum = 0;
    std::size_t calls = 0;
    SpeculationBudget budget =
        SpeculationPolicy(documents(),
                          {.max_calls = max_calls,
                           .max_time  = Seconds(max_time),
                           .max_cost  = max_cost,
                           .time      = [&](const ToolCall&) { return Seconds(time_of_call); },
                           .cost      = cost_of})
            .budget();
    for (int i = 0; i < 20; ++i) {
      time_of_call      = quarters(16);
      const double cost = quarters(16);
      const bool fits =
          calls < max_calls && time_sum + time_of_call <= max_time && cost_sum + cost <= max_cost;
      CHECK(budget.take(call(cost)) == fits);
      if (!fits) continue;
      ++calls;
      time_sum += time_of_call;
      cost_sum += cost;
    }
  }
}
