#include <algorithm>
#include <vector>

#include "contender.hpp"

namespace ranked_head {

namespace {

using Index = Eigen::Index;

template <class T>
void multiply(MapOf<T> head, MapOf<float> hidden, std::span<float> logits) {
  Eigen::Map<Matrix<float>> out(logits.data(), hidden.rows(), head.rows());
  if constexpr (std::is_same_v<T, float>) {
    if (hidden.rows() == 1) {
      out.row(0).transpose().noalias() = head * hidden.row(0).transpose();
    } else {
      out.noalias() = hidden * head.transpose();
    }
  } else {
    // Eigen's bfloat16 product accumulates in bfloat16, so this widens a panel of rows first.
    constexpr Index panel = 32;
    Matrix<float> part;
    for (Index first = 0; first < head.rows(); first += panel) {
      const Index count = std::min(panel, head.rows() - first);
      part              = head.middleRows(first, count).template cast<float>();
      if (hidden.rows() == 1) {
        out.row(0).segment(first, count).transpose().noalias() = part * hidden.row(0).transpose();
      } else {
        out.middleCols(first, count).noalias() = hidden * part.transpose();
      }
    }
  }
}

}  // namespace

std::vector<Contender> eigen_contenders(const Task& task) {
  const auto rows  = static_cast<Index>(task.rows());
  const auto width = static_cast<Index>(task.width());
  const MapOf<float> hidden(task.hidden.data(), static_cast<Index>(task.states()), width);
  const MapOf<Half> halves(static_cast<const Half*>(task.ranked.row(0)), rows, width);
  std::vector<Contender> all{{"Eigen, panels widened", 2, [halves, hidden](auto logits) {
                                multiply<Half>(halves, hidden, logits);
                              }}};
  if (!task.floats.empty()) {
    const MapOf<float> floats(task.floats.data(), rows, width);
    all.push_back(
        {"Eigen", 4, [floats, hidden](auto logits) { multiply<float>(floats, hidden, logits); }});
  }
  return all;
}

}  // namespace ranked_head
