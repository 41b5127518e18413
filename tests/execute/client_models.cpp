#include <stop_token>
#include <string>
#include <vector>

#include <tooldecode/execute/client_models.hpp>

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
