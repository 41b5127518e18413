#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>

#include <program/cross_origin.hpp>

namespace program {

namespace {

bool is_origin(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == 0 || colon == text.npos) return false;
  const std::string_view host = text.substr(colon + 3);
  return !host.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isgraph(c) != 0 && std::isupper(c) == 0;
  }) && host.find_first_of("/?#@*,") == host.npos;
}

// Names of headers with commas between them.
bool is_list_of_names(std::string_view text) {
  constexpr std::size_t longest = 2048;
  return text.size() <= longest && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

}  // namespace

CrossOrigin::CrossOrigin(std::vector<std::string> origins) : origins_(std::move(origins)) {
  for (const std::string& origin : origins_) {
    all_ = all_ || origin == "*";
    if (origin == "*" || is_origin(origin)) continue;
    throw tooldecode::Error(tooldecode::Errc::invalid_option, "--cors",
                            origin +
                                ": must be * or an origin as browsers send it, in lower case and "
                                "without a path: https://example.org:8443");
  }
}

bool CrossOrigin::allows(std::string_view origin) const {
  return !origin.empty() &&
         (all_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end());
}

bool CrossOrigin::is_preflight(const RequestReader& request) const {
  return request.method() == "OPTIONS" && allows(request.value("Origin")) &&
         !request.value("Access-Control-Request-Method").empty();
}

CrossOrigin::Headers CrossOrigin::headers(const RequestReader& request) const {
  if (origins_.empty()) return {};
  Headers headers;
  // Caches must not give one origin the answer to another one.
  if (!all_) headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.value("Origin");
  if (!allows(origin)) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", all_ ? "*" : std::string(origin));
  headers.emplace_back("Access-Control-Expose-Headers",
                       "X-Tooldecode-Ignored, X-Tooldecode-Readings, X-Tooldecode-Relaxed, "
                       "Retry-After");
  return headers;
}

CrossOrigin::Headers CrossOrigin::preflight_headers(const RequestReader& request,
                                                    std::string_view method) {
  // Clients add headers such as X-Stainless-Lang; none of them means anything here.
  const std::string_view asked = request.value("Access-Control-Request-Headers");
  const bool is_plain          = !asked.empty() && is_list_of_names(asked);
  return {{"Access-Control-Allow-Methods", std::string(method)},
          {"Access-Control-Allow-Headers",
           is_plain ? std::string(asked) : "Authorization, Content-Type"},
          {"Access-Control-Max-Age", "600"}};
}

}  // namespace program
