/// \file
/// Token masks for engines that sample themselves.
///
/// A mask needs a Vocabulary, a ToolSet, a call format (PythonCall, JsonCall, ...), the ToolCallFSM
/// built from these three, and its State, a value of 8 bytes. JSON Schema, regular expressions and
/// lists of texts are constrained in the same way, and grammars with <tooldecode/grammars.hpp>.
/// This header needs no other library: no Eigen, no model. To read tokenizers, include
/// <tooldecode/vocabulary/load_vocabulary.hpp>, which also needs PCRE2.
#pragma once

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/old_names.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/fill_masks.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/token_trie.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/version.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>
