// What an MCP server and its client write at the same time.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/mcp_server.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace std::chrono_literals;

namespace {

// Requests a stop after a time, so that a call that hangs fails.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds time)
      : timer_([this, time](const std::stop_token& done) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any ended;
          ended.wait_for(lock, done, time, [] { return false; });
          if (!done.stop_requested()) late_.request_stop();
        }) {}
  [[nodiscard]] std::stop_token token() const { return late_.get_token(); }

 private:
  std::stop_source late_;
  std::jthread timer_;
};

// The beginning of a server's script, up to its list of tools.
const std::string handshake = R"(
answer() { printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$1" "$2"; }
read -r initialize; answer 1 '{}'
read -r initialized
read -r list; answer 2 '{"tools": []}'
)";

ToolCall long_call() {
  return {.name = "f", .arguments = {{"text", std::string(1 << 19, 'x')}}};
}

}  // namespace

TEST_CASE("McpServer reads a server's pings while it writes a call, and then answers them") {
  // The pings are more than the pipe holds, and the call is more than the socket holds: each side
  // goes on only if the other reads.
  program::McpServer server(handshake + R"(sleep 0.3
for i in $(seq 4000); do echo '{"jsonrpc": "2.0", "id": 77, "method": "ping"}'; done
read -r call
for i in $(seq 4000); do
  read -r pong
  case $pong in *77*) ;; *) exit 3 ;; esac
done
answer 3 '{"content": [{"type": "text", "text": "done"}]}'
read -r rest)",
                            20s);
  const Deadline deadline(20s);
  CHECK(server(long_call(), deadline.token()) == ToolResult{ToolStatus::ok, "done"});
  CHECK_FALSE(server.has_ended());
}

TEST_CASE("McpServer ends a call in time while another one is being written") {
  program::McpServer server(handshake + R"(sleep 600)", 20s);
  std::stop_source end;
  ToolResult of_long;
  std::jthread writing([&] { of_long = server(long_call(), end.get_token()); });
  std::this_thread::sleep_for(100ms);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(server.has_ended());
  const Deadline soon(100ms);
  CHECK(server({.name = "g"}, soon.token()).status == ToolStatus::cancelled);
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
  end.request_stop();
  writing.join();
  CHECK(of_long.status == ToolStatus::cancelled);
  CHECK(server.has_ended());  // its message was cut short
}
