/** \file
 * The C interface: vocabularies, constraints and their masks, for programs in any language.
 *
 * - **Codes**: a function that may fail returns a td_code: TD_OK, TD_NOT_ALLOWED, TD_PENDING, or an
 *   error, which is TD_ERROR or greater. If the argument `error` is not null, an error stores an
 *   object there, which you free; any other result stores null. No function throws C++ exceptions.
 * - **Handles** are made by functions with an argument `out`, which is null after an error. Free each
 *   one once with the function `_free` of its type, in any order: a handle keeps what it needs of
 *   the handles that it was made from. A null handle is an error, except for `_free`.
 * - **Threads**: all functions may run concurrently, also on one handle, except that one thread at
 *   a time uses a td_call_stream or td_completions. Do not call `_free` while another function uses
 *   the handle. Memory that a function writes to belongs to its caller.
 * - **Structs** that you fill begin with their size, `sizeof` of the type, except td_text and
 *   td_limits. Zero or null is the default of every other field. A struct that gains a field
 *   changes its size and the interface's TD_ABI_VERSION.
 * - **Sizes**: V is the number of tokens, W = ceil(V / 32) the words of a mask, B the states of a
 *   batch, N the nodes of a draft tree. A mask is W words of 32 bits: bit `t % 32` of word `t / 32`
 *   is 1 if token t is allowed, and bits at and past V are 0. Engines that store such words as
 *   int32_t cast the pointer.
 */
#ifndef TOOLDECODE_H
#define TOOLDECODE_H

#include <stddef.h>
#include <stdint.h>

/** Precedes each function. TOOLDECODE_C_SHARED says that the library is shared,
 * TOOLDECODE_C_BUILD that it is being built. The CMake target tooldecode::c sets both. */
#if defined(_WIN32) && defined(TOOLDECODE_C_BUILD) && defined(TOOLDECODE_C_SHARED)
#define TOOLDECODE_C_API __declspec(dllexport)
#elif defined(_WIN32) && defined(TOOLDECODE_C_SHARED)
#define TOOLDECODE_C_API __declspec(dllimport)
#elif defined(__GNUC__) && defined(TOOLDECODE_C_BUILD)
#define TOOLDECODE_C_API __attribute__((visibility("default")))
#else
#define TOOLDECODE_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions ---- */

/** The version of this interface. It changes when a program must be recompiled or changed. */
enum { TD_ABI_VERSION = 1 };

/** The TD_ABI_VERSION that the library was built with. Compare it with your own. */
TOOLDECODE_C_API int32_t td_abi_version(void);

/** The library's version, such as "0.3.0". */
TOOLDECODE_C_API const char* td_version(void);

/* ---- Errors ---- */

/** The result of a function, one of the constants below. */
typedef int32_t td_code;

/** The values of td_code. A number never changes its meaning; later versions may add some. */
enum {
  TD_OK          = 0, /**< success; of an advance: allowed */
  TD_NOT_ALLOWED = 1, /**< the constraint forbids a token; not an error */
  TD_PENDING     = 2, /**< a compilation that has not ended; not an error */

  TD_ERROR                  = 100, /**< this and all above are errors; an unexpected one */
  TD_ERROR_INVALID_ARGUMENT = 101, /**< null, or a struct of an unknown size */
  TD_ERROR_BUFFER_TOO_SMALL = 102, /**< the required size is returned nevertheless */
  TD_ERROR_OUT_OF_MEMORY    = 103, /**< memory, threads or another system resource */
  TD_ERROR_CANCELLED        = 104, /**< a compilation that was cancelled */
  TD_ERROR_MODEL            = 105, /**< a function of the caller's model failed */

  /* Errors in the input; see tooldecode::Errc. */
  TD_ERROR_FILE_UNREADABLE      = 200, /**< missing, not a regular file, or cut short */
  TD_ERROR_MALFORMED_JSON       = 201, /**< not JSON; the place is a byte offset */
  TD_ERROR_MALFORMED_FILE       = 202, /**< GGUF or another binary format with a contradiction */
  TD_ERROR_MALFORMED_VOCABULARY = 203, /**< a tokenizer with a contradiction or a missing part */
  TD_ERROR_MALFORMED_DOCUMENT   = 204, /**< a tool document in an unknown form */
  TD_ERROR_MALFORMED_SCHEMA     = 205, /**< a keyword with an invalid value */
  TD_ERROR_UNSUPPORTED_KEYWORD  = 206, /**< a keyword that is not implemented; never ignored */
  TD_ERROR_UNSATISFIABLE_SCHEMA = 207, /**< no text satisfies it */
  TD_ERROR_MALFORMED_PATTERN    = 208, /**< a regular expression with a syntax error */
  TD_ERROR_UNSUPPORTED_PATTERN  = 209, /**< a pattern that is not a regular language */
  TD_ERROR_UNSUPPORTED_NAME     = 210, /**< a name that a call format cannot write */
  TD_ERROR_MALFORMED_GRAMMAR    = 211, /**< grammar text with an error or an undefined rule */
  TD_ERROR_LIMIT_EXCEEDED       = 212, /**< the cost would exceed its limit */
  TD_ERROR_DUPLICATE_TOOL       = 213, /**< two tools with one name */
  TD_ERROR_UNKNOWN_TOOL         = 214, /**< a tool choice that names an unknown tool */
  TD_ERROR_UNKNOWN_FORMAT       = 215, /**< an unknown call format or pre-tokenizer */
  TD_ERROR_MALFORMED_CALL       = 216, /**< text that is not a call of its format */
  TD_ERROR_UNKNOWN_STATE        = 217, /**< a state of another constraint, or not a state */
  TD_ERROR_UNKNOWN_TOKEN        = 218, /**< text without tokens, or an unknown id */
  TD_ERROR_SHAPE_MISMATCH       = 219, /**< a buffer of another shape than required */
  TD_ERROR_INVALID_OPTION       = 220, /**< an option outside its range */
  TD_ERROR_DEVICE_FAILURE       = 221  /**< a failed call of a device */
};

/** The name of a code, such as "malformed_schema"; "unknown" for an unknown number. */
TOOLDECODE_C_API const char* td_code_name(td_code code);

/** An error: a code, a place and a text. */
typedef struct td_error td_error;

/** The code that the function returned; TD_OK for null. */
TOOLDECODE_C_API td_code td_error_code(const td_error* error);
/** The place in the input: a JSON pointer ("#/properties/a"), "byte 17", an option, an argument
 * or a file; empty for the whole input. The strings live as long as the error. */
TOOLDECODE_C_API const char* td_error_where(const td_error* error);
/** One line with the place and a sentence; empty for null. */
TOOLDECODE_C_API const char* td_error_text(const td_error* error);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_error_free(td_error* error);

/** A byte string. It may contain zeros and is not zero-terminated. Null is an empty string. */
typedef struct td_text {
  const char* data; /**< [size] */
  size_t size;      /**< bytes */
} td_text;

/* ---- Vocabularies ---- */

/** The tokens of a model, the data for masks over them, computed once, and the tokenizer if it
 * was read from a tokenizer's file. Constraints of one vocabulary share states and masks. */
typedef struct td_vocabulary td_vocabulary;

/** The type of a token, numbered as in GGUF. */
enum {
  TD_TOKEN_NORMAL       = 1, /**< a piece of text */
  TD_TOKEN_UNKNOWN      = 2, /**< stands for text that the tokenizer cannot write */
  TD_TOKEN_CONTROL      = 3, /**< steers the model and writes no text; its bytes are its name */
  TD_TOKEN_USER_DEFINED = 4, /**< a piece of text that is matched first */
  TD_TOKEN_UNUSED       = 5, /**< an unused id */
  TD_TOKEN_BYTE         = 6  /**< one byte of text that has no other token */
};

/** Options of a vocabulary. */
typedef struct td_vocabulary_options {
  size_t struct_size;        /**< sizeof(td_vocabulary_options) */
  const int32_t* end_tokens; /**< [end_token_count] each ends a text; null: those of the file */
  size_t end_token_count;    /**< at least one if there is no file, or no text ends */
  size_t size;               /**< V; 0: the number of tokens. Ids past the tokens are unused */
  size_t memory_bytes;       /**< see td_constraint_renew; 0: 512 MiB */
} td_vocabulary_options;

/** Reads the vocabulary of a file: tokenizer.json (or its folder, with the configuration), GGUF,
 * SentencePiece, tiktoken, tekken.json or compact JSON. The type is detected by content.
 * `options` may be null. O(bytes of the file). */
TOOLDECODE_C_API td_code td_vocabulary_load(const char* path, const td_vocabulary_options* options,
                                            td_vocabulary** out, td_error** error);
/** Reads the content of such a file. `name` may be null; it precedes the place in errors and, as
 * a file name, selects the encoding of a tiktoken file. */
TOOLDECODE_C_API td_code td_vocabulary_parse(td_text content, const char* name,
                                             const td_vocabulary_options* options,
                                             td_vocabulary** out, td_error** error);
/** Makes a vocabulary from the bytes of each token, without a tokenizer.
 *
 * bytes [ends[count - 1]]  the tokens' bytes, concatenated
 * ends  [count]            where each token's bytes end, ascending
 * types [count]            TD_TOKEN_*; null: all are normal */
TOOLDECODE_C_API td_code td_vocabulary_make(const char* bytes, const uint64_t* ends,
                                            const uint8_t* types, size_t count,
                                            const td_vocabulary_options* options,
                                            td_vocabulary** out, td_error** error);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_vocabulary_free(td_vocabulary* vocabulary);

/** V; 0 for null. */
TOOLDECODE_C_API size_t td_vocabulary_size(const td_vocabulary* vocabulary);
/** W, the words of one mask; 0 for null. */
TOOLDECODE_C_API size_t td_vocabulary_mask_words(const td_vocabulary* vocabulary);
/** Equal for equal tokens, sizes and end tokens, on every machine; 0 for null. */
TOOLDECODE_C_API uint64_t td_vocabulary_hash(const td_vocabulary* vocabulary);
/** The bytes of a token, which live as long as the handle; empty if the token writes no text. */
TOOLDECODE_C_API td_code td_vocabulary_bytes(const td_vocabulary* vocabulary, int32_t token,
                                             td_text* bytes, td_error** error);
/** The end tokens, the usual one first: [*count]. They live as long as the handle. */
TOOLDECODE_C_API td_code td_vocabulary_end_tokens(const td_vocabulary* vocabulary,
                                                  const int32_t** tokens, size_t* count,
                                                  td_error** error);
/** Tokenizes a text. Names of control tokens become those tokens. Adds no begin token and no space.
 *
 * Writes the first `capacity` tokens and sets `count` to the total. If that is more, the code is
 * TD_ERROR_BUFFER_TOO_SMALL. Without a tokenizer the code is TD_ERROR_INVALID_ARGUMENT. */
TOOLDECODE_C_API td_code td_vocabulary_encode(const td_vocabulary* vocabulary, td_text text,
                                              int32_t* tokens, size_t capacity, size_t* count,
                                              td_error** error);

/* ---- Constraints ---- */

/** Decides which tokens may follow. Immutable; shared by any number of threads and texts. */
typedef struct td_constraint td_constraint;

/** The kinds of constraints; later versions may add some. */
enum {
  TD_TOOLS          = 1, /**< an answer that may call tools; see tooldecode::ToolCallFSM */
  TD_JSON_SCHEMA    = 2, /**< one value of a JSON Schema */
  TD_REGEX          = 3, /**< a text that an ECMA-262 pattern matches completely */
  TD_EBNF           = 4, /**< a text of a grammar in GBNF or XGrammar's EBNF */
  TD_CHOICE         = 5, /**< one of some texts */
  TD_STRUCTURAL_TAG = 6, /**< the JSON that XGrammar, vLLM and SGLang accept by this name */
  TD_LARK           = 7  /**< a text of a grammar in Lark's syntax, as llguidance reads it */
};

/** Whether an answer makes calls. */
enum {
  TD_CALLS_AUTOMATIC = 0, /**< free text or calls, as the model chooses */
  TD_CALLS_NONE      = 1, /**< free text without calls */
  TD_CALLS_REQUIRED  = 2, /**< one or more calls and nothing else */
  TD_CALLS_NAMED     = 3  /**< one call to one tool, `tool_name` */
};

/** What happens to a tool that cannot be enforced: whose schema is malformed or not supported, that
 * costs more than the limits, or with a name that the format cannot write. */
enum {
  TD_ENFORCEMENT_STRICT = 0, /**< it is an error */
  TD_ENFORCEMENT_RELAX = 1, /**< the least is given up: a keyword, else the schema, else the tool */
  TD_ENFORCEMENT_DROP  = 2  /**< the tool is left out */
};

/** Whether a reasoning block may precede an answer. */
enum {
  TD_REASONING_NONE  = 0, /**< not allowed */
  TD_REASONING_BLOCK = 1, /**< a block between the delimiters may come first */
  TD_REASONING_OPEN  = 2  /**< the prompt has opened the block; the answer must close it */
};

/** A value of td_specification::whitespace: only the usual white space of the format or of JSON. */
enum { TD_NO_WHITESPACE = -1 };

/** Limits for building a constraint. Costs are counted, not timed, so they are equal on every
 * machine. */
typedef struct td_limits {
  uint64_t steps; /**< steps of about 20 ns; 0: 50,000,000 */
  uint64_t bytes; /**< bytes kept; 0: 256 MiB */
} td_limits;

/** Describes a constraint. Its texts need to live only during the call. */
typedef struct td_specification {
  size_t struct_size; /**< sizeof(td_specification) */
  int32_t kind;       /**< TD_TOOLS, TD_JSON_SCHEMA, ... */

  td_text text;           /**< tool documents as JSON, schema, pattern, grammar or tag */
  const td_text* choices; /**< [choice_count] TD_CHOICE: the texts, any bytes but FE and FF */
  size_t choice_count;    /**< at least one for TD_CHOICE */
  const char* root;       /**< TD_EBNF: the start rule; null: "root" */

  int32_t whitespace;       /**< TD_TOOLS, TD_JSON_SCHEMA: most bytes of optional white space; 0:
                                 the default of none (tools) or 40 (schema); or TD_NO_WHITESPACE */
  int32_t documented_order; /**< 1: properties and arguments only in document order */

  /* only for TD_TOOLS */
  const char* format;    /**< a td_format_name, several ("hermes,json"), or a description as JSON */
  int32_t calls;         /**< TD_CALLS_* */
  const char* tool_name; /**< of TD_CALLS_NAMED */
  uint32_t max_calls;    /**< most calls of an answer; 0: 16 */
  int32_t reasoning;     /**< TD_REASONING_* */
  const char* reasoning_begin; /**< opening delimiter; null: that of the format's models */
  const char* reasoning_end;   /**< closing delimiter; its first occurrence ends the block */
  td_text text_schema;         /**< a JSON Schema for answers without calls */
  int32_t enforcement; /**< TD_ENFORCEMENT_*; td_constraint_not_enforced lists what is not */

  td_limits limits; /**< limits for building */
} td_specification;

/** The name of the index-th call format; null past the last. */
TOOLDECODE_C_API const char* td_format_name(size_t index);

/** Builds a constraint on this thread. O(size of the documents), bounded by the limits. The
 * error's place is a JSON pointer, a byte offset or a field of the specification. */
TOOLDECODE_C_API td_code td_constraint_make(const td_vocabulary* vocabulary,
                                            const td_specification* specification,
                                            td_constraint** out, td_error** error);
/** What is not enforced of the tools, see TD_ENFORCEMENT_RELAX: one line for each, the tool's name, a
 * tab, and what was given up and why, with the JSON pointer. Empty if all is enforced. As in
 * td_forced_bytes, `*count` is the number of bytes even if `capacity` is too small. */
TOOLDECODE_C_API td_code td_constraint_not_enforced(const td_constraint* constraint, char* bytes,
                                                    size_t capacity, size_t* count,
                                                    td_error** error);
/** Approximate bytes of its states and masks, including shared ones; 0 for null. They grow as
 * texts visit new states. */
TOOLDECODE_C_API size_t td_constraint_bytes(const td_constraint* constraint);
/** The same constraint for a new text. It shares all memory with the old one, unless that has
 * grown past the vocabulary's `memory_bytes`; then it has new memory, in which old states are
 * unknown. A server that calls this once per request stays within its memory limit. */
TOOLDECODE_C_API td_code td_constraint_renew(const td_constraint* constraint, td_constraint** out,
                                             td_error** error);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_constraint_free(td_constraint* constraint);

/** Why a text is refused; see tooldecode::RefusedText. */
typedef struct td_refusal td_refusal;

/** Explains the first place of a whole text that the constraint refuses: TD_NOT_ALLOWED and a handle,
 * or TD_OK and null if the text conforms. For TD_TOOLS and TD_JSON_SCHEMA also which keywords of
 * which document forbid it: the constraint is built again with less in it, within its limits. */
TOOLDECODE_C_API td_code td_explain_refusal(const td_constraint* constraint, td_text text,
                                            td_refusal** out, td_error** error);
/** The byte; the text's size if only its end is missing. 0 for null. */
TOOLDECODE_C_API size_t td_refusal_at(const td_refusal* refusal);
/** Lines for people: place and reason, an excerpt with a caret, what was expected, and a line for
 * each keyword. The strings live as long as the handle; empty for null. */
TOOLDECODE_C_API const char* td_refusal_text(const td_refusal* refusal);
/** The same for programs, a JSON object: at, too_short, line, column, excerpt, caret, reason,
 * expected, value_at, and rules, a list of objects with pointer and value. */
TOOLDECODE_C_API const char* td_refusal_json(const td_refusal* refusal);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_refusal_free(td_refusal* refusal);

/* ---- States ---- */

/** Where a text is in a constraint: a value that you copy. A copy is a fork; to undo a token,
 * keep the state before it. Equal states have equal bytes. All bytes zero is not a state. */
typedef struct td_state {
  uint64_t words[2];
} td_state;

/** 1 if both are the same state, else 0; null equals null. */
TOOLDECODE_C_API int32_t td_state_equal(const td_state* one, const td_state* other);
/** Equal for equal states within this process. 0 for null. */
TOOLDECODE_C_API uint64_t td_state_hash(const td_state* state);

/* The functions below require a state of this constraint, else they return
 * TD_ERROR_UNKNOWN_STATE. A state of another constraint of the same vocabulary may go unnoticed;
 * it then means another state. An id outside the vocabulary is a token that is not allowed,
 * because draft models may have more tokens. */

/** The state before the first token. */
TOOLDECODE_C_API td_code td_initial(const td_constraint* constraint, td_state* state,
                                    td_error** error);
/** The state after a token: TD_OK, or TD_NOT_ALLOWED and `next` is unchanged. `next` may be
 * `state`. */
TOOLDECODE_C_API td_code td_advance(const td_constraint* constraint, const td_state* state,
                                    int32_t token, td_state* next, td_error** error);
/** The state after tokens [count] if all are allowed; else TD_NOT_ALLOWED and `next` is
 * unchanged. */
TOOLDECODE_C_API td_code td_advance_tokens(const td_constraint* constraint, const td_state* state,
                                           const int32_t* tokens, size_t count, td_state* next,
                                           td_error** error);
/** As td_advance_tokens, for bytes of text, independent of token boundaries. */
TOOLDECODE_C_API td_code td_advance_bytes(const td_constraint* constraint, const td_state* state,
                                          td_text bytes, td_state* next, td_error** error);
/** How many of a draft's tokens [count], from the first, are allowed one after another. */
TOOLDECODE_C_API td_code td_validate(const td_constraint* constraint, const td_state* state,
                                     const int32_t* tokens, size_t count, size_t* allowed,
                                     td_error** error);
/** 1 if the text may end here, so an end token is allowed; else 0. */
TOOLDECODE_C_API td_code td_is_accepting(const td_constraint* constraint, const td_state* state,
                                         int32_t* accepting, td_error** error);
/** 1 after an end token, where only end tokens are allowed; else 0. */
TOOLDECODE_C_API td_code td_is_finished(const td_constraint* constraint, const td_state* state,
                                        int32_t* finished, td_error** error);

/** The jump-forward string: the bytes that every continuation begins with, at most 256. Uses
 * `capacity` and `count` like td_vocabulary_encode. */
TOOLDECODE_C_API td_code td_forced_bytes(const td_constraint* constraint, const td_state* state,
                                         char* bytes, size_t capacity, size_t* count,
                                         td_error** error);
/** The fast-forward tokens: the tokens that every continuation begins with, as the model's
 * tokenizer cuts them. They need no pass. See tooldecode::FastForwardTokens for the conditions.
 * Without a tokenizer: tokens that are the only one allowed in their place and are not end
 * tokens, at most 256. Uses `capacity` and `count` like td_vocabulary_encode.
 *
 * before  what the model has written, or its end from a place where the tokenizer starts afresh:
 *         the whole answer, its last lines */
TOOLDECODE_C_API td_code td_forced_tokens(const td_constraint* constraint, const td_state* state,
                                          td_text before, int32_t* tokens, size_t capacity,
                                          size_t* count, td_error** error);

/* ---- Answers while they are written ---- */

/** Splits one answer of a TD_TOOLS constraint into text, reasoning and calls; see
 * tooldecode::CallStream. One thread at a time. */
typedef struct td_call_stream td_call_stream;

/** Kinds of events. */
enum {
  TD_EVENT_TEXT       = 1, /**< more text outside calls */
  TD_EVENT_REASONING  = 2, /**< more of the reasoning block, without delimiters */
  TD_EVENT_CALL_BEGIN = 3, /**< a call to the tool of this name */
  TD_EVENT_ARGUMENTS  = 4, /**< more of the JSON text of the call's arguments */
  TD_EVENT_CALL_END   = 5, /**< the arguments are complete */
  TD_EVENT_ANSWER_END = 6  /**< nothing follows */
};

/** An event of an answer. */
typedef struct td_event {
  int32_t kind; /**< TD_EVENT_* */
  size_t call;  /**< index of the call, from 0; at the answer's end, the number of calls */
  td_text text; /**< complete UTF-8 characters */
} td_event;

/** Begins the stream of an answer; TD_ERROR_INVALID_ARGUMENT if `constraint` is not a TD_TOOLS
 * constraint. */
TOOLDECODE_C_API td_code td_call_stream_make(const td_constraint* constraint, td_call_stream** out,
                                             td_error** error);
/** Reads tokens [count] and returns events [*event_count], which live until the next call with
 * this stream. An end token ends the answer. TD_ERROR_MALFORMED_CALL, with the byte, for a token
 * that the constraint does not allow, TD_ERROR_UNKNOWN_TOKEN for an id outside the vocabulary;
 * the events are then those of the tokens before it, and the stream stands before it. */
TOOLDECODE_C_API td_code td_call_stream_push(td_call_stream* stream, const int32_t* tokens,
                                             size_t count, const td_event** events,
                                             size_t* event_count, td_error** error);
/** As td_call_stream_push, for bytes, independent of token and character boundaries. */
TOOLDECODE_C_API td_code td_call_stream_push_bytes(td_call_stream* stream, td_text bytes,
                                                   const td_event** events, size_t* event_count,
                                                   td_error** error);
/** The remaining events of an answer that has ended, at any place. */
TOOLDECODE_C_API td_code td_call_stream_finish(td_call_stream* stream, const td_event** events,
                                               size_t* event_count, td_error** error);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_call_stream_free(td_call_stream* stream);

/* ---- Order consistency ---- */

/** A language model that the caller runs, as functions over caches of the caller's. `self` is passed
 * to each. Functions run on the thread of td_order_consistency and must not throw. A number other
 * than 0, and a null cache, end it with TD_ERROR_MODEL. */
typedef struct td_model {
  size_t struct_size; /**< sizeof(td_model) */
  void* self;
  void* (*make_cache)(void* self);                             /**< an empty one */
  void* (*fork)(void* self, const void* cache);                /**< the same content */
  int32_t (*truncate)(void* self, void* cache, size_t length); /**< keeps `length` tokens */
  void (*free_cache)(void* self, void* cache);
  /** Appends tokens to `count` different caches, to the i-th tokens[ends[i - 1], ends[i]), at least
   * one, and writes logits [count, V] after the last of each. */
  int32_t (*forward)(void* self, void* const* caches, size_t count, const int32_t* tokens,
                     const size_t* ends, float* logits);
} td_model;

/** How an answer is sampled. */
typedef struct td_order_options {
  size_t struct_size; /**< sizeof(td_order_options) */
  size_t max_orders;  /**< most orders of a call; 0: 6 */
  size_t max_tokens;  /**< of the answer, the end token included; 0: 256. It is never cut:
                           TD_ERROR_INVALID_OPTION if the shortest answer is longer */
  float temperature;  /**< 0: greedy */
  float top_p;        /**< 0: 1 */
  size_t top_k;       /**< 0: all tokens */
  uint64_t seed;
  int32_t all_orders; /**< not 0: every order runs; else those that could change a winner */
} td_order_options;

/** An answer whose calls were voted on; see tooldecode::Consensus. */
typedef struct td_consensus td_consensus;

/** Answers a prompt's tokens [count]. Each call is sampled under several orders of its parameters,
 * and a majority vote picks each value. All orders share the prompt's cache and the passes.
 * `constraint` must be a TD_TOOLS constraint. `options` may be null. */
TOOLDECODE_C_API td_code td_order_consistency(const td_constraint* constraint,
                                              const td_model* model, const int32_t* prompt,
                                              size_t count, const td_order_options* options,
                                              td_consensus** out, td_error** error);
/** The answer's tokens [*count] without the end token; they live as long as the handle. Null and 0
 * for null. */
TOOLDECODE_C_API const int32_t* td_consensus_tokens(const td_consensus* consensus, size_t* count);
/** The votes of each call, a JSON array; see tooldecode::CallVote::json. "[]" for null. */
TOOLDECODE_C_API const char* td_consensus_votes(const td_consensus* consensus);
/** Passes of the model, those of all orders together. 0 for null. */
TOOLDECODE_C_API size_t td_consensus_passes(const td_consensus* consensus);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_consensus_free(td_consensus* consensus);

/* ---- Masks ---- */

/** Writes the mask of the tokens that td_advance allows: words [word_count], which must be W.
 * O(W) for a state whose mask is known. */
TOOLDECODE_C_API td_code td_fill_mask(const td_constraint* constraint, const td_state* state,
                                      uint32_t* words, size_t word_count, td_error** error);

/** Threads for batches of masks and for compilations. */
typedef struct td_pool td_pool;

/** Makes a pool; 0 threads: as many as the machine runs at the same time. */
TOOLDECODE_C_API td_code td_pool_make(size_t threads, td_pool** out, td_error** error);
/** Cancels its compilations and waits for its threads. Nothing else may use it at this time. */
TOOLDECODE_C_API void td_pool_free(td_pool* pool);

/** A batch of states, each with its constraint, and the memory for their masks. */
typedef struct td_mask_batch {
  size_t struct_size;                      /**< sizeof(td_mask_batch) */
  const td_constraint* const* constraints; /**< [count] */
  const td_state* states;                  /**< [count] */
  size_t count;                            /**< B */
  const size_t* rows; /**< [count] distinct row of each mask; null: 0, 1, 2, ... */
  uint32_t* words;    /**< [row_count, row_words]; rows that are not listed are unchanged */
  size_t row_count;   /**< B or more */
  size_t row_words;   /**< W or more; words after a mask are set to zero */
  /** [count] the state whose mask each row holds already, so that only what differs is written;
   * zeros, or a state of other memory: unknown. May be null. */
  const td_state* shown;
} td_mask_batch;

/** Writes the masks of a batch. Everything is checked before anything is written. A pool pays off
 * for new masks or many masks; a few known masks are copied faster without one.
 *
 * pool  shares the work with the calling thread; null: this thread does all of it */
TOOLDECODE_C_API td_code td_fill_masks(td_pool* pool, const td_mask_batch* batch, td_error** error);

/** Computes masks that texts after a state are likely to need, `max_masks` of them at most, to call
 * while a prompt is read. Other threads that use the constraint do not wait for it.
 *
 * pool   computes in the background, until it is freed; null: this thread does. Either ends after
 *        work of some 100 ms
 * masks  output: how many were made, 0 with a pool; may be null */
TOOLDECODE_C_API td_code td_prepare(td_pool* pool, const td_constraint* constraint,
                                    const td_state* state, size_t max_masks, size_t* masks,
                                    td_error** error);

/** A draft tree after a state, and the memory for the masks of its nodes. Node 0 is the root: its
 * state is given; its token and parent are not read. */
typedef struct td_mask_tree {
  size_t struct_size;              /**< sizeof(td_mask_tree) */
  const td_constraint* constraint; /**< used for all nodes */
  td_state root;                   /**< state of node 0 */
  const size_t* parents;           /**< [count] each less than the node's index */
  const int32_t* tokens;           /**< [count] */
  size_t count;                    /**< N */
  uint32_t* words;                 /**< [count, row_words]; zeros for a node that is not allowed */
  size_t row_words;                /**< W or more; words after a mask are set to zero */
  td_state* states;                /**< [count] output: states, zeros if not allowed; may be null */
  uint8_t* allowed; /**< [count] output: 1 if a node and its ancestors are allowed; or null */
} td_mask_tree;

/** Writes the masks of a tree's nodes; see td_fill_masks. */
TOOLDECODE_C_API td_code td_fill_tree_masks(td_pool* pool, const td_mask_tree* tree,
                                            td_error** error);

/* ---- Answers that must end in time ---- */

/** Finds which tokens leave room for the end of a text within a token limit; see
 * tooldecode::Completions. It caches its results: use one per answer, or per batch of branches
 * of an answer. One thread at a time. */
typedef struct td_completions td_completions;

/** Makes the completions of a constraint; they share it, also after a td_constraint_renew. */
TOOLDECODE_C_API td_code td_completions_make(const td_constraint* constraint, td_completions** out,
                                             td_error** error);
/** Tokens of the shortest completion of a state, the end token included: 0 after an end token,
 * SIZE_MAX if none was found. A result of at most `enough` may not be the shortest. */
TOOLDECODE_C_API td_code td_completions_shortest(td_completions* completions, const td_state* state,
                                                 size_t enough, size_t* tokens, td_error** error);
/** Removes from a state's mask, words [word_count], which must be W, the tokens after which the
 * text cannot end within `remaining` tokens (1 or more, this one and the end token included). If
 * you narrow every mask of a text that could end in time at its beginning, at least one token
 * always remains. */
TOOLDECODE_C_API td_code td_completions_narrow(td_completions* completions, const td_state* state,
                                               size_t remaining, uint32_t* words, size_t word_count,
                                               td_error** error);
/** Frees the handle; null is ignored. */
TOOLDECODE_C_API void td_completions_free(td_completions* completions);

/* ---- Compilations ---- */

/** A constraint that is built in the background. */
typedef struct td_compilation td_compilation;

/** Starts to build a constraint on a pool's thread, after those started before. The specification
 * is copied. */
TOOLDECODE_C_API td_code td_compilation_start(td_pool* pool, const td_vocabulary* vocabulary,
                                              const td_specification* specification,
                                              td_compilation** out, td_error** error);
/** TD_PENDING until it has ended; then TD_OK, or the error of td_constraint_make. */
TOOLDECODE_C_API td_code td_compilation_poll(const td_compilation* compilation, td_error** error);
/** Waits until it has ended, or for `milliseconds`; a negative number waits forever. Then returns
 * as td_compilation_poll. With TD_OK, `out` is a new handle each time. */
TOOLDECODE_C_API td_code td_compilation_wait(const td_compilation* compilation,
                                             int64_t milliseconds, td_constraint** out,
                                             td_error** error);
/** Ends it soon with TD_ERROR_CANCELLED; no effect if it has ended. Null is ignored. */
TOOLDECODE_C_API void td_compilation_cancel(td_compilation* compilation);
/** Frees the handle and cancels the compilation if it has not ended, without waiting for it. */
TOOLDECODE_C_API void td_compilation_free(td_compilation* compilation);

#ifdef __cplusplus
}
#endif

#endif
