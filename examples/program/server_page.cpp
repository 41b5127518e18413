#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <program/fields.hpp>
#include <program/json.hpp>
#include <program/server_page.hpp>

namespace program {

namespace {

std::string as_html(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

// A word of a POSIX shell.
std::string as_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string command(const ServerFacts& facts) {
  const Json body{{"model", facts.model},
                  {"messages", Json::array({{{"role", "user"}, {"content", "Hello!"}}})}};
  return "curl " + as_word(facts.url + "/v1/chat/completions") +
         " -H 'Content-Type: application/json' \\\n" +
         (facts.needs_key ? "  -H 'Authorization: Bearer YOUR_KEY' \\\n" : "") + "  -d " +
         as_word(json_text(body));
}

}  // namespace

bool is_plain_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-_:[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string write_server_page(const ServerFacts& facts) {
  const std::map<std::string, std::string, std::less<>> values{
      {"model", facts.model},
      {"format", facts.format},
      {"context", std::to_string(facts.context)},
      {"key", facts.needs_key ? "needed" : "none"},
      {"guarded", facts.needs_key ? " (needs the key)" : ""},
      {"url", facts.url},
      {"command", command(facts)}};
  std::string page;
  std::string_view rest = server_page;
  for (std::size_t brace = rest.find('{'); brace != rest.npos; brace = rest.find('{')) {
    page += rest.substr(0, brace);
    rest.remove_prefix(brace);
    const std::size_t end = rest.find('}');
    const auto value      = end == rest.npos ? values.end() : values.find(rest.substr(1, end - 1));
    page += value == values.end() ? "{" : as_html(value->second);
    rest.remove_prefix(value == values.end() ? 1 : end + 1);
  }
  return page += rest;
}

}  // namespace program
