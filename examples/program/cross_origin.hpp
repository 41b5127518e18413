/// \file
/// CrossOrigin: which pages of other sites a browser lets use the server.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/http_framing.hpp>

namespace program {

/// Writes the headers of cross-origin resource sharing for the origins that may use the server;
/// without origins, none. With them a browser sends JSON, and shows a page the answers.
///
/// \par Threads  immutable; const members may run concurrently
/// \par Errors   Error{invalid_option} from the constructor
/// \par Source   WHATWG, Fetch, section 3.3
class CrossOrigin {
 public:
  using Headers = std::vector<std::pair<const char*, std::string>>;

  /// \param origins  as browsers send them, such as `https://example.org:8443`; `*` is all
  explicit CrossOrigin(std::vector<std::string> origins);

  /// Whether a browser asks by this request if another one may be sent.
  [[nodiscard]] bool is_preflight(const RequestReader& request) const;
  /// The headers of an answer to a request.
  [[nodiscard]] Headers headers(const RequestReader& request) const;
  /// More headers of the answer to a preflight of a URL that takes `method`.
  [[nodiscard]] static Headers preflight_headers(const RequestReader& request,
                                                 std::string_view method);

 private:
  [[nodiscard]] bool allows(std::string_view origin) const;

  std::vector<std::string> origins_;
  bool all_ = false;
};

}  // namespace program
