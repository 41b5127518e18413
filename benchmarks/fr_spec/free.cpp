// Answers without a constraint.
#include <tooldecode/decode/unconstrained.hpp>

#include "bench.hpp"

fr_spec::Measured fr_spec::Bench::measure_free(const Prompt& prompt, bool is_timed) {
  const auto ends = tokenizer_.vocabulary().end_tokens();
  return measure(prompt, is_timed,
                 td::Unconstrained{vocabulary_size(), {ends.begin(), ends.end()}});
}
