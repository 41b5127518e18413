/// \file
/// Speculative decoding: drafters, their heads, and the verification of draft trees.
///
/// Drafters propose tokens: EagleDrafter and MedusaDrafter use a FrequencyRankedHead or EAGLE-3's
/// own MappedHead, a ModelDrafter uses a smaller model, others use jump-forward strings or earlier text. A TreeVerifier keeps the tokens that
/// the target would have chosen. TreeSpeculation is the Decoder's strategy that combines the two.
#pragma once

#include <tooldecode/decode.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/draft/suffix_history.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>
