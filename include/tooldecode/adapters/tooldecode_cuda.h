/** \file
 * The kernels' C interface: masked softmax, choice of tokens, pruned heads, tree attention,
 * verification and compaction, for engines in any language.
 *
 * - **Codes**: a function that may fail returns a td_code of tooldecode.h: TD_OK or an error, which
 *   is TD_ERROR or greater. td_cuda_last_error then gives the argument and a sentence. No function
 *   throws C++ exceptions, and a call that is refused launches nothing.
 * - **Memory**: pointers are to device memory where nothing else is said. Your engine owns it all.
 *   A workspace is scratch memory, aligned to 256 bytes, with any contents. Calls that cannot
 *   overlap, such as those on one stream, may share one; calls that may overlap need one each.
 * - **Data in device memory** is not checked: L + slots must fit into the slots of a cache, or into
 *   max_pages * page_size; page numbers and the tokens of a head must be in range.
 * - **Streams**: `stream` is a cudaStream_t; null is the default stream. No function waits for the
 *   device. All functions that take a stream may be captured into a graph. The arguments in host
 *   memory are read during the call.
 * - **Devices**: a function works on the current device of its thread, as the CUDA runtime does.
 * - **Threads**: all functions may run concurrently.
 * - **Structs** that you fill begin with their size, `sizeof` of the type, except td_cuda_sampling.
 *   Zero or null is the default of every other field where its comment names one. A struct that
 *   gains a field changes its size and TD_CUDA_ABI_VERSION.
 * - **Sizes**: V is the number of tokens, W = ceil(V / 32) the words of a mask, B the rows or the
 *   sequences of a batch, N the nodes of a draft tree, D the size of an attention head. Masks are as
 *   in tooldecode.h and as XGrammar's: bit `t % 32` of word `t / 32` is 1 if token t is allowed.
 *   Strides count numbers, or words of a mask, and not bytes.
 */
#ifndef TOOLDECODE_CUDA_H
#define TOOLDECODE_CUDA_H

#include <tooldecode/adapters/tooldecode.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions and errors ---- */

/** The version of this interface. It changes when a program must be recompiled or changed. */
enum { TD_CUDA_ABI_VERSION = 1 };

/** The TD_CUDA_ABI_VERSION that the library was built with. Compare it with your own. */
TOOLDECODE_C_API int32_t td_cuda_abi_version(void);

/** The argument, a colon and a sentence about the last error of this thread; empty if there was
 * none. It lives until the thread's next error. */
TOOLDECODE_C_API const char* td_cuda_last_error(void);

/** The argument or field of that error, such as "project_topk: workspace"; may be empty. */
TOOLDECODE_C_API const char* td_cuda_last_error_where(void);

/** The type of numbers in memory. */
enum {
  TD_CUDA_F32  = 1, /**< float; logits only */
  TD_CUDA_F16  = 2, /**< IEEE half precision */
  TD_CUDA_BF16 = 3  /**< bfloat16 */
};

/* ---- Masked softmax and choice of tokens ---- */

/** How one row is sampled, as tooldecode::SamplingParameters. All zeros: logits as they are, no
 * cuts, the most likely token. It has no struct_size, because it is an element of arrays. */
typedef struct td_cuda_sampling {
  uint64_t seed;     /**< of the noise; td_cuda_find_tokens only */
  float temperature; /**< divides logits; 0: they stay, and the most likely token is chosen */
  int32_t top_k;     /**< keeps the k best tokens; 0: all */
  float top_p;       /**< keeps the fewest best tokens that reach this probability; 0: all */
  float min_p;       /**< keeps tokens with this share of the best one's probability; 0: all */
} td_cuda_sampling;

/** A batch of logits, the allowed tokens, and how each row is sampled. */
typedef struct td_cuda_logits {
  size_t struct_size;   /**< sizeof(td_cuda_logits) */
  const void* logits;   /**< [B, V] aligned to one number */
  int32_t dtype;        /**< TD_CUDA_* */
  int32_t rows;         /**< B */
  int32_t vocabulary;   /**< V, at most 2^30 */
  int64_t stride;       /**< from one row to the next; 0: V */
  const uint32_t* mask; /**< [B, W] bits past V are ignored; null: all tokens are allowed */
  int64_t mask_stride;  /**< from one row to the next; 0: W */

  /** [sampling_count] in host memory. Neighbouring rows that are sampled alike share launches, so
   * that a batch costs as many launches as it has runs of such rows. Null: all zeros. */
  const td_cuda_sampling* sampling;
  size_t sampling_count; /**< 1: the same for all rows; else B */
} td_cuda_logits;

/** Bytes of workspace for the three functions below, enough on the current device for that many
 * rows and tokens or fewer. `bytes` is in host memory. */
TOOLDECODE_C_API td_code td_cuda_masked_softmax_workspace_bytes(int32_t rows, int32_t vocabulary,
                                                                size_t* bytes);

/** Writes softmax(logits / temperature) over the tokens that mask and cuts leave, 0 elsewhere. NaN
 * and -infinity count as a very small logit and +infinity as a very large one, so only the mask
 * forbids. A row without an allowed token is all zeros.
 *
 * probabilities [B, V]  aligned to one number
 * kept          [B]     how many tokens can be drawn; null: not written
 *
 * Fastest where rows and outputs begin at multiples of 16 bytes and no cut is set. Errors:
 * TD_ERROR_SHAPE_MISMATCH for null pointers, strides, sizes and the workspace,
 * TD_ERROR_INVALID_OPTION for the dtype and for sampling, TD_ERROR_INVALID_ARGUMENT for
 * struct_size, TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_fill_masked_softmax(const td_cuda_logits* logits,
                                                     float* probabilities, int32_t* kept,
                                                     void* workspace, size_t workspace_bytes,
                                                     void* stream);

/** Writes the logarithm of the same, -infinity elsewhere. */
TOOLDECODE_C_API td_code td_cuda_fill_masked_log_softmax(const td_cuda_logits* logits, float* logs,
                                                         int32_t* kept, void* workspace,
                                                         size_t workspace_bytes, void* stream);

/** Chooses a token for each row: at temperature 0 the most likely one, else a draw with the Gumbel
 * noise of the row's seed and position. Equal seeds, positions and logits draw equal tokens, on the
 * host too: tooldecode::find_token. Ties go to the lowest id; -1 if the mask allows nothing.
 *
 * positions [B]  of the token to draw; rows with one seed draw independently if these differ. Null
 *                only if all rows have temperature 0
 * shift          is added to each position
 * tokens    [B]
 *
 * Errors as td_cuda_fill_masked_softmax. */
TOOLDECODE_C_API td_code td_cuda_find_tokens(const td_cuda_logits* logits, const int64_t* positions,
                                             int64_t shift, int32_t* tokens, void* workspace,
                                             size_t workspace_bytes, void* stream);

/* ---- Products with a pruned head ---- */

/** K rows of an LM head: rows of a head that stays whole, or a copy of these rows. A whole head
 * answers a mask that allows fewer than K tokens with exactly these; a copy cannot draft a token
 * that has no row. */
typedef struct td_cuda_head {
  size_t struct_size;    /**< sizeof(td_cuda_head) */
  const void* weights;   /**< [V, H], or [K, H] of a copy; aligned to 16 bytes */
  int32_t dtype;         /**< TD_CUDA_F16 or TD_CUDA_BF16 */
  int32_t rows;          /**< K */
  int32_t hidden_size;   /**< H, a multiple of 8 */
  int64_t stride;        /**< from one row to the next, a multiple of 8; 0: H */
  const int32_t* tokens; /**< [K] the token of each row, all distinct; null: row i is token i */
  int32_t vocabulary;    /**< V of a whole head; 0: the weights are a copy */
} td_cuda_head;

/** Bytes of workspace for td_cuda_project_topk, enough on the current device for that many states,
 * rows, tokens and words of a mask or fewer. `mask_words` is 0 without masks. */
TOOLDECODE_C_API td_code td_cuda_pruned_head_workspace_bytes(int32_t states, int32_t rows,
                                                             int32_t k, int32_t mask_words,
                                                             size_t* bytes);

/** The k most likely tokens of each of n hidden states and the log-sum-exp, both over the rows that
 * the state's mask allows. Rows that no state may use are hardly read, and no logits are written.
 *
 * hidden      [n, H]           of the head's dtype, aligned to 16 bytes; n is at most 65,535
 * masks       [n, mask_words]  tokens past them are forbidden; null: all are allowed
 * k                            from 1 to 32
 * tokens      [n, k]           by descending logit, then ascending id; -1 past the last
 * logits      [n, k]           -infinity past the last
 * log_sum_exp [n]              -infinity if there are no rows
 *
 * Errors: TD_ERROR_SHAPE_MISMATCH for pointers, strides, sizes and the workspace,
 * TD_ERROR_INVALID_OPTION for dtype, states and k, TD_ERROR_INVALID_ARGUMENT for struct_size,
 * TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_project_topk(const td_cuda_head* head, const void* hidden,
                                              int32_t states, const uint32_t* masks,
                                              int32_t mask_words, int32_t k, int32_t* tokens,
                                              float* logits, float* log_sum_exp, void* workspace,
                                              size_t workspace_bytes, void* stream);

/* ---- Tree attention ---- */

/** A layer's keys and values. Slot s of a sequence holds its s-th token; draft node i of a sequence
 * of length L is in slot L + i. A row is the D numbers of one slot and head, aligned to 16 bytes:
 * strides are multiples of 8.
 *
 * Contiguous: [B, slots, heads, D] in any order that the strides describe. In pages: [pages,
 * page_size, heads, D], with `pages` set. */
typedef struct td_cuda_cache {
  size_t struct_size;   /**< sizeof(td_cuda_cache) */
  void* keys;           /**< aligned to 16 bytes */
  void* values;         /**< aligned to 16 bytes, with the same strides */
  int64_t slot_stride;  /**< from one slot to the next */
  int64_t head_stride;  /**< from one head to the next */
  int64_t page_stride;  /**< from one page, or contiguous sequence, to the next */
  const int32_t* pages; /**< [B, max_pages] the page of each page_size slots; null: contiguous */
  int32_t page_size;    /**< slots of a page */
  int32_t max_pages;    /**< pages of a sequence */
} td_cuda_cache;

/** The shape of calls of tree attention. */
typedef struct td_cuda_tree_attention_shape {
  size_t struct_size;  /**< sizeof(td_cuda_tree_attention_shape) */
  int32_t dtype;       /**< TD_CUDA_F16 or TD_CUDA_BF16: of queries, keys, values and outputs */
  int32_t query_heads; /**< Hq, a multiple of key_heads */
  int32_t key_heads;   /**< Hkv */
  int32_t head_size;   /**< D: 64, 96, 128 or 256 */
  float scale;         /**< factor of scores; 0: 1 / sqrt(D) */
  int32_t sequences;   /**< B */
  int32_t nodes;       /**< N, at most 64 */
  int32_t max_length;  /**< expected maximum; work is split for it, and lengths may be greater */
  int32_t slots;       /**< after the prefix that nodes may see, at most 64; 0: N */
} td_cuda_tree_attention_shape;

/** Tree attention of one shape on one device: how its work is divided, found once. */
typedef struct td_cuda_tree_attention td_cuda_tree_attention;

/** Bytes of workspace for td_cuda_tree_attention_run, enough on the current device for this shape and
 * for shapes with fewer sequences, nodes or tokens. */
TOOLDECODE_C_API td_code
td_cuda_tree_attention_workspace_bytes(const td_cuda_tree_attention_shape* shape, size_t* bytes);

/** Plans tree attention for the current device. `out` is null after an error. Errors:
 * TD_ERROR_INVALID_OPTION, naming the field; TD_ERROR_INVALID_ARGUMENT; TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_tree_attention_make(const td_cuda_tree_attention_shape* shape,
                                                     td_cuda_tree_attention** out);
/** Frees the handle; null is ignored. Calls that were enqueued go on. */
TOOLDECODE_C_API void td_cuda_tree_attention_free(td_cuda_tree_attention* attention);

/** Softmax attention of each node of a tree to the slots 0, ..., L - 1 of its sequence, and to slot
 * L + j if bit j of its ancestors is set. Padding gets zeros. Works on any number of streams and
 * threads at once, each with its workspace. A graph that captured the call follows the lengths and
 * ancestors in device memory.
 *
 * queries   [B, N, Hq, D]  aligned to 16 bytes
 * ancestors [B, N]         of each node, itself included; 0: padding
 * lengths   [B]            L, slots before the tree
 * cache                    the struct is in host memory
 * out       [B, N, Hq, D]  aligned to 16 bytes
 *
 * Errors: TD_ERROR_SHAPE_MISMATCH for pointers, strides and the workspace,
 * TD_ERROR_INVALID_ARGUMENT for null handles, struct_size, and a device other than the plan's,
 * TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_tree_attention_run(const td_cuda_tree_attention* attention,
                                                    const void* queries, const uint64_t* ancestors,
                                                    const int32_t* lengths,
                                                    const td_cuda_cache* cache, void* out,
                                                    void* workspace, size_t workspace_bytes,
                                                    void* stream);

/* ---- Verification ---- */

/** Nodes of a tree at most, and the rows of a tree in arrays [B, 64]. */
enum { TD_CUDA_MAX_NODES = 64 };

/** What verification accepts of one tree. */
typedef struct td_cuda_verdict {
  int32_t accepted;                  /**< nodes of the path */
  int32_t kept;                      /**< slots of the cache that stay: the root's and the path's */
  int32_t emitted;                   /**< tokens: the path's and the one after it */
  int32_t path[TD_CUDA_MAX_NODES];   /**< accepted nodes, ascending, without the root; then -1 */
  int32_t tokens[TD_CUDA_MAX_NODES]; /**< the path's and the one after it, or -1; then -1 */
} td_cuda_verdict;

/** Follows, in each tree, the tokens drawn after its nodes as long as a child holds them. Draw them
 * with td_cuda_find_tokens over the target's logits.
 *
 * Node 0 is the last emitted token and its own parent, a parent's index is less than its
 * children's, siblings hold different tokens, and ancestors[i] = ancestors[parents[i]] | 1 << i.
 *
 * tokens, parents, ancestors [B, 64]  rows past a tree's size are not read
 * sizes                      [B]      nodes, the root included; 0 if there is no tree
 * choices                    [B, 64]  the token drawn after each node; -1 if none is allowed
 * verdicts                   [B]
 *
 * Errors: TD_ERROR_SHAPE_MISMATCH for null pointers, TD_ERROR_INVALID_OPTION for a negative number
 * of sequences, TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_verify_trees(const int32_t* tokens, const int32_t* parents,
                                              const uint64_t* ancestors, const int32_t* sizes,
                                              const int32_t* choices, td_cuda_verdict* verdicts,
                                              int32_t sequences, void* stream);

/* ---- Compaction of the cache ---- */

/** Moves the keys and values of accepted nodes, in all layers, from slots L + path[i] to slots L +
 * 1 + i, after the root's slot L. All other slots stay as they are. Call td_cuda_advance_lengths
 * afterwards.
 *
 * layers   [layer_count]  in host memory
 * dtype                   TD_CUDA_F16 or TD_CUDA_BF16
 * sequences               at most 65,535
 * head_size               D, a multiple of 8
 * verdicts [B]            of td_cuda_verify_trees
 * lengths  [B]            L, before this round
 *
 * Errors: TD_ERROR_SHAPE_MISMATCH for pointers, strides and sizes, TD_ERROR_INVALID_OPTION for the
 * dtype, TD_ERROR_INVALID_ARGUMENT for null structs and struct_size, TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_compact_cache(const td_cuda_cache* layers, size_t layer_count,
                                               int32_t dtype, int32_t sequences, int32_t key_heads,
                                               int32_t head_size, const td_cuda_verdict* verdicts,
                                               const int32_t* lengths, void* stream);

/** Adds `kept` of each verdict to its sequence's length.
 *
 * verdicts [B]
 * lengths  [B]
 *
 * Errors: TD_ERROR_SHAPE_MISMATCH, TD_ERROR_DEVICE_FAILURE. */
TOOLDECODE_C_API td_code td_cuda_advance_lengths(const td_cuda_verdict* verdicts, int32_t* lengths,
                                                 int32_t sequences, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOOLDECODE_CUDA_H */
