/// \file
/// HttpServer: a ChatService over HTTP.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <program/chat_answer.hpp>
#include <program/connection.hpp>
#include <program/cross_origin.hpp>
#include <program/fields.hpp>
#include <program/http_framing.hpp>
#include <program/metrics.hpp>
#include <program/server.hpp>
#include <signal.h>

namespace program {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port         = 8080;
  std::string api_key;                             ///< empty: clients need none
  double timeout          = 60;                    ///< seconds for one answer
  double read_timeout     = 10;                    ///< seconds for a request to arrive
  double drain_seconds    = 10;                    ///< for answers in progress once it stops
  std::size_t body_bytes  = std::size_t{1} << 20;  ///< of a request
  std::size_t connections = 256;
  std::vector<std::string> origins;  ///< whose pages may use the server, see CrossOrigin
};

/// The signals that stop the server; block them before any thread is made.
sigset_t stop_signals();

/// Serves OpenAI's API, the tool cache, the metrics of a service and a page about it.
///
/// \par Threads  one; it makes its own
/// \par Errors   Error{invalid_option} if the server cannot listen at the address
class HttpServer {
 public:
  /// \param model  its file or folder; clients know it by that name
  HttpServer(ChatService& service, const HttpOptions& options, const std::filesystem::path& model);

  /// Serves until a signal stops it.
  void run();

 private:
  struct ClientGone {};
  /// Parses a request's body for one of the APIs.
  using Parse = ChatRequest (*)(const Json& body, const Format& format,
                                std::size_t vocabulary_size);

  void add_routes();
  void chat(Parse parse, const std::string& text, httplib::Response& response);
  // Answers a browser that asks whether a request may be sent; false for any other request.
  [[nodiscard]] bool answer_preflight(const httplib::Request& request,
                                      httplib::Response& response) const;
  [[nodiscard]] bool is_known_host(std::string_view header) const;
  void check(std::string_view path, const RequestReader& request) const;
  [[nodiscard]] bool wants_body(const RequestReader& request) const;
  [[nodiscard]] std::string refuse(int status, const char* problem);
  [[noreturn]] void throw_too_large() const;
  [[nodiscard]] Json model_json() const;
  [[nodiscard]] std::string page() const;
  void require_model(const std::string& name) const;
  void require_listener() const;
  template <class Answer>
  void get(const char* pattern, Answer make);
  template <class Answer>
  void post(const char* pattern, Answer make);

  ChatService* service_;
  HttpOptions options_;
  CrossOrigin origins_;
  std::string model_;
  int port_             = 0;  // that it listens at
  std::int64_t started_ = std::time(nullptr);
  HttpMetrics metrics_;
  std::atomic<bool> stopping_ = false;
  ConnectionServer http_;
};

}  // namespace program
