/// \file
/// string_format: the texts of JSON Schema's formats, as automata.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

namespace detail {

// The RFC grammars as patterns, composed of smaller ones.
class FormatPatterns {
 public:
  // The pattern for a whole text; empty for an unknown format.
  [[nodiscard]] static std::string of(std::string_view format);

 private:
  // RFC 3339, section 5.6. February 29 exists in Gregorian leap years, including 0000.
  static std::string date();
  static std::string clock();
  static std::string zone() { return "(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"; }
  // Which leap seconds, by local date: the UTC date, or the next day.
  enum class LeapDay : std::uint8_t { same, next, any };
  // A leap second is 23:59:60 UTC. Offsets are multiples of 15 minutes, as in all zones since leap
  // seconds exist; one state stores the local time of each.
  static std::string leap_second(LeapDay day);
  static std::string time();
  // Leap seconds occur only at the end of June or December, UTC.
  static std::string date_time();
  // RFC 3339, appendix A.
  static std::string duration();

  static std::string ipv4();
  // RFC 3986, section 3.2.2, and RFC 4291, section 2.2.
  static std::string ipv6();
  // RFC 1123, section 2.1. RFC 5890 reserves labels with `--` in the third and fourth place; those
  // that begin with `xn--` are IDNA's. The total length is not limited, because an automaton would
  // need a state for each length of the text and of its last label.
  static std::string hostname() { return separated(host_label() + '|' + a_label()); }
  static std::string host_label();
  // RFC 5890, section 2.3.2.1, without a check of the Punycode's value. It has three characters or
  // more after the last hyphen: fewer decode to code points below those of the first letters that
  // IDNA allows.
  static std::string a_label();
  static std::string separated(const std::string& label);
  // RFC 5321, section 4.1.2, `Mailbox`.
  static std::string email();
  // RFC 5890, section 2.3.2.1: U-labels of letters that are stable, compose with no other, and need
  // no context, so short that their Punycode is no longer than a label.
  static std::string u_label();
  static std::string idn_hostname() { return separated(host_label() + '|' + u_label()); }
  // RFC 6531, section 3.3.
  static std::string idn_email();

  struct Reference {
    bool international = false;
    bool relative      = false;
  };
  // RFC 3987, section 2.2: `ucschar` and `iprivate`.
  static std::string ucschar();
  static std::string iprivate();
  // RFC 3986, appendix A.
  static std::string reference(const Reference& kind);
  // RFC 6570, section 2, with the operators that it reserves.
  static std::string uri_template();
  // ECMA-262, section 22.2.1, in Unicode mode.
  static std::string regex();
  // Alternatives whose groups nest so deeply at most.
  static std::string disjunction(int groups, int lookaheads);
  static std::string regex_class(const std::string& escape);
  static std::string quantifier();

  // RFC 6901, section 3.
  static std::string pointer() { return "(?:/(?:[^~/]|~[01])*)*"; }
};

}  // namespace detail

/// Whether JSON Schema defines this format; other formats are annotations.
[[nodiscard]] bool is_standard_format(std::string_view name);

/// Whether `string_format` has a part of a format's texts, because no automaton has all of them.
[[nodiscard]] bool is_partial_format(std::string_view name);

/// The texts of a format, built once per process; null for an unknown format.
///
/// Partial are:
///
/// - `regex`: groups three deep; no names, references, look-behind and flags; counts up to 9999, of
///   which the greater one has more digits where both have more than two; in classes, ranges of
///   digits, of letters from `a` or `A` or up to `z` or `Z`, and the most usual others
/// - `idn-hostname` and `idn-email`: labels beyond ASCII have up to 14 characters, which are
///   letters of Latin-1, Greek, Cyrillic, Han, Kana and Hangul, digits and hyphens
///
/// Total length limits in the RFCs (253 characters for a host name) are left to maxLength. Host
/// names have no label with `--` in the third and fourth place, so no Punycode. Second 60 is
/// allowed only at 23:59 UTC, with an offset of a multiple of 15 minutes, and in dates only at the
/// end of June or December.
///
/// \par Complexity  a pattern compilation at the first use of a format (5 ms for `date-time`, whose
///                  leap seconds have a state for each offset), charged to no BuildBudget
/// \par Threads     may run concurrently
/// \par Source      JSON Schema 2020-12, validation, section 7.3; RFC 3339, 5321, 1123, 2673, 4291,
///                  3986, 3987, 4122, 5890, 6531, 6570 and 6901; ECMA-262, section 22.2.1
[[nodiscard]] std::shared_ptr<const TextDfa> string_format(std::string_view name);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/string_format.ipp>
#endif
