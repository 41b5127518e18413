/* The C interface as a program in C meets it; what the guide shows is cut from here. */
#include <tooldecode/adapters/tooldecode.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Draws an allowed token: the first that the mask has. A model's sampler stands here. */
static int32_t first_allowed(const uint32_t* words, size_t count) {
  size_t w;
  int32_t bit;
  for (w = 0; w < count; ++w) {
    for (bit = 0; bit < 32; ++bit) {
      if (words[w] >> bit & 1u) return (int32_t)(w * 32) + bit;
    }
  }
  return -1;
}

/* Shows why an answer is refused; its first byte that is, or its size if it conforms. */
static size_t refused_at(const td_constraint* constraint, td_text answer) {
  size_t at = answer.size;
  //! [refusal]
  td_refusal* refusal = NULL;
  if (td_explain_refusal(constraint, answer, &refusal, NULL) == TD_NOT_ALLOWED) {
    printf("%s\n", td_refusal_text(refusal)); /* or td_refusal_json */
    at = td_refusal_at(refusal);
    td_refusal_free(refusal);
  }
  //! [refusal]
  return at;
}

/* Writes one of two labels into `answer`; the model's vocabulary is `vocabulary`. */
static int write_label(const td_vocabulary* vocabulary, char* answer, size_t size) {
  td_constraint* constraint = NULL;
  td_error* error           = NULL;
  td_code code;
  uint32_t* words;
  size_t length = 0;
  td_state state;

  //! [make]
  const td_text labels[]         = {{"yes", 3}, {"no", 2}};
  td_specification specification = {.struct_size = sizeof(td_specification), .kind = TD_CHOICE};

  specification.choices      = labels;
  specification.choice_count = 2;
  if (td_constraint_make(vocabulary, &specification, &constraint, &error) != TD_OK) {
    fprintf(stderr, "%s\n", td_error_text(error)); /* the place, then a sentence */
    td_error_free(error);
    return 0;
  }
  //! [make]

  words = calloc(td_vocabulary_mask_words(vocabulary), sizeof *words);
  if (words == NULL) return 0;
  //! [loop]
  code = td_initial(constraint, &state, NULL);
  while (code == TD_OK) {
    const size_t count = td_vocabulary_mask_words(vocabulary);
    int32_t token, finished = 0;
    td_text bytes;
    td_fill_mask(constraint, &state, words, count, NULL); /* [W] */
    token = first_allowed(words, count);
    code  = td_advance(constraint, &state, token, &state, NULL);
    td_is_finished(constraint, &state, &finished, NULL);
    if (code != TD_OK || finished) break;
    td_vocabulary_bytes(vocabulary, token, &bytes, NULL);
    if (bytes.size >= size - length) break;
    memcpy(answer + length, bytes.data, bytes.size);
    length += bytes.size;
  }
  //! [loop]
  answer[length] = '\0';
  if (refused_at(constraint, (td_text){answer, length}) != length) code = TD_ERROR;
  if (refused_at(constraint, (td_text){"yet", 3}) != 2) code = TD_ERROR;
  free(words);
  td_constraint_free(constraint);
  return code == TD_OK;
}

/* Builds a constraint in the background and gives it up, or takes it. */
static int compile(const td_vocabulary* vocabulary) {
  td_specification specification = {.struct_size = sizeof(td_specification), .kind = TD_REGEX};
  td_pool* pool                  = NULL;
  td_compilation* compilation    = NULL;
  td_constraint* constraint      = NULL;
  td_code code                   = TD_PENDING;

  specification.text.data = "[0-9]+";
  specification.text.size = 6;
  if (td_pool_make(2, &pool, NULL) != TD_OK) return 0;
  //! [background]
  if (td_compilation_start(pool, vocabulary, &specification, &compilation, NULL) == TD_OK) {
    while ((code = td_compilation_poll(compilation, NULL)) == TD_PENDING) {
      /* the engine serves others; td_compilation_cancel ends what nobody waits for any more */
    }
    code = td_compilation_wait(compilation, -1, &constraint, NULL); /* has ended: a handle */
  }
  //! [background]
  td_compilation_free(compilation);
  td_constraint_free(constraint);
  td_pool_free(pool);
  return code == TD_OK;
}

/* Writes a text that could go on for ever, and ends with its last token of `budget`. */
static int end_in_time(const td_vocabulary* vocabulary, size_t budget) {
  td_specification specification = {.struct_size = sizeof(td_specification), .kind = TD_REGEX};
  const size_t count             = td_vocabulary_mask_words(vocabulary);
  td_constraint* constraint      = NULL;
  td_completions* completions    = NULL;
  uint32_t* words                = calloc(count, sizeof *words);
  int32_t finished               = 0;
  size_t shortest                = 0, left;
  td_state state;

  specification.text.data = "(no|yes)+";
  specification.text.size = 9;
  if (words == NULL || td_constraint_make(vocabulary, &specification, &constraint, NULL) != TD_OK) {
    free(words);
    return 0;
  }
  td_initial(constraint, &state, NULL);
  //! [end]
  td_completions_make(constraint, &completions, NULL); /* of this answer */
  td_completions_shortest(completions, &state, budget, &shortest, NULL);
  for (left = shortest <= budget ? budget : 0; left > 0 && !finished; --left) {
    td_fill_mask(constraint, &state, words, count, NULL);
    td_completions_narrow(completions, &state, left, words, count, NULL);
    td_advance(constraint, &state, first_allowed(words, count), &state, NULL);
    td_is_finished(constraint, &state, &finished, NULL);
  }
  //! [end]
  td_completions_free(completions);
  td_constraint_free(constraint);
  free(words);
  return finished && left == 0;
}

size_t count_voted_tokens(const td_constraint* constraint, const td_model* model,
                          const int32_t* prompt, size_t prompt_size);

/* The tokens of an answer whose calls are voted on; 0 after an error. */
size_t count_voted_tokens(const td_constraint* constraint, const td_model* model,
                          const int32_t* prompt, size_t prompt_size) {
  size_t count            = 0;
  td_consensus* consensus = NULL;
  //! [votes]
  td_order_options options = {.struct_size = sizeof(td_order_options), .max_orders = 6};

  /* model: make_cache, fork, truncate, free_cache and forward, over caches of yours */
  if (td_order_consistency(constraint, model, prompt, prompt_size, &options, &consensus, NULL) ==
      TD_OK) {
    const int32_t* tokens = td_consensus_tokens(consensus, &count);
    printf("%d is the first of %d tokens; the votes: %s\n", (int)tokens[0], (int)count,
           td_consensus_votes(consensus)); /* JSON */
    td_consensus_free(consensus);
  }
  //! [votes]
  return count;
}

const char* check_c_interface_from_c(void);

/* Null, or what is wrong. */
const char* check_c_interface_from_c(void) {
  static const char bytes[]         = "noyesmaybe";
  static const uint64_t ends[]      = {2, 5, 10, 10};
  static const uint8_t types[]      = {TD_TOKEN_NORMAL, TD_TOKEN_NORMAL, TD_TOKEN_NORMAL,
                                       TD_TOKEN_CONTROL};
  static const int32_t end_tokens[] = {3};
  td_vocabulary_options options     = {.struct_size = sizeof(td_vocabulary_options)};
  td_vocabulary* vocabulary         = NULL;
  char answer[16];
  const char* wrong = NULL;

  if (td_abi_version() != TD_ABI_VERSION) return "the library is of another version";
  options.end_tokens      = end_tokens;
  options.end_token_count = 1;
  if (td_vocabulary_make(bytes, ends, types, 4, &options, &vocabulary, NULL) != TD_OK) {
    return "no vocabulary";
  }
  if (!write_label(vocabulary, answer, sizeof answer) || strcmp(answer, "no") != 0) {
    wrong = "no label";
  } else if (!compile(vocabulary)) {
    wrong = "no compilation";
  } else if (end_in_time(vocabulary, 1)) {
    wrong = "an end without room for it";
  } else if (!end_in_time(vocabulary, 2) || !end_in_time(vocabulary, 9)) {
    wrong = "no end in time";
  }
  td_vocabulary_free(vocabulary);
  return wrong;
}
