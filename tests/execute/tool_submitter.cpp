#include <atomic>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <tooldecode/execute/tool_submitter.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

using Submitter = ToolSubmitter<int>;

Submitter::Delivery letter(int context, const std::string& output, bool is_over = false) {
  return {std::make_shared<const int>(context),
          {"get"},
          {ToolStatus::ok, output},
          std::make_shared<const std::atomic<bool>>(is_over)};
}

}  // namespace

TEST_CASE("ToolSubmitter submits results in order, each with its own context") {
  std::vector<std::string> told;
  std::atomic<std::size_t> done = 0;
  {
    Submitter submitter(
        [&](const int& context, const ToolCall& c, const ToolResult& result, std::stop_token) {
          told.push_back(std::to_string(context) + c.name + result.output);
          done = told.size();
          done.notify_all();
          return context != 4;
        });
    for (int i = 0; i < 5; ++i) submitter.outbox()->put(letter(i, "x", i == 2));
    for (std::size_t seen = done; seen < 4; seen = done) done.wait(seen);
    CHECK(submitter.counts().told == 3);  // the last one's reply came first
    CHECK(submitter.counts().errors == 0);
  }
  CHECK(told == std::vector<std::string>{"0getx", "1getx", "3getx", "4getx"});
}

TEST_CASE("ToolSubmitter counts submissions that throw and keeps the first error's text") {
  std::atomic<int> runs = 0;
  Submitter submitter([&](const int& context, const ToolCall&, const ToolResult&, std::stop_token) {
    ++runs;
    runs.notify_all();
    if (context == 1) throw std::runtime_error("status 404");
    if (context == 2) throw 3;
    return true;
  });
  for (int i = 0; i < 4; ++i) submitter.outbox()->put(letter(i, ""));
  for (int seen = runs; seen < 4; seen = runs) runs.wait(seen);
  const SubmissionCounts counts = submitter.counts();
  CHECK(counts.told == 2);
  CHECK(counts.errors == 2);
  CHECK(counts.first_error == "status 404");
}

TEST_CASE("ToolSubmitter's destructor does not wait for results that were not submitted") {
  std::atomic<bool> entered = false;
  int runs                  = 0;
  std::shared_ptr<Submitter::DeliveryQueue> outbox;
  {
    Submitter submitter(
        [&](const int&, const ToolCall&, const ToolResult&, const std::stop_token& stop) {
          ++runs;
          entered = true;
          entered.notify_all();
          std::atomic<bool> stopped = false;
          const std::stop_callback callback(stop, [&] { stopped = true, stopped.notify_all(); });
          stopped.wait(false);
          return false;
        });
    outbox = submitter.outbox();
    outbox->put(letter(0, ""));
    outbox->put(letter(1, ""));
    entered.wait(false);
  }
  CHECK(runs == 1);
  outbox->put(letter(2, ""));  // after the submitter has ended
}
