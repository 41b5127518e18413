#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("MainModel holds a function of the context, with or without callbacks") {
  std::vector<std::string> told;
  const EngineCallbacks<int> callbacks{
      .on_continue = [&](int next,
                         const std::vector<ToolCall>&) { told.push_back(std::to_string(next)); },
      .on_wait     = [&](const std::vector<ToolCall>& calls) { return calls.empty(); },
      .on_restart  = [&] { told.emplace_back("anew"); }};
  const ClientModel<int> plain = [](const int& context, std::stop_token stop) {
    return Reply{std::to_string(context) + (stop.stop_requested() ? " stopped" : "")};
  };
  std::stop_source source;
  source.request_stop();
  CHECK(MainModel<int>(plain)(3, source.get_token(), callbacks).text == "3 stopped");
  const MainModel<int> engine = [](const int& context, std::stop_token,
                                   const EngineCallbacks<int>& tell) {
    tell.on_continue(context + 1, {});
    tell.on_restart();
    return Reply{tell.on_wait({}) ? "waits" : "ends"};
  };
  CHECK(engine(3, {}, callbacks).text == "waits");
  CHECK(told == std::vector<std::string>{"4", "anew"});
}

TEST_CASE("MainModel of an empty function is false") {
  CHECK_FALSE(MainModel<int>());
  CHECK_FALSE(MainModel<int>(ClientModel<int>()));
  CHECK_FALSE(ClientModels<int>().main);
  CHECK(MainModel<int>(ClientModel<int>([](const int&, std::stop_token) { return Reply{}; })));
}

namespace {

ToolRun run(std::optional<double> begin, std::optional<double> asked, double time) {
  ToolRun made{.call = {"f"}, .time = Seconds(time)};
  if (begin) made.begin = Seconds(*begin);
  if (asked) made.asked = Seconds(*asked);
  return made;
}

double saved(const std::vector<ToolRun>& runs) {
  return saved_time(runs).count();
}

}  // namespace

TEST_CASE("SpeculationCounts add up and keep the first error") {
  SpeculationCounts total;
  total += {.proposed = 1, .hits = 1};
  total += {.residents = 4, .misses = 2, .errors = 1, .late = 3, .first_error = "one"};
  total +=
      {.proposed = 1, .started = 1, .wasted = 1, .cancelled = 1, .errors = 2, .first_error = "two"};
  CHECK(total.proposed == 2);
  CHECK(total.started == 1);
  CHECK(total.hits == 1);
  CHECK(total.residents == 4);
  CHECK(total.misses == 2);
  CHECK(total.wasted == 1);
  CHECK(total.cancelled == 1);
  CHECK(total.errors == 3);
  CHECK(total.late == 3);
  CHECK(total.first_error == "one");
}

TEST_CASE("saved_time of runs is how long they had run when they were asked for") {
  CHECK(saved({}) == 0);
  CHECK(saved({run(1, 3, 5)}) == Approx(2));  // 2 of its 5 had passed
  CHECK(saved({run(1, 8, 5)}) == Approx(5));  // it was done
  CHECK(saved({run(3, 3, 5)}) == Approx(0).margin(1e-12));
  CHECK(saved({run(4, 3, 5)}) ==
        Approx(0).margin(1e-12));  // begun after the call: it waited for a thread
  CHECK(saved({run({}, 3, 0), run(1, {}, 9)}) == 0);  // never begun; never asked for
  // Of calls that run together the slowest counts, early or not.
  CHECK(saved({run(1, 8, 5), run(8, 8, 4)}) == Approx(1));
  CHECK(saved({run(1, 8, 5), run(8, 8, 6)}) == Approx(0).margin(1e-12));
}

TEST_CASE("name of each RunFate is its enumerator") {
  CHECK(name(RunFate::hit) == "hit");
  CHECK(name(RunFate::resident) == "resident");
  CHECK(name(RunFate::miss) == "miss");
  CHECK(name(RunFate::wasted) == "wasted");
}
