/// \file
/// prepare_masks: computes masks before a text needs them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tooldecode/mask/prepare_options.hpp>

namespace tooldecode::mask {

class SharedStates;

/// Computes the masks that texts after `from` are likely to need, nearest first: those after names,
/// keys, enumerated values and fixed texts, and at the beginning and the end of each value. Tokens
/// that spell such texts are assumed to be the longest of the vocabulary, and those that end at a
/// mark such as a quote. Returns how many it made.
///
/// Other threads that need the states do not wait for it: it gives up the mask it is at, lets them
/// pass, and computes that mask later. A mask that costs too much is left out, and without memory it
/// stops.
///
/// \par Complexity  within `options`
/// \par Threads     may run concurrently with everything else
[[nodiscard]] std::size_t prepare_masks(const SharedStates& states, std::uint32_t from,
                                        const PrepareOptions& options);

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/prepare_masks.ipp>
#endif
