#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <poll.h>
#include <program/mcp_server.hpp>
#include <program/send_now.hpp>
#include <unistd.h>

namespace program {

McpServer::McpServer(const std::string& command, std::chrono::milliseconds patience,
                     const std::stop_token& stop)
    : command_(command),
      child_(start(command)),
      reader_([this](const std::stop_token& quit) { read_all(quit); }) {
  std::stop_source late;
  const std::stop_callback stopping(stop, [&late] { late.request_stop(); });
  const std::jthread timer([&, patience](const std::stop_token& done) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any ended;
    if (!ended.wait_for(lock, done, patience, [] { return false; }) && !done.stop_requested()) {
      late.request_stop();
    }
  });
  const auto ask = [&](const char* method, Json parameters) {
    const Json answer = request(method, std::move(parameters), late.get_token());
    if (answer.contains("result")) return answer["result"];
    refuse(std::string(method) + ": " + failure_of(answer));
  };
  static_cast<void>(ask(
      "initialize",
      {{"protocolVersion", "2025-06-18"},
       {"capabilities", Json::object()},
       {"clientInfo", {{"name", "tooldecode"}, {"version", std::string(tooldecode::version)}}}}));
  send_message({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}, late.get_token());
  for (Json parameters = Json::object();;) {
    const Json page  = ask("tools/list", parameters);
    const auto tools = page.find("tools");
    if (tools == page.end() || !tools->is_array()) refuse("tools/list: answers without tools");
    for (const Json& tool : *tools) tools_.push_back(tool);
    const auto cursor = page.find("nextCursor");
    if (cursor == page.end() || !cursor->is_string()) break;
    parameters["cursor"] = *cursor;  // the timer stops a server that never ends the list
  }
}

McpServer::~McpServer() {
  const std::lock_guard lock(writing_);
  close_input();
}

bool McpServer::has_ended() {
  const std::lock_guard lock(mutex_);
  return ending_.has_value() || is_closed_;
}

tooldecode::ToolResult McpServer::operator()(const tooldecode::ToolCall& call,
                                             const std::stop_token& stop) {
  using tooldecode::ToolStatus;
  const Json answer =
      request("tools/call", {{"name", call.name}, {"arguments", call.arguments}}, stop);
  const auto result = answer.find("result");
  if (result == answer.end()) {
    return {stop.stop_requested() ? ToolStatus::cancelled : ToolStatus::failed, failure_of(answer)};
  }
  return {result->is_object() && result->value("isError", Json()) == true ? ToolStatus::failed
                                                                          : ToolStatus::ok,
          text_of(*result)};
}

ChildProcess McpServer::start(const std::string& command) {
  try {
    return ChildProcess(command);
  } catch (const std::system_error& error) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "--mcp", command, error.what());
  }
}

void McpServer::refuse(const std::string& what) const {
  throw tooldecode::Error(tooldecode::Errc::invalid_option, "--mcp", command_, what);
}

std::string McpServer::failure_of(const Json& answer) {
  if (const auto missing = answer.find("missing"); missing != answer.end())
    return missing->string();
  const auto error = answer.find("error");
  if (error == answer.end()) return "answers with neither result nor error";
  if (!error->is_object() || !error->value("message", Json()).is_string()) return json_text(*error);
  return (*error)["message"].string();
}

std::string McpServer::text_of(const Json& result) {
  const auto content = result.find("content");
  if (content == result.end() || !content->is_array() || content->empty()) {
    // The result of a tool with an output schema, which may omit the text form.
    const auto structured = result.find("structuredContent");
    return json_text(structured == result.end() ? result : *structured);
  }
  std::string text;
  for (const Json& part : *content) {
    if (!text.empty()) text += '\n';
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.value("text", Json()).is_string();
    text += is_text ? part["text"].get<std::string>() : json_text(part);
  }
  return text;
}

Json McpServer::request(const char* method, Json parameters, const std::stop_token& stop) {
  std::int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_;
    waiting_.emplace(id, std::nullopt);
  }
  const bool is_sent = send_message(
      {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(parameters)}},
      stop);
  std::unique_lock lock(mutex_);
  if (is_sent) {
    answered_.wait(lock, stop, [&] { return waiting_[id].has_value() || ending_.has_value(); });
  }
  std::optional<Json> answer = std::move(waiting_[id]);
  waiting_.erase(id);
  if (answer) return *std::move(answer);
  std::string rubbish;
  if (rubbish_ > 0) {
    rubbish = "; it wrote " + std::to_string(rubbish_) +
              " lines that are no messages, the first: " + first_rubbish_;
  }
  if (ending_) return no_answer("the server has ended: " + *ending_ + rubbish);
  lock.unlock();
  if (is_sent) {
    queue({{"jsonrpc", "2.0"},
           {"method", "notifications/cancelled"},
           {"params", {{"requestId", id}, {"reason", "no longer wanted"}}}});
  }
  return no_answer("the server did not answer in time" + rubbish);
}

bool McpServer::send_message(const Json& message, const std::stop_token& stop) {
  const std::string line = json_text(message) + '\n';
  std::unique_lock lock(writing_, std::defer_lock);
  while (!lock.try_lock()) {
    if (stop.stop_requested()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::string_view rest = line;
  while (!rest.empty() && child_.input() >= 0) {
    // What is queued may be half written.
    const bool has_begun      = rest.size() < line.size();
    const std::size_t written = has_begun || write_queue() ? write_some(rest) : 0;
    rest.remove_prefix(written);
    if (written > 0 || child_.input() < 0) continue;
    if (stop.stop_requested()) {
      if (has_begun) close_input();
      return false;
    }
    pollfd ready{child_.input(), POLLOUT, 0};
    poll(&ready, 1, 10);
  }
  return rest.empty();
}

void McpServer::queue(const Json& message) {
  const std::string line = json_text(message) + '\n';
  const std::lock_guard lock(mutex_);
  if (queue_.size() + line.size() <= max_queue) queue_ += line;
}

bool McpServer::write_queue() {
  std::unique_lock lock(mutex_);
  const std::string queued = std::exchange(queue_, {});
  lock.unlock();
  const std::size_t written = write_some(queued);
  lock.lock();
  queue_.insert(0, queued, written);
  return queue_.empty();
}

std::size_t McpServer::write_some(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && child_.input() >= 0) {
    const ssize_t written = send_now(child_.input(), text.data() + count, text.size() - count);
    if (written > 0) {
      count += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      close_input();
    }
  }
  return count;
}

void McpServer::close_input() {
  child_.close_input();
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

void McpServer::read_all(const std::stop_token& quit) {
  std::string text;
  std::array<char, 65536> part{};
  // A server that is asked to end gets half a second.
  for (int patience = 50; patience > 0; patience -= quit.stop_requested() ? 1 : 0) {
    if (const std::unique_lock lock(writing_, std::try_to_lock); lock) write_queue();
    pollfd ready{child_.output(), POLLIN, 0};
    if (poll(&ready, 1, 10) <= 0) {
      // What it started may hold the pipe open.
      if (child_.has_ended()) break;
      continue;
    }
    const ssize_t count = read(child_.output(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      take(std::string_view(text).substr(begin, end - begin));
    }
    text.erase(0, begin);
    if (text.size() > max_line) {
      take(text);
      break;
    }
  }
  child_.kill_all();
  const std::lock_guard lock(mutex_);
  ending_ = how_it_ended(child_.wait());
  answered_.notify_all();
}

void McpServer::take(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  Json message;
  try {
    using tooldecode::text::ValueReader;
    ValueReader reader(line, ValueReader::Language::json, tooldecode::Errc::malformed_json);
    reader.replace_half_pairs();
    message = reader.only_value();
  } catch (const tooldecode::Error&) {  // reported below, like any other malformed message
  }
  if (!message.is_object() || message.value("jsonrpc", Json()) != "2.0") {
    constexpr std::size_t shown = 80;
    const std::lock_guard lock(mutex_);
    if (rubbish_++ == 0) first_rubbish_ = json_text(Json(std::string(line.substr(0, shown))));
    return;
  }
  const auto id = message.find("id");
  if (const auto method = message.find("method"); method != message.end()) {
    if (id == message.end()) return;  // a notification
    Json answer{{"jsonrpc", "2.0"}, {"id", *id}};
    if (*method == "ping") {
      answer["result"] = Json::object();
    } else {
      answer["error"] = {{"code", -32601}, {"message", "the client has no such method"}};
    }
    queue(answer);
    return;
  }
  if (id == message.end() || !id->is_number_integer()) return;
  const std::lock_guard lock(mutex_);
  const auto waiting = waiting_.find(id->get<std::int64_t>());
  if (waiting == waiting_.end()) return;  // the caller has stopped waiting
  waiting->second = std::move(message);
  answered_.notify_all();
}

}  // namespace program
