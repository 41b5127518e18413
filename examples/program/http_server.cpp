#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tooldecode/core/error.hpp>

#include <program/chat_answer.hpp>
#include <program/child_process.hpp>
#include <program/completions.hpp>
#include <program/http_server.hpp>
#include <program/openai.hpp>
#include <program/responses.hpp>
#include <program/seconds.hpp>
#include <program/server_page.hpp>
#include <unistd.h>

namespace program {
namespace {

struct Route {
  const char* method;
  const char* path;  // one that ends in / is followed by an id, except that of the page
};
constexpr std::string_view model_path = "/v1/models/";
constexpr std::string_view page_path  = "/";
constexpr Route routes[]              = {{"GET", "/"},
                                         {"GET", "/health"},
                                         {"GET", "/metrics"},
                                         {"GET", "/v1/models"},
                                         {"GET", "/v1/models/"},
                                         {"POST", "/v1/chat/completions"},
                                         {"POST", "/v1/responses"},
                                         {"POST", "/v1/completions"},
                                         {"POST", "/cache-tool-output/"}};

const Route* find_route(std::string_view path) {
  for (const Route& route : routes) {
    const std::string_view known = route.path;
    const bool takes_id          = known.ends_with('/') && known != page_path;
    if (!takes_id && path != known) continue;
    if (takes_id && !path.starts_with(known)) continue;
    const std::string_view id = path.substr(known.size());
    if (!takes_id || (known == model_path ? !id.empty() : is_response_id(id))) return &route;
  }
  return nullptr;
}

std::string allowed_methods(const Route& route) {
  const std::string method = route.method;
  return method == "GET" ? "GET, HEAD" : method;
}

// Compares in constant time, which does not reveal how much of a key is right.
bool is_same_key(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  }
  return difference == 0;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The key in "Bearer KEY"; the scheme is not case-sensitive.
std::string_view key_of(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (lower(std::string(authorization.substr(0, scheme.size()))) != scheme) return {};
  authorization.remove_prefix(scheme.size());
  return authorization.substr(std::min(authorization.find_first_not_of(' '), authorization.size()));
}

void set_json(httplib::Response& response, const Json& body) {
  response.set_content(json_text(body), "application/json");
}

void set_error(httplib::Response& response, const ApiError& error) {
  response.status = error.status();
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (error.status() == 429) response.set_header("Retry-After", "1");
  set_json(response, error.json());
}

// Runs a function that answers a request. Returns false if it fails; the error is then the
// answer.
template <class Answer>
bool answer(httplib::Response& response, Answer run) {
  try {
    run();
    return true;
  } catch (const ApiError& error) {
    set_error(response, error);
  } catch (const tooldecode::Error& error) {
    set_error(response, ApiError(400, "invalid_value", "", error.what()));
  }
  return false;
}

void say_stopped() {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) std::cout << "stopped" << std::endl;
}

// Tells answers in progress to end. What does not end, such as a pass of a large model, ends with
// the process.
void end_soon() {
  constexpr std::chrono::seconds most{2};
  std::thread([most] {
    std::this_thread::sleep_for(most);
    ChildProcess::kill_every_one();
    say_stopped();
    std::_Exit(0);
  }).detach();
}

// Explains what the HTTP library refused.
void explain(httplib::Response& response) {
  ConnectionServer::connection().close_after_reply();
  const int status       = response.status;
  const char* const what = status == 414   ? "the request's URL is too long"
                           : status == 404 ? "there is nothing at this URL"
                                           : "the request is not HTTP as required";
  set_error(response, ApiError(status, "invalid_http", "", what));
}

std::string name_of(const std::filesystem::path& model) {
  // Of the name that was given: a link may lead to a file whose name is a hash.
  auto path = std::filesystem::absolute(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
}

bool is_address(std::string_view host) {
  return host.starts_with('[') || host.find_first_not_of("0123456789.") == host.npos;
}

bool is_local_name(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");
}

// The host of an Origin or a Host header, without its port.
std::string_view host_of(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != text.npos)
    text.remove_prefix(scheme + 3);
  const std::size_t bracket = text.find(']');
  return text.substr(0, text.find(':', bracket == text.npos ? 0 : bracket));
}

// A host that --host names, in a URL.
std::string in_url(const std::string& host) {
  return host.find(':') == host.npos ? host : '[' + host + ']';
}

std::string id_of(const httplib::Request& request) {
  return request.matches.size() > 1 ? request.matches[1].str() : std::string();
}

}  // namespace

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

HttpServer::HttpServer(ChatService& service, const HttpOptions& options,
                       const std::filesystem::path& model)
    : service_(&service),
      options_(options),
      origins_(options.origins),
      model_(name_of(model)),
      http_({.request     = {.body_bytes = options.body_bytes},
             .connections = options.connections,
             .read        = milliseconds(options.read_timeout),
             .answer      = milliseconds(options.timeout) + ConnectionLimits().write},
            {.wants_body = [this](const RequestReader& request) { return wants_body(request); },
             .refuse  = [this](int status, const char* problem) { return refuse(status, problem); },
             .is_busy = [this] { return service_->is_busy(); }}) {
  http_.set_keep_alive_max_count(1 << 20);
  http_.set_pre_routing_handler([this](const auto& request, auto& response) {
    const Connection& connection = ConnectionServer::connection();
    for (const auto& [name, value] : origins_.headers(connection.request())) {
      response.set_header(name, value);
    }
    if (answer_preflight(request, response)) return httplib::Server::HandlerResponse::Handled;
    const bool ok = answer(response, [&] {
      if (connection.is_late()) throw_stopping();
      check(request.path, connection.request());
    });
    if (response.status == 405) {
      response.set_header("Allow", allowed_methods(*find_route(request.path)));
    }
    return ok ? httplib::Server::HandlerResponse::Unhandled
              : httplib::Server::HandlerResponse::Handled;
  });
  http_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) explain(response);
  });
  http_.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
        set_error(response, ApiError(500, "internal_error", "", "the server failed"));
      });
  http_.set_logger([this](const httplib::Request& request, const httplib::Response& response) {
    const Route* route = find_route(request.path);
    metrics_.count(route == nullptr ? "other" : route->path, response.status);
  });
  add_routes();
}

void HttpServer::add_routes() {
  http_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    response.set_content(page(), "text/html; charset=utf-8");
  });
  get("/health", [this](const std::string&) { return Json{{"status", "ok"}, {"model", model_}}; });
  get("/v1/models", [this](const std::string&) {
    return Json{{"object", "list"}, {"data", Json::array({model_json()})}};
  });
  get("/v1/models/(.+)", [this](const std::string& id) {
    require_model(id);
    return model_json();
  });
  http_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    MetricsText page;
    service_->write(page);
    metrics_.write(page);
    response.set_content(page.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  post("/v1/chat/completions",
       [this](const std::string&, const std::string& body, httplib::Response& response) {
         chat(parse_chat, body, response);
       });
  post("/v1/responses",
       [this](const std::string&, const std::string& body, httplib::Response& response) {
         chat(parse_response, body, response);
       });
  post("/v1/completions",
       [this](const std::string&, const std::string& body, httplib::Response& response) {
         chat(parse_completion, body, response);
       });
  post("/cache-tool-output/(.+)", [this](const std::string& id, const std::string& body,
                                         httplib::Response& response) {
    const std::size_t cached = service_->cache(id, parse_cached_outputs(parse_exact_body(body)));
    set_json(response, {{"cached", cached}});
  });
}

void HttpServer::run() {
  const sigset_t signals = stop_signals();
  const auto port        = http_.bind(options_.host, options_.port);
  if (!port) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option,
                            options_.host + ':' + std::to_string(options_.port),
                            "cannot be listened at");
  }
  port_ = *port;
  {
    std::atomic<bool> ended = false;
    const std::jthread listener([&] {
      http_.serve();
      ended = true;
      kill(getpid(), SIGTERM);  // if serving ended by itself, this ends the wait below
    });
    std::cout << "listening on http://" << in_url(options_.host) << ':' << port_ << std::endl;
    int signal = 0;
    sigwait(&signals, &signal);
    http_.drain();
    {
      // A second signal ends the wait for answers in progress, and so does a timeout.
      const std::jthread timer([&](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;
        const std::chrono::duration<double> time(options_.drain_seconds);
        wake.wait_for(lock, stop, time, [] { return false; });
        if (!stop.stop_requested()) kill(getpid(), SIGTERM);
      });
      if (!ended) sigwait(&signals, &signal);
    }
    stopping_ = true;
    end_soon();
    service_->cancel_building();
    http_.stop_waiting();
  }
  say_stopped();
}

// Explains a malformed request, which the HTTP library does not see.
std::string HttpServer::refuse(int status, const char* problem) {
  metrics_.count("other", status);
  const char* const code = status == 503 ? "too_many_connections" : "invalid_http";
  return json_text(ApiError(status, code, "", problem).json());
}

bool HttpServer::answer_preflight(const httplib::Request& request,
                                  httplib::Response& response) const {
  const RequestReader& asked = ConnectionServer::connection().request();
  const Route* const route   = find_route(request.path);
  if (route == nullptr || !origins_.is_preflight(asked)) return false;
  for (const auto& [name, value] : CrossOrigin::preflight_headers(asked, route->method)) {
    response.set_header(name, value);
  }
  response.status = 204;
  return true;
}

// A page of any site can use a server of this machine under its own name, if that leads here (DNS
// rebinding); to a browser both are one site. An address, or a name without a dot, is no such name.
bool HttpServer::is_known_host(std::string_view header) const {
  const std::string& own = options_.host;
  const bool is_local =
      is_local_name(own) || own == "::1" || (is_address(own) && own.starts_with("127."));
  if (!options_.api_key.empty() || !is_local) return true;
  const std::string host = lower(std::string(host_of(header)));
  return is_address(host) || is_local_name(host) || host.find('.') == std::string::npos ||
         std::any_of(options_.origins.begin(), options_.origins.end(),
                     [&](const auto& origin) { return origin == "*" || host_of(origin) == host; });
}

// Checks a request before its body is read.
void HttpServer::check(std::string_view path, const RequestReader& request) const {
  const Route* route = find_route(path);
  if (route == nullptr) {
    throw ApiError(404, "unknown_url", "", "there is nothing at this URL");
  }
  const std::string_view method = route->method;
  const bool reads              = request.method() == "GET" || request.method() == "HEAD";
  if (method == "GET" ? !reads : request.method() != method) {
    throw ApiError(405, "method_not_allowed", "",
                   "this URL takes " + std::string(method) + ", not " + request.method());
  }
  if (!is_known_host(request.value("Host"))) {
    throw ApiError(403, "unknown_host", "",
                   "a server of this machine alone is not known by this name: give it an "
                   "--api-key, or the name by --cors http://NAME");
  }
  const std::string_view known = route->path;
  const bool is_open           = known == "/health" || known == page_path;
  if (!options_.api_key.empty() && !is_open &&
      !is_same_key(key_of(request.value("Authorization")), options_.api_key)) {
    throw ApiError(401, "invalid_api_key", "", "the API key is missing or wrong");
  }
  if (reads) return;
  const std::string type = lower(std::string(request.value("Content-Type")));
  // A browser asks permission before it sends this type to another site, see CrossOrigin.
  if (type.substr(0, type.find_first_of("; ")) != "application/json") {
    throw ApiError(415, "unsupported_content_type", "", "the body must be application/json");
  }
  const std::string coding = lower(std::string(request.value("Content-Encoding")));
  if (!coding.empty() && coding != "identity" && coding != "gzip" && coding != "deflate") {
    throw ApiError(415, "unsupported_content_encoding", "",
                   "the body must be sent as it is, or in the coding gzip or deflate");
  }
  if (request.length() > options_.body_bytes) throw_too_large();
}

// Whether to read a body: a request that is refused needs none.
bool HttpServer::wants_body(const RequestReader& request) const {
  if (request.method() == "GET" || request.method() == "HEAD") return false;
  const std::string_view target = request.target();
  if (target.find('%') != target.npos) return true;  // the path is not decoded yet
  try {
    check(target.substr(0, target.find_first_of("?#")), request);
    return true;
  } catch (const ApiError&) {
    return false;
  }
}

void HttpServer::throw_too_large() const {
  throw ApiError(413, "request_too_large", "",
                 "the body has more than " + std::to_string(options_.body_bytes) + " bytes");
}

template <class Answer>
void HttpServer::get(const char* pattern, Answer make) {
  http_.Get(pattern, [make](const httplib::Request& request, httplib::Response& response) {
    answer(response, [&] { set_json(response, make(id_of(request))); });
  });
}

template <class Answer>
void HttpServer::post(const char* pattern, Answer make) {
  http_.Post(pattern, [this, make](const httplib::Request& request, httplib::Response& response,
                                   const httplib::ContentReader& read) {
    answer(response, [&] {
      std::string body;
      const bool whole = read([&](const char* part, std::size_t size) {
        body.append(part, size);
        return body.size() <= options_.body_bytes;  // it may have been compressed
      });
      if (body.size() > options_.body_bytes) throw_too_large();
      if (!whole) return explain(response);
      make(id_of(request), body, response);
    });
  });
}

Json HttpServer::model_json() const {
  return {{"id", model_},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "tooldecode"},
          {"max_model_len", service_->assistant().model_ref().context_length()}};
}

std::string HttpServer::page() const {
  std::string host(ConnectionServer::connection().request().value("Host"));
  if (!is_plain_host(host)) host = in_url(options_.host) + ':' + std::to_string(port_);
  return write_server_page({.model     = model_,
                            .format    = service_->format().name,
                            .context   = service_->assistant().model_ref().context_length(),
                            .needs_key = !options_.api_key.empty(),
                            .url       = "http://" + host});
}

void HttpServer::require_model(const std::string& name) const {
  if (name != model_) {
    throw ApiError(404, "model_not_found", "model",
                   "the model here is " + model_ + ", not " + name);
  }
}

void HttpServer::chat(Parse parse, const std::string& text, httplib::Response& response) {
  Json body   = parse_body(text);
  auto hosted = service_->expand_tools(body);
  ChatRequest request =
      parse(body, service_->format(), service_->assistant().tokenizer.vocabulary().size());
  if (!hosted.labels.empty()) {
    request.host(std::move(hosted.labels));
    for (std::string& name : hosted.ignored) {
      if (std::ranges::find(request.ignored, name) == request.ignored.end()) {
        request.ignored.push_back(std::move(name));
      }
    }
    if (request.echo.contains("tools")) request.echo["tools"] = std::move(hosted.tools);
  }
  require_model(request.model);
  std::shared_ptr<ChatAnswer> state;
  try {
    state = std::make_shared<ChatAnswer>(
        *service_, request, ConnectionServer::connection().client(), [this] { require_listener(); },
        options_.timeout);
    for (const auto& [name, value] : state->headers()) response.set_header(name, value);
    if (!request.stream) return response.set_content(state->whole(), "application/json");
  } catch (const ClientGone&) {
    ConnectionServer::connection().close_after_reply();
    response.status = 499;
    return;
  }
  response.set_header("Cache-Control", "no-cache");
  const auto write = [state](std::size_t, httplib::DataSink& sink) {
    const auto send = [&sink](const std::string& event) {
      if (!sink.write(event.data(), event.size())) throw ClientGone();
    };
    try {
      try {
        state->stream(send);
      } catch (const ApiError& error) {
        state->abandon();  // before the client may use the id again
        send(state->failed(error));
      } catch (const std::exception&) {
        state->abandon();
        send(state->failed(ApiError(500, "internal_error", "", "the server failed")));
      }
      sink.done();
      return true;
    } catch (...) {
      return false;  // the client is gone
    }
  };
  if (ConnectionServer::connection().request().version() == "HTTP/1.0") {  // has no chunks
    ConnectionServer::connection().close_after_reply();
    return response.set_content_provider("text/event-stream", write);
  }
  response.set_chunked_content_provider("text/event-stream", write);
}

void HttpServer::require_listener() const {
  if (stopping_) throw_stopping();
  if (!ConnectionServer::connection().is_open()) throw ClientGone();
}

}  // namespace program
