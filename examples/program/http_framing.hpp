/// \file
/// RequestReader: finds the end of an HTTP request, and refuses every ambiguous request.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

struct RequestLimits {
  std::size_t head_bytes = std::size_t{1} << 16;
  std::size_t body_bytes = std::size_t{1} << 20;
  std::size_t fields     = 128;
};

/// Reads one HTTP/1 request, in pieces of any size.
///
/// Two readers that disagree about a request's end see different requests: a body for one is the
/// next request for the other. So everything that RFC 9112 allows a recipient to repair is refused:
/// folded lines, space before a colon, bare line feeds, a length with a transfer coding, two
/// lengths, signs. Accepted requests are rewritten with one length and without transfer coding.
///
/// \par Threads     one at a time
/// \par Errors      none; see `status` and `problem`
/// \par Source      RFC 9110 and RFC 9112
class RequestReader {
 public:
  enum class State {
    head,
    body,  ///< the head is known, and more of the body is needed
    whole,
    refused,  ///< not a valid request; see `status`
  };
  using Field = std::pair<std::string, std::string>;

  explicit RequestReader(const RequestLimits& limits = {}) : limits_(limits) {}

  /// Consumes the bytes that it needs and returns how many. It stops at the end of the head, so
  /// that you can check the head before the body is read.
  std::size_t push(std::string_view bytes);
  /// Ends the request after its head and drops its body.
  void drop_body();

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool is_empty() const noexcept { return line_.empty() && head_bytes_ == 0; }
  /// If refused: 400, 413 or 431, and the reason.
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] const char* problem() const noexcept { return problem_; }

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  [[nodiscard]] const std::string& target() const noexcept { return target_; }
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  /// The value of the first field with this name, ignoring case; empty if there is none.
  [[nodiscard]] std::string_view value(std::string_view name) const;
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  /// Length of the body, unless it is chunked.
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// Whether one of the field's comma-separated values is this one, ignoring case.
  [[nodiscard]] bool has_value(std::string_view name, std::string_view value) const;
  /// Whether the client may send another request on the same connection.
  [[nodiscard]] bool keeps_connection() const;
  [[nodiscard]] bool has_body() const noexcept { return is_chunked_ || length_ > 0; }
  /// Whether the client waits for 100 Continue before it sends the body.
  [[nodiscard]] bool expects_continue() const;

  /// The request in normal form: its head with a content length, and its body.
  [[nodiscard]] std::string text() const;

 private:
  enum class Part { request_line, fields, body, chunk_size, chunk, chunk_end, trailers };

  void refuse(int status, const char* problem);
  void end_line();
  void read_request_line();
  void read_field();
  void end_head();
  // Makes the path of a target that is a whole URL; false if it names another host.
  [[nodiscard]] bool drop_authority(const std::string* host);
  void read_chunk_size();
  [[nodiscard]] bool is_at_head() const noexcept {
    return part_ == Part::request_line || part_ == Part::fields;
  }
  [[nodiscard]] const std::string* find_only(std::string_view name);
  void take_body(std::string_view bytes);

  RequestLimits limits_;
  State state_         = State::head;
  Part part_           = Part::request_line;
  int status_          = 0;
  const char* problem_ = "";
  std::string line_;
  std::string method_, target_, version_;
  std::vector<Field> fields_;
  std::size_t head_bytes_    = 0;
  std::size_t trailer_bytes_ = 0;
  bool is_chunked_           = false;
  std::size_t length_        = 0;  // of a body that is not chunked
  std::size_t left_          = 0;  // of the body or of a chunk
  std::string body_;
};

}  // namespace program
