/* The kernels' C interface as a program in C meets it; what the guide shows is cut from here. The
 * header comes first, so that it is compiled with what it includes itself. */
#include <tooldecode/adapters/tooldecode_cuda.h>

#include <stdio.h>

_Static_assert(sizeof(td_cuda_verdict) == 4 * (3 + 2 * TD_CUDA_MAX_NODES), "copied as it is");

/* Bytes of the workspace of an engine; 0 after an error. */
size_t c11_workspace_bytes(int32_t max_rows, int32_t vocabulary) {
  size_t bytes = 0;
  if (td_cuda_abi_version() != TD_CUDA_ABI_VERSION) return 0;
  return td_cuda_masked_softmax_workspace_bytes(max_rows, vocabulary, &bytes) == TD_OK ? bytes : 0;
}

/* Draws a token for each of two requests; all pointers are to device memory. */
td_code c11_draw(const void* logits, int32_t vocabulary, const uint32_t* mask,
                 const int64_t* positions, int32_t* tokens, void* workspace, size_t workspace_bytes,
                 void* stream) {
  //! [draw]
  const td_cuda_sampling sampling[] = {{.seed = 7, .temperature = 0.7f, .top_p = 0.9f},
                                       {.temperature = 0}}; /* of each request */
  const td_cuda_logits batch        = {.struct_size    = sizeof batch,
                                       .logits         = logits, /* [2, V] */
                                       .dtype          = TD_CUDA_BF16,
                                       .rows           = 2,
                                       .vocabulary     = vocabulary,
                                       .mask           = mask, /* [2, W] of td_fill_masks */
                                       .sampling       = sampling,
                                       .sampling_count = 2};
  /* workspace_bytes is what td_cuda_masked_softmax_workspace_bytes returned, once */
  const td_code code =
      td_cuda_find_tokens(&batch, positions, 0, tokens, workspace, workspace_bytes, stream);
  if (code != TD_OK) fprintf(stderr, "%s\n", td_cuda_last_error());
  //! [draw]
  return code;
}
