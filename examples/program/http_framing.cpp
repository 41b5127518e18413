#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <tooldecode/text/utf8.hpp>

#include <program/http_framing.hpp>

namespace program {

namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Allows bytes outside ASCII if they are UTF-8, as clients send it.
bool is_field_value(std::string_view text) {
  return tooldecode::text::is_utf8(text) && std::all_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c == '\t' || (byte >= 0x20 && byte != 0x7f);
         });
}

bool is_host(std::string_view text) {
  return is_visible(text) && text.find_first_of("/?#@\\,\"<>") == text.npos;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// Reads at most 15 digits, so that sums cannot overflow.
bool read_number(std::string_view digits, int base, std::size_t& number) {
  constexpr std::size_t max_digits = 15;
  if (digits.empty() || digits.size() > max_digits || digits.front() == '-') return false;
  std::uint64_t value     = 0;
  const char* const end   = digits.data() + digits.size();
  const auto [last, what] = std::from_chars(digits.data(), end, value, base);
  number                  = static_cast<std::size_t>(value);
  return what == std::errc() && last == end;
}

}  // namespace

std::size_t RequestReader::push(std::string_view bytes) {
  const bool was_head = is_at_head();
  std::size_t taken   = 0;
  while (taken < bytes.size() && (state_ == State::head || state_ == State::body)) {
    if (was_head && !is_at_head()) break;
    if (part_ == Part::body || part_ == Part::chunk) {
      const std::size_t count = std::min(left_, bytes.size() - taken);
      take_body(bytes.substr(taken, count));
      taken += count;
      continue;
    }
    const char c = bytes[taken++];
    if (is_at_head() && ++head_bytes_ > limits_.head_bytes) {
      refuse(431, "the head of the request is too large");
    } else if (!is_at_head() && ++trailer_bytes_ > limits_.head_bytes + 32 * body_.size()) {
      refuse(431, "the chunks' sizes and trailers are too large");
    } else if (c != '\n') {
      line_ += c;
    } else if (line_.empty() || line_.back() != '\r') {
      refuse(400, "a line does not end as it must");
    } else {
      line_.pop_back();
      end_line();
      line_.clear();
    }
  }
  return taken;
}

void RequestReader::drop_body() {
  if (state_ == State::body) state_ = State::whole;
}

std::string_view RequestReader::value(std::string_view name) const {
  for (const Field& field : fields_) {
    if (is_same(field.first, name)) return field.second;
  }
  return {};
}

bool RequestReader::has_value(std::string_view name, std::string_view value) const {
  for (const Field& field : fields_) {
    if (!is_same(field.first, name)) continue;
    for (std::string_view rest = field.second; !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (is_same(trim(rest.substr(0, end)), value)) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return false;
}

bool RequestReader::keeps_connection() const {
  if (has_value("Connection", "close")) return false;
  return version_ == "HTTP/1.1" || has_value("Connection", "keep-alive");
}

bool RequestReader::expects_continue() const {
  return version_ == "HTTP/1.1" && has_value("Expect", "100-continue");
}

std::string RequestReader::text() const {
  std::string text = method_ + ' ' + target_ + ' ' + version_ + "\r\n";
  for (const Field& field : fields_) {
    // This side sets length and connection itself, and no client waits any more.
    constexpr std::array<std::string_view, 5> dropped{"Content-Length", "Transfer-Encoding",
                                                      "Connection", "Expect", "Trailer"};
    const auto is_it = [&](std::string_view name) { return is_same(field.first, name); };
    if (std::any_of(dropped.begin(), dropped.end(), is_it)) continue;
    text.append(field.first).append(": ").append(field.second).append("\r\n");
  }
  if (has_body() || method_ == "POST") {
    text += "Content-Length: " + std::to_string(body_.size()) + "\r\n";
  }
  text += "\r\n";
  return text + body_;
}

void RequestReader::refuse(int status, const char* problem) {
  state_   = State::refused;
  status_  = status;
  problem_ = problem;
}

void RequestReader::end_line() {
  switch (part_) {
    case Part::request_line:
      if (!line_.empty()) return read_request_line();
      // One empty line before a request is allowed: old clients end a body with it.
      if (head_bytes_ > 2) refuse(400, "the request begins with empty lines");
      return;
    case Part::fields:
      return line_.empty() ? end_head() : read_field();
    case Part::chunk_size:
      return read_chunk_size();
    case Part::chunk_end:
      if (!line_.empty()) return refuse(400, "a chunk does not end where its size says");
      part_ = Part::chunk_size;
      return;
    case Part::trailers:
      if (line_.empty()) {
        state_ = State::whole;
      } else {
        read_field();
      }
      return;
    case Part::body:
    case Part::chunk:
      return;
  }
}

void RequestReader::read_request_line() {
  const std::size_t first = line_.find(' ');
  const std::size_t last  = line_.rfind(' ');
  if (first == line_.npos || first == last) return refuse(400, "the request line is none");
  method_  = line_.substr(0, first);
  target_  = line_.substr(first + 1, last - first - 1);
  version_ = line_.substr(last + 1);
  if (!is_token(method_)) return refuse(400, "the method is none");
  if (target_.empty() || !is_visible(target_)) return refuse(400, "the URL is none");
  if (version_ != "HTTP/1.1" && version_ != "HTTP/1.0") {
    return refuse(400, "the version is neither HTTP/1.1 nor HTTP/1.0");
  }
  part_ = Part::fields;
}

void RequestReader::read_field() {
  const std::string_view line = line_;
  const std::size_t colon     = line.find(':');
  if (line.front() == ' ' || line.front() == '\t') return refuse(400, "a header line is folded");
  if (colon == line.npos || !is_token(line.substr(0, colon))) {
    return refuse(400, "a header line has no proper name before a colon");
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (!is_field_value(value)) return refuse(400, "a header has bytes that no header may have");
  if (part_ == Part::trailers) return;  // trailers are ignored
  if (fields_.size() == limits_.fields) return refuse(431, "the request has too many headers");
  fields_.emplace_back(line.substr(0, colon), value);
}

const std::string* RequestReader::find_only(std::string_view name) {
  const std::string* found = nullptr;
  for (const Field& field : fields_) {
    if (!is_same(field.first, name)) continue;
    if (found != nullptr) refuse(400, "a header that must be there once is repeated");
    found = &field.second;
  }
  return found;
}

void RequestReader::end_head() {
  const std::string* host   = find_only("Host");
  const std::string* length = find_only("Content-Length");
  const std::string* coding = find_only("Transfer-Encoding");
  if (state_ == State::refused) return;
  if (host == nullptr ? version_ == "HTTP/1.1" : !is_host(*host)) {
    return refuse(400, "the header Host is missing or malformed");
  }
  if (!drop_authority(host)) return refuse(400, "the URL names another host than the header Host");
  if (coding != nullptr) {
    if (length != nullptr) return refuse(400, "a length stands beside a transfer coding");
    if (version_ == "HTTP/1.0" || !is_same(*coding, "chunked")) {
      return refuse(400, "the transfer coding is not chunked");
    }
    is_chunked_ = true;
    part_       = Part::chunk_size;
    state_      = State::body;
    return;
  }
  if (length != nullptr && !read_number(*length, 10, length_)) {
    return refuse(400, "the header Content-Length is no length");
  }
  left_  = length_;
  part_  = Part::body;
  state_ = length_ > 0 ? State::body : State::whole;
}

// Clients of proxies send the whole URL (RFC 9112, section 3.2.2). Only one host may be named, so that
// a check of the header checks the URL.
bool RequestReader::drop_authority(const std::string* host) {
  constexpr std::string_view scheme = "http://";
  const std::string_view target     = target_;
  if (!is_same(target.substr(0, scheme.size()), scheme)) return true;
  const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
  const std::string_view authority = target.substr(scheme.size(), end - scheme.size());
  if (host == nullptr || !is_same(authority, *host)) return false;
  const std::string path(target.substr(end));
  target_ = path.starts_with('/') ? path : "/" + path;
  return true;
}

void RequestReader::read_chunk_size() {
  const std::string_view line = line_;
  const std::size_t end       = std::min(line.find(';'), line.size());
  if (!read_number(line.substr(0, end), 16, left_)) {
    return refuse(400, "the size of a chunk is no number");
  }
  if (!is_field_value(line.substr(end))) {
    return refuse(400, "a chunk's extension has bytes that none may have");
  }
  part_ = left_ > 0 ? Part::chunk : Part::trailers;
}

void RequestReader::take_body(std::string_view bytes) {
  if (length_ > limits_.body_bytes || bytes.size() > limits_.body_bytes - body_.size() ||
      left_ > limits_.body_bytes - body_.size()) {
    return refuse(413, "the body is too large");
  }
  body_ += bytes;
  left_ -= bytes.size();
  if (left_ > 0) return;
  if (is_chunked_) {
    part_ = Part::chunk_end;
  } else {
    state_ = State::whole;
  }
}

}  // namespace program
