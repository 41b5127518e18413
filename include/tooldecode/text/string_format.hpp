/// \file
/// string_format: the texts of JSON Schema's formats, as automata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

namespace detail {

// The grammars of the RFCs as patterns, each written out of smaller ones.
class FormatPatterns {
 public:
  // The pattern that a whole text matches; empty where the format is not known.
  [[nodiscard]] static std::string of(std::string_view format);

 private:
  // RFC 3339, section 5.6; the 29th of February is that of the Gregorian leap years, of which 0000
  // is one.
  static std::string date();
  static std::string clock();
  static std::string zone() { return "(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"; }
  // Which leap seconds, by their local date: that of UTC, or the next.
  enum class LeapDay : std::uint8_t { same, next, any };
  // A leap second is 23:59:60 of UTC. Offsets are whole quarters of an hour, as those of all zones
  // since there have been leap seconds: one state remembers the local time of each.
  static std::string leap_second(LeapDay day);
  static std::string time();
  // A date has leap seconds at the end of June or December of UTC.
  static std::string date_time();
  // RFC 3339, appendix A.
  static std::string duration();

  static std::string ipv4();
  // RFC 3986, section 3.2.2, which is RFC 4291, section 2.2.
  static std::string ipv6();
  // RFC 1123, section 2.1. Labels with `--` in the third and fourth place are left to IDNA, whose
  // Punycode no automaton can check.
  static std::string hostname();
  // RFC 5321, section 4.1.2, `Mailbox`.
  static std::string email();

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
  // RFC 6901, section 3.
  static std::string pointer() { return "(?:/(?:[^~/]|~[01])*)*"; }
};

}  // namespace detail

/// Whether JSON Schema defines a format of this name; others are annotations.
[[nodiscard]] bool is_standard_format(std::string_view name);

/// The texts of a format, made once for the whole process; null for one that is not known, or that
/// no automaton can tell
/// (`regex`, `idn-email`, `idn-hostname`).
///
/// What the RFCs say beside their grammars of total lengths (a host name's 253 characters) is left
/// to maxLength. Host names hold no label with `--` in its third and fourth place, so no Punycode.
/// The second 60 is that of 23:59 UTC, in dates at the end of June or December, where the offset is
/// one of whole quarters of an hour.
///
/// \par Complexity  a pattern's compilation at the first use of a format (5 ms for `date-time`,
///                  whose leap seconds have a state for each offset), charged to no BuildBudget
/// \par Threads     may run concurrently
/// \par Source      JSON Schema 2020-12, validation, section 7.3; RFC 3339, 5321, 1123, 2673, 4291,
///                  3986, 3987, 4122, 6570 and 6901
[[nodiscard]] std::shared_ptr<const TextDfa> string_format(std::string_view name);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/string_format.ipp>
#endif
