// Where HTTP requests end: one reading of each, or none.
#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <program/http_framing.hpp>
#include <support/catch.hpp>

using program::RequestReader;
using State = RequestReader::State;

namespace {

constexpr program::RequestLimits limits{.head_bytes = 400, .body_bytes = 40, .fields = 6};

// What was read from bytes in pieces of random sizes, and the rest of them.
struct Read {
  RequestReader request{limits};
  std::string rest;
};
Read read(std::string_view bytes, std::mt19937* random = nullptr) {
  Read result;
  std::size_t at = 0;
  for (std::size_t piece = bytes.size(); at < bytes.size();) {
    if (random != nullptr) piece = 1 + (*random)() % 7;
    std::size_t left = std::min(piece, bytes.size() - at);
    while (left > 0) {
      const std::size_t taken = result.request.push(bytes.substr(at, left));
      at += taken;
      left -= taken;
      if (taken == 0) {
        result.rest = bytes.substr(at);
        return result;
      }
    }
  }
  return result;
}

std::string post(const std::string& fields, const std::string& body = "") {
  return "POST /a HTTP/1.1\r\n" + fields + "\r\n" + body;
}
std::string hosted(const std::string& fields, const std::string& body = "") {
  return post("Host: a\r\n" + fields, body);
}
std::string chunked(const std::string& body) {
  return hosted("Transfer-Encoding: chunked\r\n", body);
}

}  // namespace

TEST_CASE("RequestReader reads a request with a length, and nothing after it") {
  const auto [request, rest] =
      read(hosted("Content-Length: 3\r\nX-Note: \t caf\xC3\xA9 \r\n", "abcGET /hidden"));
  REQUIRE(request.state() == State::whole);
  CHECK(rest == "GET /hidden");
  CHECK(request.method() == "POST");
  CHECK(request.target() == "/a");
  CHECK(request.value("x-note") == "caf\xC3\xA9");
  CHECK(request.text() ==
        "POST /a HTTP/1.1\r\nHost: a\r\nX-Note: caf\xC3\xA9\r\nContent-Length: 3\r\n\r\nabc");
}

TEST_CASE("RequestReader writes a body in chunks as one with a length") {
  const auto [request, rest] =
      read(chunked("3;note=\"x\"\r\nabc\r\n0A\r\n0123456789\r\n000\r\nX-Trailer: y\r\n\r\nGET"));
  REQUIRE(request.state() == State::whole);
  CHECK(rest == "GET");
  CHECK(request.text() == "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\nabc0123456789");
}

TEST_CASE("RequestReader reads the path of a target that is a whole URL of its host") {
  const auto target = [](const std::string& url, const std::string& host = "a:80") {
    const auto [request, rest] = read("GET " + url + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return request.state() == State::whole ? request.target() : std::to_string(request.status());
  };
  CHECK(target("http://a:80/v1/models?x=http://b/") == "/v1/models?x=http://b/");
  CHECK(target("HTTP://A:80/v1") == "/v1");
  CHECK(target("http://a:80") == "/");
  CHECK(target("http://a:80?x") == "/?x");
  CHECK(target("/http://b/") == "/http://b/");
  for (const char* url : {"http://b/v1", "http://a/v1", "http://a:80.b/v1", "http://a:80@b/v1",
                          "http://", "http:///v1", "http://a:80#/v1"}) {
    INFO(url);
    CHECK(target(url) == "400");
  }
  CHECK(read("GET http://a/ HTTP/1.0\r\n\r\n").request.status() == 400);
}

TEST_CASE("RequestReader refuses a request that two readers could read differently") {
  const std::string nul(1, '\0');
  const std::vector<std::string> bad{
      post(""),                        // no host
      post("Host: a\r\nhost: a\r\n"),  // two
      post("Host: a b\r\n"),           // none that may be
      post("Host : a\r\n"),            // space before a colon
      post("\tHost: a\r\n"),           //
      hosted("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      hosted("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"),
      hosted("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"),
      hosted("Content-Length: 3\r\ncontent-length: 3\r\n", "abc"),
      hosted("Content-Length: 3, 3\r\n", "abc"),
      hosted("Content-Length: +3\r\n", "abc"),
      hosted("Content-Length: -3\r\n", "abc"),
      hosted("Content-Length: 1 2\r\n", "abc"),
      hosted("Content-Length: 0x3\r\n", "abc"),
      hosted("Content-Length: 3a\r\n", "abc"),
      hosted("Content-Length:\r\n", "abc"),
      hosted("Content-Length: 18446744073709551619\r\n", "abc"),
      hosted("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
      hosted("Transfer-Encoding: identity\r\n"),
      hosted("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      hosted("Transfer-Encoding: \x0B"
             "chunked\r\n",
             "0\r\n\r\n"),
      hosted("A: b\r\n c\r\n"),
      hosted("A: b\r\n\tc\r\n"),
      hosted("A\r\n"),
      hosted(": b\r\n"),
      hosted("A: " + nul + "\r\n"),
      hosted("A: \xFF\r\n"),
      hosted("A: \x7F\r\n"),
      hosted("A\xC3\xA9: b\r\n"),
      hosted("A: b\rC: d\r\n"),
      hosted("A: b\nC: d\r\n"),
      "POST /a HTTP/1.1\nHost: a\n\n",
      "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /a HTTP/1.2\r\nHost: a\r\n\r\n",
      "POST  /a HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /\xFF HTTP/1.1\r\nHost: a\r\n\r\n",
      "P(ST /a HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /a\r\nHost: a\r\n\r\n",
      " POST /a HTTP/1.1\r\nHost: a\r\n\r\n",
      "\r\n\r\nPOST /a HTTP/1.1\r\nHost: a\r\n\r\n",
      chunked("0x3\r\nabc\r\n0\r\n\r\n"),
      chunked("+3\r\nabc\r\n0\r\n\r\n"),
      chunked("-3\r\nabc\r\n0\r\n\r\n"),
      chunked(" 3\r\nabc\r\n0\r\n\r\n"),
      chunked("3 \r\nabc\r\n0\r\n\r\n"),
      chunked("\r\nabc\r\n0\r\n\r\n"),
      chunked(";a\r\nabc\r\n0\r\n\r\n"),
      chunked("10000000000000003\r\nabc\r\n0\r\n\r\n"),
      chunked("3\nabc\r\n0\r\n\r\n"),
      chunked("3;\x01\r\nabc\r\n0\r\n\r\n"),
      chunked("3\r\nabcd\r\n0\r\n\r\n"),
      chunked("3\r\nabc0\r\n\r\n"),
      chunked("3\r\nabc\r\n0\r\nA : b\r\n\r\n"),
  };
  for (const std::string& bytes : bad) {
    INFO(bytes);
    const auto [request, rest] = read(bytes);
    CHECK(request.state() == State::refused);
    CHECK(request.status() == 400);
    CHECK(std::string_view(request.problem()) != "");
  }
}

TEST_CASE("RequestReader refuses a request that is too large") {
  CHECK(read(hosted("A: " + std::string(500, 'a'))).request.status() == 431);
  CHECK(read(hosted("A: a\r\nA: a\r\nA: a\r\nA: a\r\nA: a\r\nA: a\r\n")).request.status() == 431);
  CHECK(read(hosted("Content-Length: 41\r\n", "a")).request.status() == 413);
  CHECK(read(chunked("28\r\n" + std::string(40, 'a') + "\r\n1\r\na")).request.status() == 413);
  CHECK(read(chunked("fffffffffffffff\r\na")).request.status() == 413);
  CHECK(read(chunked("1;" + std::string(2000, 'a'))).request.status() == 431);
}

TEST_CASE("RequestReader::drop_body ends a request whose body is not wanted") {
  RequestReader request(limits);
  const std::string head = hosted("Content-Length: 99\r\n");
  CHECK(request.push(head + "abc") == head.size());
  CHECK(request.state() == State::body);
  CHECK(request.length() == 99);
  request.drop_body();
  CHECK(request.state() == State::whole);
}

TEST_CASE("RequestReader::keeps_connection says whether another request may follow") {
  const auto keeps = [](const std::string& version, const std::string& fields) {
    return read("GET / HTTP/" + version + "\r\nHost: a\r\n" + fields + "\r\n")
        .request.keeps_connection();
  };
  CHECK(keeps("1.1", ""));
  CHECK_FALSE(keeps("1.1", "Connection: x, Close\r\n"));
  CHECK_FALSE(keeps("1.0", ""));
  CHECK(keeps("1.0", "connection: Keep-Alive\r\n"));
}

TEST_CASE("RequestReader reads any bytes the same in any pieces, and its own text again") {
  std::mt19937 random(1);
  const std::vector<std::string> parts{"POST / HTTP/1.1\r\n",
                                       "GET /a HTTP/1.0\r\n",
                                       "Host: a\r\n",
                                       "Content-Length: 3\r\n",
                                       "\r\n",
                                       "Transfer-Encoding: chunked\r\n",
                                       "3\r\n",
                                       "abc",
                                       "\r\n",
                                       "0\r\n\r\n",
                                       "Content-Length: ",
                                       "5",
                                       ":",
                                       " ",
                                       "\t",
                                       "\n",
                                       "\r",
                                       "x",
                                       "\xFF",
                                       "\r\n\r\n",
                                       "Host: b\r\n",
                                       "A: b\r\n"};
  std::size_t whole = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes = random() % 4 == 0 ? "" : "POST / HTTP/1.1\r\nHost: a\r\n";
    for (auto count = random() % 9; count > 0; --count) bytes += parts[random() % parts.size()];
    const auto [request, rest] = read(bytes);
    const auto [same, left]    = read(bytes, &random);
    const bool is_whole        = request.state() == State::whole;
    if (request.state() != same.state() || request.status() != same.status() ||
        (is_whole && (rest != left || request.text() != same.text()))) {
      FAIL("read differently in pieces: " << bytes);
    }
    if (!is_whole) continue;
    ++whole;
    const auto [again, none] = read(request.text());
    if (again.state() != State::whole || !none.empty() || again.text() != request.text()) {
      FAIL("its own text is read differently: " << bytes);
    }
  }
  CHECK(whole > 1000);
}
