#include <vector>

#include <tooldecode/model/head_products.hpp>

#include "contender.hpp"

namespace ranked_head {

std::vector<Contender> tooldecode_contenders(const Task& task) {
  const auto top = [&task](std::span<float>) {
    static_cast<void>(task.ranked.project_topk(task.hidden, 10));
  };
  std::vector<Contender> all{
      {"tooldecode", 2, [&task](auto logits) { task.ranked.fill_logits(task.hidden, logits); }},
      {"tooldecode, top 10 and log-sum-exp", 2, top},
      {"tooldecode, rows by index", 2,
       [&task](auto logits) { task.in_place.fill_logits(task.hidden, logits); }},
      {"tooldecode", 1, [&task](auto logits) { task.rounded.fill_logits(task.hidden, logits); }},
  };
  if (!task.floats.empty()) {
    all.push_back({"tooldecode", 4, [&task](std::span<float> logits) {
                     std::vector<const void*> rows;
                     for (std::size_t i = 0; i < task.rows(); ++i) {
                       rows.push_back(task.floats.data() + i * task.width());
                     }
                     tooldecode::model::fill_head_products(
                         tooldecode::model::HeadStates(tooldecode::WeightType::float32, task.hidden,
                                                       task.width()),
                         rows, {logits.data(), task.states(), task.rows(), task.rows()});
                   }});
  }
  return all;
}

}  // namespace ranked_head
