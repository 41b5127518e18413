// The measurements of each kernel; every result is verified against float64 before it is timed.
#pragma once

#include "measure.hpp"
#include "report.hpp"

namespace cuda_benchmark {

void ask_pruned_head(const Setup& setup, Report& report);
void ask_masked_softmax(const Setup& setup, Report& report);
void ask_tree_attention(const Setup& setup, Report& report);
void ask_draft_round(const Setup& setup, Report& report);

}  // namespace cuda_benchmark
