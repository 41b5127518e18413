#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_format.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE std::string FormatPatterns::of(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return date_time();
  if (format == "duration") return duration();
  if (format == "email") return email();
  if (format == "hostname") return hostname();
  if (format == "idn-email") return idn_email();
  if (format == "idn-hostname") return idn_hostname();
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "uri") return reference({});
  if (format == "uri-reference") return reference({.relative = true});
  if (format == "iri") return reference({.international = true});
  if (format == "iri-reference") return reference({.international = true, .relative = true});
  if (format == "uri-template") return uri_template();
  if (format == "uuid") return "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}";
  if (format == "regex") return regex();
  if (format == "json-pointer") return pointer();
  if (format == "relative-json-pointer") return "(?:0|[1-9][0-9]*)(?:#|" + pointer() + ")";
  return {};
}

TOOLDECODE_INLINE std::string FormatPatterns::date() {
  return "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])"
         "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))"
         "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
}

TOOLDECODE_INLINE std::string FormatPatterns::clock() {
  return "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?";
}

TOOLDECODE_INLINE std::string FormatPatterns::leap_second(LeapDay day) {
  const auto two = [](int number) {
    return std::string{static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
  };
  const auto clock_of = [&](int minutes) { return two(minutes / 60) + ':' + two(minutes % 60); };
  constexpr int whole_day = 24 * 60, last = whole_day - 1;
  std::array<std::string, 24> hours;
  for (int offset = 0; offset < whole_day; offset += 15) {
    // The local time for this offset before UTC, and the offset after UTC with the same local time.
    const int local = last - offset, ahead = offset == 0 ? 0 : whole_day - offset;
    std::string zones;
    if (day != LeapDay::next) zones += "|-" + clock_of(offset);
    if (day != LeapDay::next && offset == 0) zones += "|[Zz]|\\+00:00";
    if (day != LeapDay::same && ahead != 0) zones += "|\\+" + clock_of(ahead);
    if (zones.empty()) continue;
    std::string& hour = hours[static_cast<std::size_t>(local / 60)];
    hour.append("|").append(two(local % 60)).append(":60(?:\\.\\d+)?(?:");
    hour.append(zones, 1).append(")");
  }
  std::string all;
  for (int hour = 0; hour < 24; ++hour) {
    all.append("|").append(two(hour)).append(":(?:");
    all.append(hours[static_cast<std::size_t>(hour)], 1).append(")");
  }
  return "(?:" + all.substr(1) + ')';
}

TOOLDECODE_INLINE std::string FormatPatterns::time() {
  return clock() + zone() + '|' + leap_second(LeapDay::any);
}

TOOLDECODE_INLINE std::string FormatPatterns::date_time() {
  return date() + "[Tt]" + clock() + zone() + "|\\d{4}-(?:(?:06-30|12-31)[Tt]" +
         leap_second(LeapDay::same) + "|(?:07-01|01-01)[Tt]" + leap_second(LeapDay::next) + ')';
}

TOOLDECODE_INLINE std::string FormatPatterns::duration() {
  const std::string days  = "(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)";
  const std::string clock = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)";
  return "P(?:" + days + "(?:" + clock + ")?|" + clock + "|\\d+W)";
}

TOOLDECODE_INLINE std::string FormatPatterns::ipv4() {
  const std::string octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return "(?:" + octet + "\\.){3}" + octet;
}

TOOLDECODE_INLINE std::string FormatPatterns::ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}",
                    last  = "(?:" + group + ':' + group + '|' + ipv4() + ')';
  std::string all         = "(?:(?:" + group + ":){6}" + last;
  // After `::` follow six groups less one, two, ...; before it as many as are left.
  for (int before = 0; before <= 7; ++before) {
    all += "|(?:" +
           (before == 0 ? "" : "(?:" + group + ":){0," + std::to_string(before - 1) + '}' + group) +
           ")?::";
    if (before <= 4) all += "(?:" + group + ":){" + std::to_string(5 - before) + '}';
    if (before <= 5) all += last;
    if (before == 6) all += group;
  }
  return all + ')';
}

TOOLDECODE_INLINE std::string FormatPatterns::host_label() {
  return "(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
}

TOOLDECODE_INLINE std::string FormatPatterns::a_label() {
  return "[Xx][Nn]--(?!..--)(?:[A-Za-z0-9][A-Za-z0-9-]{0,55})?[A-Za-z0-9]{3}";
}

TOOLDECODE_INLINE std::string FormatPatterns::separated(const std::string& label) {
  return "(?:" + label + ")(?:\\.(?:" + label + "))*";
}

TOOLDECODE_INLINE std::string FormatPatterns::u_label() {
  const std::string letters =
      "a-z0-9\\u00DF-\\u00F6\\u00F8-\\u00FF\\u03AC-\\u03CE\\u0430-\\u045F\\u3041-\\u3094\\u30A1-\\u30FA"
      "\\u4E00-\\u9FA5\\uAC00-\\uD7A3";
  return "(?!..--)[" + letters + "](?:[" + letters + "-]{0,12}[" + letters + "])?";
}

TOOLDECODE_INLINE std::string FormatPatterns::idn_email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u0080-\\u{10FFFF}-]+";
  const std::string local =
      atom + "(?:\\." + atom + ")*|\"(?:[ !#-\\[\\]-~\\u0080-\\u{10FFFF}]|\\\\[ -~])*\"";
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?|" + u_label();
  return "(?:" + local + ")@(?:" + separated(label) + "|\\[(?:" + ipv4() + "|IPv6:" + ipv6() +
         ")\\])";
}

TOOLDECODE_INLINE std::string FormatPatterns::quantifier() {
  std::string counts;
  const auto digit = [](char c) { return std::string(1, c); };
  for (char low = '0'; low <= '9'; ++low) {
    counts += digit(low) + "(?:,(?:[" + low + "-9]|[1-9]\\d{1,3})?)?|";
  }
  for (char ten = '1'; ten <= '9'; ++ten) {
    const std::string more =
        "[1-9]\\d{2,3}" + (ten < '9' ? "|[" + digit(static_cast<char>(ten + 1)) + "-9]\\d" : "");
    counts += digit(ten) + "(?:";
    for (char one = '0'; one <= '9'; ++one) {
      counts += digit(one) + "(?:,(?:" + more + '|' + ten + '[' + one + "-9])?)?|";
    }
    counts.back() = ')';
    counts += '|';
  }
  return "(?:[*+?]|\\{(?:" + counts + "[1-9]\\d{2}(?:,(?:[1-9]\\d{3})?)?|[1-9]\\d{3},?)\\})\\??";
}

TOOLDECODE_INLINE std::string FormatPatterns::regex_class(const std::string& escape) {
  std::string ranges = "[ !]-~|a-[b-z]|A-[B-Z]|[b-y]-z|[B-Y]-Z|\\\\u4[eE]00-\\\\u9[fF][aA]5";
  for (char low = '0'; low <= '8'; ++low) {
    ranges += std::string("|") + low + "-[" + static_cast<char>(low + 1) + "-9]";
  }
  const std::string one = "(?:(?:" + ranges + ")-?|[^\\^\\[\\]\\\\-]|\\\\[b-]|" + escape + ')';
  return "\\[\\^?(?:-|" + one + ")(?:\\^|" + one + ")*-?\\]";
}

TOOLDECODE_INLINE std::string FormatPatterns::disjunction(int groups, int lookaheads) {
  const std::string escape =
      "\\\\(?:[dDwWsSfnrtv^$\\\\.*+?()[\\]{}|/]|x[0-9A-Fa-f]{2}"
      "|u(?:[0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|[dD][0-7][0-9A-Fa-f]{2})"
      "|[pP]\\{(?:L[ulotm]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)\\})";
  std::string atom = "[^\\^$\\\\.*+?()[\\]{}|]|\\.|" + escape + '|' + regex_class(escape);
  if (groups > 0) atom += "|\\((?:\\?:)?" + disjunction(groups - 1, lookaheads - 1) + "\\)";
  std::string all = "(?:(?:" + atom + ")(?:" + quantifier() + ")?|[\\^$|]|\\\\[bB]";
  if (lookaheads > 0) all += "|\\(\\?[=!]" + disjunction(1, 0) + "\\)";
  return all + ")*";
}

TOOLDECODE_INLINE std::string FormatPatterns::regex() {
  return disjunction(3, 2);
}

TOOLDECODE_INLINE std::string FormatPatterns::email() {
  const std::string atom   = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string local  = atom + "(?:\\." + atom + ")*|\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\"";
  const std::string label  = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
  const std::string domain = label + "(?:\\." + label + ")*";
  return "(?:" + local + ")@(?:" + domain + "|\\[(?:" + ipv4() + "|IPv6:" + ipv6() + ")\\])";
}

TOOLDECODE_INLINE std::string FormatPatterns::ucschar() {
  std::string all = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF";
  for (const char plane : std::string("123456789ABCD")) {
    all += std::string("\\u{") + plane + "0000}-\\u{" + plane + "FFFD}";
  }
  return all + "\\u{E1000}-\\u{EFFFD}";
}

TOOLDECODE_INLINE std::string FormatPatterns::iprivate() {
  return "\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
}

TOOLDECODE_INLINE std::string FormatPatterns::reference(const Reference& kind) {
  const std::string letters = "-A-Za-z0-9._~!$&'()*+,;=" + (kind.international ? ucschar() : "");
  const std::string escaped = "%[0-9A-Fa-f]{2}";
  const auto any_of         = [&](const std::string& more) {
    return "(?:[" + letters + more + "]|" + escaped + ")";
  };
  const std::string segment  = any_of(":@") + '*';
  const std::string segments = "(?:/" + segment + ")*";
  const std::string literal =
      "\\[(?:" + ipv6() + "|[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]";
  const std::string network =
      "//(?:" + any_of(":") + "*@)?(?:" + literal + '|' + any_of("") + "*)(?::\\d*)?" + segments;
  const std::string absolute = "/(?:" + any_of(":@") + '+' + segments + ")?";
  const std::string query    = "(?:\\?" + any_of(":@/?" + (kind.international ? iprivate() : "")) +
                            "*)?(?:#" + any_of(":@/?") + "*)?";
  const auto path = [&](const std::string& first) {
    return "(?:" + network + '|' + absolute + "|(?:" + first + '+' + segments + ")?)" + query;
  };
  const std::string full = "[A-Za-z][A-Za-z0-9+.-]*:" + path(any_of(":@"));
  return kind.relative ? full + '|' + path(any_of("@")) : full;
}

TOOLDECODE_INLINE std::string FormatPatterns::uri_template() {
  const std::string escaped = "%[0-9A-Fa-f]{2}";
  const std::string letter  = "(?:[A-Za-z0-9_]|" + escaped + ')';
  const std::string name    = letter + "(?:\\.?" + letter + ")*(?::[1-9]\\d{0,3}|\\*)?";
  return "(?:[!#$&(-;=?-\\[\\]_a-z~" + ucschar() + iprivate() + "]|" + escaped +
         "|\\{[+#./;?&=,!@|]?" + name + "(?:," + name + ")*\\})*";
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE bool is_standard_format(std::string_view name) {
  static constexpr std::array<std::string_view, 19> names{
      "date-time", "date",          "time", "duration",     "email",        "idn-email",
      "hostname",  "idn-hostname",  "ipv4", "ipv6",         "uri",          "uri-reference",
      "iri",       "iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer",
      "regex"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

TOOLDECODE_INLINE bool is_partial_format(std::string_view name) {
  return name == "regex" || name == "idn-hostname" || name == "idn-email";
}

TOOLDECODE_INLINE std::shared_ptr<const TextDfa> string_format(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TextDfa>, std::less<>> known;
  const std::lock_guard lock(mutex);
  auto format = known.find(name);
  if (format == known.end()) {
    const std::string pattern = detail::FormatPatterns::of(name);
    if (pattern.empty()) return nullptr;
    const BuildBudget::Pause once;
    format =
        known.emplace(name, std::make_shared<const TextDfa>(compile_whole_pattern(pattern))).first;
  }
  return format->second;
}

}  // namespace tooldecode::text
