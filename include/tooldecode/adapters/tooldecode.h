/** \file
 * The C interface: vocabularies, constraints and their masks, for programs in any language.
 *
 * - **Codes**: a function that may fail gives a td_code: TD_OK, TD_NOT_ALLOWED or TD_PENDING, or an
 *   error, which is TD_ERROR or more. Where `error` is given and is not null, an error leaves an
 *   object there, to be freed, and all else leaves null. No C++ exception passes through a function.
 * - **Handles** are made by functions with an argument `out`, which is null after an error, and given
 *   back once to the function `_free` of their type, in any order: what is made of a handle keeps
 *   what it needs of it. Null is an error where a handle is needed; `_free` does nothing with it.
 * - **Threads**: all functions may run at once, on one handle too, but for `_free` while another
 *   function has the handle. What a function writes to is its caller's.
 * - **Structs** that a caller fills begin with their size, `sizeof` of the type. Zero, or null, is
 *   every other field's default. A struct that gains a field has another size, and the interface
 *   another TD_ABI_VERSION.
 * - **Sizes**: V is the number of tokens, W = ceil(V / 32) the words of a mask, B the states of a
 *   batch, N the nodes of a draft tree. A mask is W words of 32 bits: bit `t % 32` of word `t / 32`
 *   is 1 where token t is allowed, and bits at and past V are 0. Engines that have such words as
 *   int32_t cast the pointer.
 */
#ifndef TOOLDECODE_H
#define TOOLDECODE_H

#include <stddef.h>
#include <stdint.h>

/** What stands before each function: TOOLDECODE_C_SHARED says that the library is a shared one, and
 * TOOLDECODE_C_BUILD that it is being built. Both come with the CMake target tooldecode::c. */
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

/** The version of this interface: it changes where a program has to be compiled anew, or changed. */
enum { TD_ABI_VERSION = 1 };

/** The TD_ABI_VERSION that the library was built with; a program compares it with its own. */
TOOLDECODE_C_API int32_t td_abi_version(void);

/** The library's version, such as "0.2.0". */
TOOLDECODE_C_API const char* td_version(void);

/* ---- Errors ---- */

/** What a function has to say, one of the constants below. */
typedef int32_t td_code;

/** The values of td_code; a number never changes its meaning, and later versions may add some. */
enum {
  TD_OK          = 0, /**< done; of an advance: allowed */
  TD_NOT_ALLOWED = 1, /**< the constraint forbids a token; no error */
  TD_PENDING     = 2, /**< a compilation that has not ended; no error */

  TD_ERROR                  = 100, /**< this and all above are errors; an unforeseen one */
  TD_ERROR_INVALID_ARGUMENT = 101, /**< null, or a struct of a size that is not known */
  TD_ERROR_BUFFER_TOO_SMALL = 102, /**< what the buffer should hold is told nevertheless */
  TD_ERROR_OUT_OF_MEMORY    = 103, /**< memory, threads or another thing of the system */
  TD_ERROR_CANCELLED        = 104, /**< a compilation that was cancelled */

  /* What the input gets, as tooldecode::Errc has it. */
  TD_ERROR_FILE_UNREADABLE      = 200, /**< missing, not a regular file, or cut short */
  TD_ERROR_MALFORMED_JSON       = 201, /**< not JSON; the place is a byte offset */
  TD_ERROR_MALFORMED_FILE       = 202, /**< GGUF or another binary form that contradicts itself */
  TD_ERROR_MALFORMED_VOCABULARY = 203, /**< a tokenizer that contradicts itself or lacks a part */
  TD_ERROR_MALFORMED_DOCUMENT   = 204, /**< a tool document that is none of the known forms */
  TD_ERROR_MALFORMED_SCHEMA     = 205, /**< a keyword with a value that it cannot have */
  TD_ERROR_UNSUPPORTED_KEYWORD  = 206, /**< a keyword that is not implemented; never ignored */
  TD_ERROR_UNSATISFIABLE_SCHEMA = 207, /**< no text satisfies it */
  TD_ERROR_MALFORMED_PATTERN    = 208, /**< a regular expression with a syntax error */
  TD_ERROR_UNSUPPORTED_PATTERN  = 209, /**< a regular expression that is not regular */
  TD_ERROR_UNSUPPORTED_NAME     = 210, /**< a name that a call format cannot write */
  TD_ERROR_MALFORMED_GRAMMAR    = 211, /**< grammar text with an error or an undefined rule */
  TD_ERROR_LIMIT_EXCEEDED       = 212, /**< what would cost more than its limit */
  TD_ERROR_DUPLICATE_TOOL       = 213, /**< two tools with one name */
  TD_ERROR_UNKNOWN_TOOL         = 214, /**< a tool choice that names no tool */
  TD_ERROR_UNKNOWN_FORMAT       = 215, /**< a call format, or a pre-tokenizer, that is not known */
  TD_ERROR_MALFORMED_CALL       = 216, /**< text that is no call of its format */
  TD_ERROR_UNKNOWN_STATE        = 217, /**< a state of another constraint, or none at all */
  TD_ERROR_UNKNOWN_TOKEN        = 218, /**< text that the vocabulary cannot write, or no id of it */
  TD_ERROR_SHAPE_MISMATCH       = 219, /**< a buffer of another shape than required */
  TD_ERROR_INVALID_OPTION       = 220, /**< an option outside its range */
  TD_ERROR_DEVICE_FAILURE       = 221  /**< a device's call that failed */
};

/** The name of a code, such as "malformed_schema"; "unknown" for a number that is none. */
TOOLDECODE_C_API const char* td_code_name(td_code code);

/** An error: a code, a place and a text. */
typedef struct td_error td_error;

/** The code that the function gave; TD_OK for null. */
TOOLDECODE_C_API td_code td_error_code(const td_error* error);
/** The place in the input: a JSON pointer ("#/properties/a"), "byte 17", an option, an argument, a
 * file; empty where the whole input is meant. It lives as long as the error; so does the text. */
TOOLDECODE_C_API const char* td_error_where(const td_error* error);
/** One line, the place and a sentence; empty for null. */
TOOLDECODE_C_API const char* td_error_text(const td_error* error);
/** Gives the handle back; null does nothing. */
TOOLDECODE_C_API void td_error_free(td_error* error);

/** Some bytes, of which none ends them: any may be zero. Null is no bytes. */
typedef struct td_text {
  const char* data; /**< [size] */
  size_t size;      /**< bytes */
} td_text;

/* ---- Vocabularies ---- */

/** The tokens of a model, with what masks over them need, computed once; and, where it was read from
 * a tokenizer's file, that tokenizer. Constraints of one vocabulary share states and masks. */
typedef struct td_vocabulary td_vocabulary;

/** What a token is for; the numbers of GGUF. */
enum {
  TD_TOKEN_NORMAL       = 1, /**< a piece of text */
  TD_TOKEN_UNKNOWN      = 2, /**< stands for text that the tokenizer cannot write */
  TD_TOKEN_CONTROL      = 3, /**< steers the model and writes no text; its bytes are its name */
  TD_TOKEN_USER_DEFINED = 4, /**< a piece of text that is matched before anything else */
  TD_TOKEN_UNUSED       = 5, /**< an id without a meaning */
  TD_TOKEN_BYTE         = 6  /**< one byte of a text that has no piece */
};

/** How a vocabulary is made. */
typedef struct td_vocabulary_options {
  size_t struct_size; /**< sizeof(td_vocabulary_options) */
  const int32_t*
      end_tokens;         /**< [end_token_count] any of them ends a text; null: those of the file */
  size_t end_token_count; /**< without a file there must be one or more, or no text ends */
  size_t size;            /**< V; 0: as many as there are tokens. Ids past those mean nothing */
  size_t memory_bytes;    /**< see td_constraint_renew; 0: 512 MiB */
} td_vocabulary_options;

/** The vocabulary of a file: tokenizer.json (or the folder that has it, with its configuration),
 * GGUF, SentencePiece, tiktoken, tekken.json or compact JSON, told apart by content. `options` may
 * be null. O(bytes of the file). */
TOOLDECODE_C_API td_code td_vocabulary_load(const char* path, const td_vocabulary_options* options,
                                            td_vocabulary** out, td_error** error);
/** The same of a file's content; `name` is put before the place in errors, tells a tiktoken's
 * encoding by the file's name, and may be null. */
TOOLDECODE_C_API td_code td_vocabulary_parse(td_text content, const char* name,
                                             const td_vocabulary_options* options,
                                             td_vocabulary** out, td_error** error);
/** The vocabulary of the bytes that each token writes, without a tokenizer.
 *
 * bytes [ends[count - 1]]  the tokens' bytes, one token behind the other
 * ends  [count]            where each token's bytes end, ascending
 * types [count]            TD_TOKEN_*; null: all are normal */
TOOLDECODE_C_API td_code td_vocabulary_make(const char* bytes, const uint64_t* ends,
                                            const uint8_t* types, size_t count,
                                            const td_vocabulary_options* options,
                                            td_vocabulary** out, td_error** error);
/** Gives the handle back; null does nothing. */
TOOLDECODE_C_API void td_vocabulary_free(td_vocabulary* vocabulary);

/** V; 0 for null. */
TOOLDECODE_C_API size_t td_vocabulary_size(const td_vocabulary* vocabulary);
/** W, the words of one mask; 0 for null. */
TOOLDECODE_C_API size_t td_vocabulary_mask_words(const td_vocabulary* vocabulary);
/** Equal for equal tokens, sizes and end tokens, on every machine; 0 for null. */
TOOLDECODE_C_API uint64_t td_vocabulary_hash(const td_vocabulary* vocabulary);
/** What a token writes; the bytes live as long as the handle. No bytes for what writes no text. */
TOOLDECODE_C_API td_code td_vocabulary_bytes(const td_vocabulary* vocabulary, int32_t token,
                                             td_text* bytes, td_error** error);
/** The tokens that end a text, the usual one first: [*count], living as long as the handle. */
TOOLDECODE_C_API td_code td_vocabulary_end_tokens(const td_vocabulary* vocabulary,
                                                  const int32_t** tokens, size_t* count,
                                                  td_error** error);
/** A text's tokens as the tokenizer cuts it, names of control tokens being those tokens.
 *
 * Writes the first `capacity` of them and says in `count` how many there are: where those are more,
 * the code is TD_ERROR_BUFFER_TOO_SMALL. TD_ERROR_INVALID_ARGUMENT for a vocabulary without a
 * tokenizer. */
TOOLDECODE_C_API td_code td_vocabulary_encode(const td_vocabulary* vocabulary, td_text text,
                                              int32_t* tokens, size_t capacity, size_t* count,
                                              td_error** error);

/* ---- Constraints ---- */

/** What decides which tokens may follow: immutable, shared by any number of threads and texts. */
typedef struct td_constraint td_constraint;

/** What a constraint is made of; later versions may add kinds. */
enum {
  TD_TOOLS          = 1, /**< an answer that may call tools, see tooldecode::ToolCallFSM */
  TD_JSON_SCHEMA    = 2, /**< one value of a JSON Schema */
  TD_REGEX          = 3, /**< a text that an ECMA-262 pattern matches as a whole */
  TD_EBNF           = 4, /**< a text of a grammar in GBNF or XGrammar's EBNF */
  TD_CHOICE         = 5, /**< one of some texts */
  TD_STRUCTURAL_TAG = 6, /**< the JSON that XGrammar, vLLM and SGLang take under this name */
  TD_LARK           = 7  /**< a text of a grammar in Lark's syntax, as llguidance reads it */
};

/** Whether an answer makes calls. */
enum {
  TD_CALLS_AUTOMATIC = 0, /**< free text, or calls, as the model likes */
  TD_CALLS_NONE      = 1, /**< free text that makes no call */
  TD_CALLS_REQUIRED  = 2, /**< one call or more, and nothing else */
  TD_CALLS_NAMED     = 3  /**< one call to one tool, `tool_name` */
};

/** Whether a block of reasoning may precede an answer. */
enum {
  TD_REASONING_NONE  = 0, /**< no */
  TD_REASONING_BLOCK = 1, /**< a block between the delimiters */
  TD_REASONING_OPEN  = 2  /**< the prompt has opened the block, and it must be closed */
};

/** A value of td_specification::whitespace: what the format or JSON's usual writer puts, no other. */
enum { TD_NO_WHITESPACE = -1 };

/** What building a constraint may cost, counted and not timed: the same on every machine. */
typedef struct td_limits {
  uint64_t steps; /**< of some 20 ns; 0: 50,000,000 */
  uint64_t bytes; /**< that are kept; 0: 256 MiB */
} td_limits;

/** A constraint's description. Texts need not live longer than the call. */
typedef struct td_specification {
  size_t struct_size; /**< sizeof(td_specification) */
  int32_t kind;       /**< TD_TOOLS, TD_JSON_SCHEMA, ... */

  td_text text;           /**< the tool documents as JSON, the schema, pattern, grammar, or tag */
  const td_text* choices; /**< [choice_count] TD_CHOICE: the texts, of any bytes */
  size_t choice_count;    /**< one or more, of TD_CHOICE */
  const char* root;       /**< TD_EBNF: the rule that whole texts match; null: "root" */

  int32_t whitespace;       /**< most bytes of optional white space, of TD_TOOLS and TD_JSON_SCHEMA;
                                 0: as the library has it, none and 40; or TD_NO_WHITESPACE */
  int32_t documented_order; /**< 1: properties and arguments in the order of their document only */

  /* TD_TOOLS alone */
  const char* format;          /**< a name of td_format_name; there is no default */
  int32_t calls;               /**< TD_CALLS_* */
  const char* tool_name;       /**< of TD_CALLS_NAMED */
  uint32_t max_calls;          /**< in an answer; 0: 16 */
  int32_t reasoning;           /**< TD_REASONING_* */
  const char* reasoning_begin; /**< its delimiters; null: those of the format's models */
  const char* reasoning_end;   /**< the first one closes the block */
  td_text text_schema;         /**< a JSON Schema for what an answer is where it makes no calls */

  td_limits limits; /**< what building may cost */
} td_specification;

/** The name of the index-th call format, null past the last. */
TOOLDECODE_C_API const char* td_format_name(size_t index);

/** Builds a constraint on this thread. O(size of the documents); what it may cost is bounded. The
 * error's place is a JSON pointer, a byte offset, or a field of the specification. */
TOOLDECODE_C_API td_code td_constraint_make(const td_vocabulary* vocabulary,
                                            const td_specification* specification,
                                            td_constraint** out, td_error** error);
/** About how many bytes its states and masks take, with those that share them; 0 for null. They grow
 * with what texts visit. */
TOOLDECODE_C_API size_t td_constraint_bytes(const td_constraint* constraint);
/** The same constraint for a new text: it shares all with the old one, unless their memory has grown
 * past the vocabulary's `memory_bytes`; then it has other memory, in which states from before are
 * unknown. A server takes one per request, and so keeps to its bounds. */
TOOLDECODE_C_API td_code td_constraint_renew(const td_constraint* constraint, td_constraint** out,
                                             td_error** error);
/** Gives the handle back; null does nothing. */
TOOLDECODE_C_API void td_constraint_free(td_constraint* constraint);

/* ---- States ---- */

/** Where a text stands: a value to be copied and kept; so a copy is a fork, and to undo a token is to
 * keep the state before it. Equal states have equal bytes. All bytes zero are no state. */
typedef struct td_state {
  uint64_t words[2];
} td_state;

/** 1 where both are the same state, else 0; null equals null. */
TOOLDECODE_C_API int32_t td_state_equal(const td_state* one, const td_state* other);
/** Equal for equal states; for a table within this process. 0 for null. */
TOOLDECODE_C_API uint64_t td_state_hash(const td_state* state);

/* In what follows a state is one of this constraint, else it gets TD_ERROR_UNKNOWN_STATE; that of
 * another constraint of the same vocabulary may go unnoticed, and is then what it is there. An id
 * that is none of the vocabulary is a token that is not allowed, as drafters may have more. */

/** The state before the first token. */
TOOLDECODE_C_API td_code td_initial(const td_constraint* constraint, td_state* state,
                                    td_error** error);
/** The state after a token: TD_OK, or TD_NOT_ALLOWED and `next` as it was. `next` may be `state`. */
TOOLDECODE_C_API td_code td_advance(const td_constraint* constraint, const td_state* state,
                                    int32_t token, td_state* next, td_error** error);
/** The state after tokens [count], if all are allowed; else TD_NOT_ALLOWED and `next` as it was. */
TOOLDECODE_C_API td_code td_advance_tokens(const td_constraint* constraint, const td_state* state,
                                           const int32_t* tokens, size_t count, td_state* next,
                                           td_error** error);
/** The same for bytes of text, wherever tokens begin and end. */
TOOLDECODE_C_API td_code td_advance_bytes(const td_constraint* constraint, const td_state* state,
                                          td_text bytes, td_state* next, td_error** error);
/** How many of a draft's tokens [count], from the first, are allowed one behind the other. */
TOOLDECODE_C_API td_code td_validate(const td_constraint* constraint, const td_state* state,
                                     const int32_t* tokens, size_t count, size_t* allowed,
                                     td_error** error);
/** 1 where the text may end here, an end token then being allowed; else 0. */
TOOLDECODE_C_API td_code td_is_accepting(const td_constraint* constraint, const td_state* state,
                                         int32_t* accepting, td_error** error);
/** 1 behind an end token, where only end tokens are allowed; else 0. */
TOOLDECODE_C_API td_code td_is_finished(const td_constraint* constraint, const td_state* state,
                                        int32_t* finished, td_error** error);

/** The bytes that every text goes on with, 256 at most. Writes and counts as td_vocabulary_encode. */
TOOLDECODE_C_API td_code td_forced_bytes(const td_constraint* constraint, const td_state* state,
                                         char* bytes, size_t capacity, size_t* count,
                                         td_error** error);
/** The tokens that every text goes on with, where the model's tokenizer writes it: they can be put in
 * without a pass. See tooldecode::ForcedTokens for what that rests on. Of a vocabulary without a
 * tokenizer: those that are the only one allowed in their place, none of them an end token, 256 at
 * most. Writes and counts as td_vocabulary_encode.
 *
 * before  what the model has written, or the end of it from where the tokenizer begins anew: all of
 *         an answer, its last lines */
TOOLDECODE_C_API td_code td_forced_tokens(const td_constraint* constraint, const td_state* state,
                                          td_text before, int32_t* tokens, size_t capacity,
                                          size_t* count, td_error** error);

/* ---- Answers while they are written ---- */

/** Text, reasoning and calls out of one answer of a constraint of TD_TOOLS, see
 * tooldecode::CallStream. One thread at a time. */
typedef struct td_call_stream td_call_stream;

/** What an answer has brought. */
enum {
  TD_EVENT_TEXT       = 1, /**< more of the text beside calls */
  TD_EVENT_REASONING  = 2, /**< more of the block of reasoning, its delimiters left out */
  TD_EVENT_CALL_BEGIN = 3, /**< a call to the tool of this name */
  TD_EVENT_ARGUMENTS  = 4, /**< more of the JSON text of the call's arguments */
  TD_EVENT_CALL_END   = 5, /**< the arguments are whole */
  TD_EVENT_ANSWER_END = 6  /**< nothing follows */
};

/** One of the events of an answer. */
typedef struct td_event {
  int32_t kind; /**< TD_EVENT_* */
  size_t call;  /**< which call of the answer, from 0; of its end, how many there were */
  td_text text; /**< whole characters of UTF-8 */
} td_event;

/** The stream of an answer that begins; TD_ERROR_INVALID_ARGUMENT where `constraint` is not of
 * TD_TOOLS. */
TOOLDECODE_C_API td_code td_call_stream_make(const td_constraint* constraint, td_call_stream** out,
                                             td_error** error);
/** What the next tokens [count] bring: events [*event_count], which live until the next function gets
 * the stream. An end token ends it. TD_ERROR_MALFORMED_CALL, with the byte, for what the constraint
 * does not allow; nothing may follow. */
TOOLDECODE_C_API td_code td_call_stream_push(td_call_stream* stream, const int32_t* tokens,
                                             size_t count, const td_event** events,
                                             size_t* event_count, td_error** error);
/** The same for bytes, wherever tokens or characters begin and end. */
TOOLDECODE_C_API td_code td_call_stream_push_bytes(td_call_stream* stream, td_text bytes,
                                                   const td_event** events, size_t* event_count,
                                                   td_error** error);
/** The rest of an answer that has ended, wherever that is. */
TOOLDECODE_C_API td_code td_call_stream_finish(td_call_stream* stream, const td_event** events,
                                               size_t* event_count, td_error** error);
/** Gives the handle back; null does nothing. */
TOOLDECODE_C_API void td_call_stream_free(td_call_stream* stream);

/* ---- Masks ---- */

/** Writes the tokens that td_advance allows: words [word_count], which must be W. O(W) for a state
 * whose mask is known. */
TOOLDECODE_C_API td_code td_fill_mask(const td_constraint* constraint, const td_state* state,
                                      uint32_t* words, size_t word_count, td_error** error);

/** Threads of the library, for many masks at once and for compilations. */
typedef struct td_pool td_pool;

/** A pool of so many threads; 0: as many as the machine runs at once. */
TOOLDECODE_C_API td_code td_pool_make(size_t threads, td_pool** out, td_error** error);
/** Cancels what compiles on it, and waits for its threads; nothing else may be using it. */
TOOLDECODE_C_API void td_pool_free(td_pool* pool);

/** A batch of states, each of a constraint of its own, and where their masks go. */
typedef struct td_mask_batch {
  size_t struct_size;                      /**< sizeof(td_mask_batch) */
  const td_constraint* const* constraints; /**< [count] */
  const td_state* states;                  /**< [count] */
  size_t count;                            /**< B */
  const size_t* rows; /**< [count] the row of each mask, no row twice; null: 0, 1, 2, ... */
  uint32_t* words;    /**< [row_count, row_words]; rows that are not named stay as they are */
  size_t row_count;   /**< B or more */
  size_t row_words;   /**< W or more; the words behind a mask are set to zero */
} td_mask_batch;

/** Writes the masks of a batch. All is checked before any is written. A pool pays where masks are
 * new to the constraint, or many; the masks of a few known states are copied sooner without one.
 *
 * pool  shares the work with the calling thread, which does all of it where this is null */
TOOLDECODE_C_API td_code td_fill_masks(td_pool* pool, const td_mask_batch* batch, td_error** error);

/** A draft tree below a state, and where the masks of its nodes go. Node 0 is the root, whose state is
 * given and whose own token and parent are not read. */
typedef struct td_mask_tree {
  size_t struct_size;              /**< sizeof(td_mask_tree) */
  const td_constraint* constraint; /**< of all nodes */
  td_state root;                   /**< of node 0 */
  const size_t* parents;           /**< [count] each less than its node's own index */
  const int32_t* tokens;           /**< [count] */
  size_t count;                    /**< N */
  uint32_t* words;                 /**< [count, row_words]; zeros for a node that is not allowed */
  size_t row_words;                /**< W or more; the words behind a mask are set to zero */
  td_state* states; /**< [count] gets the nodes' states, zeros where not allowed; may be null */
  uint8_t* allowed; /**< [count] gets 1 where a node and all above it are allowed; may be null */
} td_mask_tree;

/** Writes the masks of a tree's nodes, see td_fill_masks. */
TOOLDECODE_C_API td_code td_fill_tree_masks(td_pool* pool, const td_mask_tree* tree,
                                            td_error** error);

/* ---- Answers that must end in time ---- */

/** Which tokens leave room for the end of a text, where only so many more may come, see
 * tooldecode::Completions. It remembers what it has found: of one answer, or of one batch of its
 * branches. One thread at a time. */
typedef struct td_completions td_completions;

/** The completions of a constraint's states; it shares them, also after a td_constraint_renew. */
TOOLDECODE_C_API td_code td_completions_make(const td_constraint* constraint, td_completions** out,
                                             td_error** error);
/** Tokens of the shortest completion of a state, the end token included: 0 behind an end token, and
 * SIZE_MAX where none was found. Not made sure to be the shortest where it is at most `enough`. */
TOOLDECODE_C_API td_code td_completions_shortest(td_completions* completions, const td_state* state,
                                                 size_t enough, size_t* tokens, td_error** error);
/** Takes out of a state's mask, words [word_count], which must be W, the tokens after which the text
 * cannot end within `remaining` tokens, 1 or more, this one and the end token included. Where every
 * mask of a text is narrowed, and its beginning could end in time, one token at least stays. */
TOOLDECODE_C_API td_code td_completions_narrow(td_completions* completions, const td_state* state,
                                               size_t remaining, uint32_t* words, size_t word_count,
                                               td_error** error);
/** Gives the handle back; null does nothing. */
TOOLDECODE_C_API void td_completions_free(td_completions* completions);

/* ---- Compilations ---- */

/** A constraint that is being built in the background. */
typedef struct td_compilation td_compilation;

/** Begins to build a constraint on a pool's thread, behind those begun before; the specification is
 * copied. */
TOOLDECODE_C_API td_code td_compilation_start(td_pool* pool, const td_vocabulary* vocabulary,
                                              const td_specification* specification,
                                              td_compilation** out, td_error** error);
/** TD_PENDING until it has ended; then TD_OK, or the error that td_constraint_make would have given. */
TOOLDECODE_C_API td_code td_compilation_poll(const td_compilation* compilation, td_error** error);
/** The same once it has ended, or so many milliseconds have passed; a negative number is for ever.
 * With TD_OK there is a new handle in `out` each time. */
TOOLDECODE_C_API td_code td_compilation_wait(const td_compilation* compilation,
                                             int64_t milliseconds, td_constraint** out,
                                             td_error** error);
/** Ends it soon with TD_ERROR_CANCELLED; what has ended stays as it is. Null does nothing. */
TOOLDECODE_C_API void td_compilation_cancel(td_compilation* compilation);
/** Cancels what has not ended, and does not wait for it. */
TOOLDECODE_C_API void td_compilation_free(td_compilation* compilation);

#ifdef __cplusplus
}
#endif

#endif
