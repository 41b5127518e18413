/// \file
/// For experiments: the baselines of the papers, other acceptance rules, the judge of benchmarks.
///
/// What an engine needs is in the other headers; docs/research.md says what each of these is for.
/// They may change without a deprecation.
#pragma once

#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/research/argument_types.hpp>
#include <tooldecode/research/beam_search.hpp>
#include <tooldecode/research/classify.hpp>
#include <tooldecode/research/performance_model.hpp>
#include <tooldecode/research/sampled_drafter.hpp>
#include <tooldecode/research/self_consistency.hpp>
#include <tooldecode/research/sized_head_drafter.hpp>
#include <tooldecode/research/tool_dec.hpp>
#include <tooldecode/research/tool_dec_completions.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/research/tool_names.hpp>
