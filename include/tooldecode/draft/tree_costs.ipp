#pragma once

#include <string>

#include <tooldecode/draft/tree_costs.hpp>

namespace tooldecode {

namespace draft {

TOOLDECODE_INLINE void require_times(std::span<const MeasuredTime> known,
                                     std::string_view counted) {
  if (known.empty()) throw Error(Errc::invalid_option, "known", "must have a time");
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto [number, seconds] = known[i];
    const bool is_ascending      = number > (i == 0 ? 0 : known[i - 1].first);
    if (is_ascending && seconds > 0 && std::isfinite(seconds)) continue;
    throw Error(
        Errc::invalid_option, "known[" + std::to_string(i) + ']', seconds,
        "must be a positive time, of more " + std::string(counted) + " than the one before");
  }
}

TOOLDECODE_INLINE double interpolate(const MeasuredTime& below, const MeasuredTime& above,
                                     double number) noexcept {
  const double part =
      (number - static_cast<double>(below.first)) / static_cast<double>(above.first - below.first);
  return below.second + part * (above.second - below.second);
}

}  // namespace draft

TOOLDECODE_INLINE TreeCosts::TreeCosts(std::span<const std::pair<std::size_t, double>> known) {
  draft::require_times(known, "tokens");
  std::size_t next = 0;
  for (std::size_t n = 1; n <= max_tokens; ++n) {
    while (next < known.size() && known[next].first < n) ++next;
    if (next == 0 || next == known.size()) {
      pass_[n - 1] = known[next == 0 ? 0 : next - 1].second;
      continue;
    }
    pass_[n - 1] = draft::interpolate(known[next - 1], known[next], static_cast<double>(n));
  }
}

TOOLDECODE_INLINE TreeCosts TreeCosts::flat() {
  constexpr std::pair<std::size_t, double> any{1, 1.0};
  return TreeCosts(std::span(&any, 1));
}

TOOLDECODE_INLINE double TreeCosts::pass(std::size_t tokens) const noexcept {
  return pass_[std::clamp<std::size_t>(tokens, 1, max_tokens) - 1];
}

// From the largest size down: a smaller one may have been disturbed when it was measured.
TOOLDECODE_INLINE std::size_t TreeCosts::most_tokens(double factor) const noexcept {
  std::size_t tokens = max_tokens;
  while (tokens > 1 && pass(tokens) > factor * pass(1)) --tokens;
  return tokens;
}

TOOLDECODE_INLINE std::size_t TreeCosts::best_size(std::span<const double> acceptance,
                                                   std::size_t lead, double spent) const noexcept {
  std::size_t best = 0;
  double tokens = 1, rate = 1 / (spent + pass(lead));
  for (std::size_t n = 1; n <= acceptance.size(); ++n) {
    tokens += acceptance[n - 1];
    if (const double now = tokens / (spent + pass(lead + n)); now > rate) best = n, rate = now;
  }
  return best;
}

TOOLDECODE_INLINE TreeCosts::Chain TreeCosts::best_depth(std::span<const double> acceptance,
                                                         std::size_t lead,
                                                         double level) const noexcept {
  Chain best{0, 1 / pass(lead)};
  double tokens = 1, path = 1;
  for (std::size_t d = 1; d <= acceptance.size(); ++d) {
    tokens += path *= acceptance[d - 1];
    const double now = tokens / (pass(lead + d) + static_cast<double>(d) * level);
    if (now > best.rate) best = {d, now};
  }
  return best;
}

TOOLDECODE_INLINE double TreeCosts::least_path(Chain chain, double acceptance, std::size_t lead,
                                               double level) const noexcept {
  constexpr std::size_t apart = 4;  // measured differences of single steps may have any sign
  const std::size_t tokens    = lead + chain.levels;
  const double one_more       = (pass(tokens + apart) - pass(tokens)) / static_cast<double>(apart);
  return chain.rate * (level + std::max(one_more, 0.0)) / acceptance;
}

}  // namespace tooldecode
