/// \file
/// The kernels, for users; the library never includes it. Ranks built on the device, which need
/// Thrust and with it seconds of compile time, are <tooldecode/cuda/frequency_ranks.cuh>; the model,
/// which needs the host's, is <tooldecode/cuda/device_llama.cuh>.
#pragma once

#include <tooldecode/cuda/allowed_rows.cuh>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/attention_block.cuh>
#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/attention_rows.cuh>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/cut_rows.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/few_products.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/host_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/page_pool.cuh>
#include <tooldecode/cuda/philox.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/search_histogram.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/softmax_cluster.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_steps.cuh>
#include <tooldecode/cuda/state_table.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/threshold_search.cuh>
#include <tooldecode/cuda/token_choice.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/tree_attention.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/cuda/warp.cuh>
