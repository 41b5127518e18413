/// \file
/// The page at the root of the server.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace program {

/// The page with names in braces in the places of a ServerFacts.
extern const char* const server_page;

/// What the page says of a server.
struct ServerFacts {
  std::string model;
  std::string format;
  std::size_t context = 0;      ///< tokens
  bool needs_key      = false;  ///< whether requests need an API key
  std::string url;              ///< without a path
};

/// Whether a Host header is a host and perhaps a port, without any other text.
bool is_plain_host(std::string_view host);

std::string write_server_page(const ServerFacts& facts);

}  // namespace program
