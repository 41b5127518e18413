/// \file
/// For the same tokens in fewer passes: drafters, their heads, and the verification of draft trees.
///
/// Drafters guess (EagleDrafter and MedusaDrafter over a FrequencyRankedHead, or over EAGLE-3's own
/// MappedHead; forced text, lookups), a TreeVerifier keeps what the target would have said, and
/// TreeSpeculation is the Decoder's strategy of both.
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
#include <tooldecode/draft/forced_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/prompt_lookup_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/eagle3_model.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>
#include <tooldecode/verify/walk.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>
