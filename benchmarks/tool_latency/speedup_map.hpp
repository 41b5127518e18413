/// \file
/// SpeedupMap: the client-side speedup over acceptance and over the times of both models and the
/// tool.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/text/json_value.hpp>

namespace tool_latency {

/// S_spec, Equation 2, over α, g / G and T / G: what a client can expect before it has measured
/// anything. Computed, not simulated.
///
/// \par Source      Nichols et al., arXiv:2512.15834, Figure 3
class SpeedupMap {
 public:
  static constexpr std::array<double, 5> tools{0.25, 0.5, 1, 2, 4};  ///< T / G, one panel each
  static constexpr std::size_t steps = 20;  ///< of α and of g / G, from 0 to 1

  SpeedupMap();

  /// \param tool, prediction, acceptance  indices of T / G, g / G and α
  [[nodiscard]] double at(std::size_t tool, std::size_t prediction, std::size_t acceptance) const {
    return values_[(tool * (steps + 1) + prediction) * (steps + 1) + acceptance];
  }
  [[nodiscard]] double greatest(std::size_t tool) const;
  /// The share of a panel's points with g > 0, α > 0 and g < G that have at least this speedup.
  [[nodiscard]] double share_above(std::size_t tool, double speedup) const;

  [[nodiscard]] tooldecode::JsonValue to_json() const;
  [[nodiscard]] std::string to_svg() const;

 private:
  std::vector<double> values_;  // [tools, steps + 1, steps + 1]
};

}  // namespace tool_latency
