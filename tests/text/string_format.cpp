#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/pattern.hpp>
#include <tooldecode/text/string_format.hpp>
#include <tooldecode/text/utf8.hpp>

#include <arpa/inet.h>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

bool conforms(std::string_view format, std::string_view text) {
  return string_format(format)->accepts(decode_utf8(text));
}

void judge(const std::string& format, const std::vector<const char*>& good,
           const std::vector<const char*>& bad) {
  for (const char* text : good) {
    INFO(format << ": " << text);
    CHECK(conforms(format, text));
  }
  for (const char* text : bad) {
    INFO(format << ": " << text);
    CHECK_FALSE(conforms(format, text));
  }
}

}  // namespace

TEST_CASE("string_format date accepts exactly the days of the calendar") {
  const TextDfa dates = *string_format("date");
  std::size_t wrong   = 0;
  for (const int year : {0, 1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9999}) {
    for (unsigned month = 0; month <= 13; ++month) {
      for (unsigned day = 0; day <= 32; ++day) {
        char text[16];
        std::snprintf(text, sizeof text, "%04d-%02u-%02u", year, month, day);
        const bool is_date =
            std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                        std::chrono::day(day))
                .ok();
        wrong += dates.accepts(decode_utf8(text)) != is_date;
      }
    }
  }
  CHECK(wrong == 0);
  for (const char* other : {"2024-1-01", "20240101", "2024-01-01 ", "+2024-01-01"})
    CHECK_FALSE(conforms("date", other));
}

TEST_CASE(
    "string_format time and date-time accept leap seconds at the end of a UTC day at each offset") {
  const TextDfa times = *string_format("time"), moments = *string_format("date-time");
  std::size_t wrong = 0;
  for (int offset = -1425; offset <= 1425; offset += 15) {
    for (int local = 0; local < 1440; local += 1) {
      if (local % 15 != 14 && local % 7 != 0) continue;
      char text[32];
      const int size = std::abs(offset);
      std::snprintf(text, sizeof text, "%02d:%02d:60%c%02d:%02d", local / 60, local % 60,
                    offset < 0 ? '-' : '+', size / 60, size % 60);
      const int utc      = local - offset;  // minutes of the UTC day; may lie outside it
      const bool is_leap = (utc + 1440) % 1440 == 1439;
      wrong += times.accepts(decode_utf8(text)) != is_leap;
      for (const char* day : {"06-30", "07-01", "12-31", "01-01", "06-29", "03-31"}) {
        const std::string month(day, 2);
        const bool is_last  = month == "06" || month == "12",
                   is_first = month == "07" || month == "01";
        const bool in_place = std::string_view(day) != "06-29" &&
                              ((is_last && utc == 1439) || (is_first && utc == -1));
        wrong += moments.accepts(decode_utf8(std::string("2016-") + day + 'T' + text)) != in_place;
      }
    }
  }
  CHECK(wrong == 0);
  // Few enough that combined formats stay below the limit of states.
  CHECK(times.rows().size() < 2'000);
  CHECK(moments.rows().size() < 2'500);
}

TEST_CASE("string_format ipv4 and ipv6 accept the addresses that inet_pton accepts") {
  const TextDfa four = *string_format("ipv4"), six = *string_format("ipv6");
  const std::vector<std::string> seeds{"192.168.0.1", "255.255.255.255",  "::",
                                       "::1",         "2001:db8::8a2e:1", "1:2:3:4:5:6:7:8",
                                       "1::",         "::ffff:10.0.0.1",  "1:2:3:4:5:6:1.2.3.4"};
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = seeds[random() % seeds.size()];
    for (auto k = random() % 4; k > 0; --k) {
      const std::size_t at = random() % text.size();
      const char c         = "0123456789abFg:.:"[random() % 17];
      random() % 2 ? void(text[at] = c) : void(text.insert(at, 1, c));
    }
    unsigned char address[16];
    const bool is_four = inet_pton(AF_INET, text.c_str(), address) == 1;
    const bool is_six  = inet_pton(AF_INET6, text.c_str(), address) == 1;
    INFO("seed 4, " << text);
    REQUIRE(four.accepts(decode_utf8(text)) == is_four);
    REQUIRE(six.accepts(decode_utf8(text)) == is_six);
  }
}

TEST_CASE("string_format accepts and rejects the examples of each format as its RFC does") {
  struct Case {
    const char* format;
    std::vector<const char*> good, bad;
  };
  const Case cases[] = {
      {"time",
       {"08:30:06.283185Z", "08:30:06z", "23:59:59-23:59", "23:59:60Z", "23:59:60.5+00:00",
        "23:59:60-00:00", "01:29:60+01:30", "23:29:60+23:30", "15:59:60-08:00", "00:29:60-23:30",
        "08:59:60.123+09:00", "05:44:60+05:45", "23:59:60z"},
       {"08:30", "08:30:06", "24:00:00Z", "00:60:00Z", "00:00:60Z", "22:59:60Z", "23:59:60+01:00",
        "23:59:60+00:30", "23:59:60-01:00", "23:59:60-00:30", "15:59:60+08:00", "23:59:61Z",
        "07:59:60-08:00", "00:59:60Z", "00:00:00+24:00", "00:00:00.Z", "12:00:00+00:0"}},
      {"date-time",
       {"1963-06-19T08:30:06.283185Z", "1963-06-19t08:30:06z", "2024-02-29T00:00:00+14:00",
        "1998-12-31T23:59:60Z", "1998-12-31T15:59:60.123-08:00", "1990-12-31T15:59:60-08:00",
        "1999-01-01T08:59:60+09:00", "1972-07-01T05:29:60.5+05:30", "0000-02-29T00:00:00Z"},
       {"1963-06-19 08:30:06Z", "2023-02-29T00:00:00Z", "1998-12-30T23:59:60Z",
        "1998-12-31T23:59:60+01:00", "1998-12-31T08:59:60+09:00", "1999-01-01T15:59:60-08:00",
        "1999-01-01T23:59:60Z", "1998-12-31T23:58:60Z", "1998-12-31T22:59:60Z",
        "1900-02-29T00:00:00Z", "2024-366T01:01:01Z", "1963-06-19T08:30:06",
        "06/19/1963 08:30:06 PST"}},
      {"duration",
       {"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P2W", "P1YT1S"},
       {"PT1D", "P", "P1YT", "PT", "P2D1Y", "P1D2H", "P2S", "P1Y2W", "1Y", "P1", "P1Y1D", "-P1D"}},
      {"email",
       {"joe.bloggs@example.com", "te~st@example.com", "\"joe bloggs\"@example.com", "a@b",
        "\"joe@bloggs\"@example.com", "joe.bloggs@[127.0.0.1]", "joe.bloggs@[IPv6:::1]"},
       {"2962", ".test@example.com", "test.@example.com", "te..st@example.com", "a@", "@b",
        "joe.bloggs@invalid=domain.com", "joe.bloggs@[127.0.0.300]", "a b@c", "a@-b"}},
      {"hostname",
       {"www.example.com", "a", "1host", "a-b.c", "host-name", "xn--ihqwcrb4cv8a8dqg056pqjye",
        "xn--4gbwdl.xn--wgbh1c", "XN--BCHER-KVA.de", "a.xn--tda.b", "xn--zca29lwxobi7a"},
       {"", "-a", "a-", "a..b", ".a", "a.", "a_b", "not_a_valid_host_name", "ab--c", "a b", "xn--",
        "xn--X", "xn--ab", "xn--abc-", "xn---abc", "XN--aa---o47jg78q", "yn--abc"}},
      {"uri",
       {"http://foo.bar/?baz=qux#quux", "http://foo.com/blah_(wikipedia)_blah#cite-1", "a:",
        "http://foo.bar/?q=Test%20URL-encoded%20stuff", "http://-.~_!$&'()*+,;=:%40:80@x.com:1",
        "ftp://ftp.is.co.za/rfc/rfc1808.txt", "ldap://[2001:db8::7]/c=GB?objectClass?one",
        "mailto:John.Doe@example.com", "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
        "tel:+1-816-555-1212", "http://[v1.x:]/"},
       {"//foo.bar/?baz=qux#quux", "/abc", "\\\\WINDOWS\\fileshare", "abc", "", "http:// x.com",
        "http://foo.bar?q=a b", ":// should fail", "bar,baz:foo", "https://[@example.org/t",
        "https://example.org/foobar\\.txt", "https://example.org/%4", "http://x:8a/",
        "http://[::g]/", "http://a/\xC3\xA9", "http://a/\"", "http://a/{b}"}},
      {"uri-reference",
       {"//foo.bar/?baz=qux#quux", "/abc", "abc", "#fragment", "", "a/b:c", "./a:b", "http://x"},
       {"\\\\WINDOWS\\fileshare", "#frag\\ment", "a b", "1:b", "%"}},
      {"iri",
       {"http://\xC6\x92\xC3\xB8\xC3\xB8.\xC3\x9F/?\xE2\x88\x82=\xCF\x80#\xCF\x80", "http://x/"},
       {"/abc", "http://\xEF\xBF\xBF/", "http://x/ y"}},
      {"iri-reference", {"/\xC3\xA9", "#\xC6\x92r\xC3\xA4gment", ""}, {"#\xC6\x92r\\", " "}},
      {"uri-template",
       {"http://example.com/dictionary/{term:1}/{term}", "{+path}/here", "{?x,y*}", "{x.y}", "",
        "{=x}", "{,x}", "{!x}", "{@x}", "{|x*}"},
       {"http://example.com/{term:1}/{term", "{", "{}", "{x:0}", "{x,}", "}", "{=}", "{==x}",
        "{$x}", "a b", "{x"}},
      {"uuid",
       {"2EB8AA08-AA98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"},
       {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
        "2eb8aa08-aa98-11ea-b4ga-73b441d16380", "2eb8aa08-aa98-11ea-b4aa73b441d16380-"}},
      {"json-pointer",
       {"/foo/bar~0/baz~1/%a", "", "/", "/foo//bar", "/foo/-", "/~01", "/ "},
       {"/foo/bar~", "/~2", "a", "#/a", "/~~", "/~0~"}},
      {"relative-json-pointer",
       {"1", "0/foo/bar", "2/0/baz/1/zip", "0#", "120/"},
       {"/foo/bar", "-1/a", "+1/a", "0##", "01/a", "", "0#/a"}},
  };
  for (const auto& [format, good, bad] : cases) {
    CHECK(is_standard_format(format));
    judge(format, good, bad);
  }
  CHECK(conforms("hostname", std::string(63, 'a') + ".b"));
  CHECK_FALSE(conforms("hostname", std::string(64, 'a') + ".b"));
  CHECK(conforms("hostname", "xn--" + std::string(59, 'a') + ".b"));
  CHECK_FALSE(conforms("hostname", "xn--" + std::string(60, 'a') + ".b"));
}

TEST_CASE(
    "string_format of a partial format accepts only texts of the format, and the usual ones") {
  struct Case {
    const char* format;
    std::vector<const char*> good, bad;
  };
  const std::vector<Case> cases{
      {"regex",
       {"", "a|b|", "^[a-z_][\\w-]*$", "^(?=.*\\d)(?!x)(a(?:b(c{2,12})?)+)*?$", "\\p{Lu}\\u00e9\\/",
        "^(0|[1-9]\\d*)\\.\\d{1,}$", "[^-\\]a]{3}", "x{10,15}y{99,100}?", "[0-9-_.]", "[\\b]\\b."},
       {"(",          ")",
        "a)",         "[",
        "[]",         "[b-a]",
        "[\\w-z]",    "*",
        "a**",        "^*",
        "(?=a)*",     "\\",
        "\\q",        "\\1",
        "(?<n>a)",    "a{2,1}",
        "a{15,10}",   "{",
        "a{",         "}",
        "]",          "(?:(?:(?:(?:a))))",
        "x{100,200}", "\\u{1}",
        "\\ud800",    "[9-0]",
        "a+++"}},
      {"idn-hostname",
       {"example.com",
        "b\xC3\xBC"
        "cher.de",
        "\xE6\x97\xA5\xE6\x9C\xAC.jp", "\xED\x95\x9C"},
       {"", "-a", "\xC3\xBC-", "a..b", "xn--a",
        "B\xC3\xBC"
        "cher.de",
        "\xEF\xAC\x81", "a b",
        "\xD0\xB0\xD0\xB1\xD0\xB2\xD0\xB3\xD0\xB4\xD0\xB5\xD0\xB6\xD0\xB7\xD0\xB8\xD0\xB9\xD0\xBA"
        "\xD0\xBB\xD0\xBC\xD0\xBD\xD0\xBE"}},
      {"idn-email",
       {"a.b@example.com", "\xEC\x8B\xA4\xEB\xA1\x80@\xEC\x8B\xA4\xEB\xA1\x80.\xED\x85\x8C",
        "\"\xC3\xA9 @\"@[127.0.0.1]"},
       {"a", "@b", "a@", "a@b@c", "a@-b", ".a@b", "\xC3\xA9@\xEF\xAC\x81"}},
  };
  for (const auto& [format, good, bad] : cases) {
    CHECK(is_partial_format(format));
    CHECK(is_standard_format(format));
    judge(format, good, bad);
  }
  CHECK_FALSE(is_partial_format("email"));
}

TEST_CASE("string_format regex accepts only texts that are read as patterns") {
  const unsigned seed = 20'261'127;
  std::mt19937 random(seed);
  const auto draw      = [&](std::size_t below) { return random() % below; };
  const TextDfa& texts = *string_format("regex");
  INFO("seed " << seed);
  std::size_t whole = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    TextDfa::State at = 0;
    for (std::size_t left = 1 + draw(24); left > 0; --left) {
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < texts.classes().size(); ++i) {
        if (texts.rows()[at].next[i] != TextDfa::dead) open.push_back(i);
      }
      const std::size_t chosen = open[draw(open.size())];
      const auto& ranges       = texts.classes()[chosen].ranges();
      append_utf8(text, ranges[draw(ranges.size())].first);
      at = texts.rows()[at].next[chosen];
      if (!texts.rows()[at].accepting) continue;
      INFO(text);
      CHECK_NOTHROW(Pattern(text));
      ++whole;
    }
  }
  CHECK(whole > 1000);
}

TEST_CASE("string_format returns nothing for unknown formats") {
  for (const char* name : {"", "url", "color", "Date"}) {
    CHECK_FALSE(is_standard_format(name));
    CHECK_FALSE(string_format(name));
  }
}
