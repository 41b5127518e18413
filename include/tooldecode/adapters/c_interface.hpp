/// \file
/// Defines the functions of tooldecode.h. Include it in exactly one file of a program or library,
/// usually that of the CMake target tooldecode::c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/adapters/c_call_stream.hpp>
#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/c_handles.hpp>
#include <tooldecode/adapters/c_masks.hpp>
#include <tooldecode/adapters/c_order_consistency.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/version.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

extern "C" {

int32_t td_abi_version(void) {
  return TD_ABI_VERSION;
}
const char* td_version(void) {
  return tooldecode::version.data();
}

const char* td_code_name(td_code code) {
  return tooldecode::c_interface::name_of(code);
}
td_code td_error_code(const td_error* error) {
  return error == nullptr ? TD_OK : error->failure.code;
}
const char* td_error_where(const td_error* error) {
  return error == nullptr ? "" : error->failure.where.c_str();
}
const char* td_error_text(const td_error* error) {
  return error == nullptr ? "" : error->failure.text.c_str();
}
void td_error_free(td_error* error) {
  delete error;
}

td_code td_vocabulary_load(const char* path, const td_vocabulary_options* options,
                           td_vocabulary** out, td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    require(path, "path");
    const auto file = tooldecode::load_tokenizer(std::filesystem::path(path));
    return new td_vocabulary{make_tokens(file.vocabulary(), &file, options)};
  });
}
td_code td_vocabulary_parse(td_text content, const char* name, const td_vocabulary_options* options,
                            td_vocabulary** out, td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    const auto file =
        tooldecode::parse_tokenizer(view(content, "content"), name != nullptr ? name : "content");
    return new td_vocabulary{make_tokens(file.vocabulary(), &file, options)};
  });
}
td_code td_vocabulary_make(const char* bytes, const uint64_t* ends, const uint8_t* types,
                           size_t count, const td_vocabulary_options* options, td_vocabulary** out,
                           td_error** error) {
  using namespace tooldecode::c_interface;
  using tooldecode::Vocabulary;
  return make(out, error, [&] {
    require_array(ends, count, "ends");
    require_array(bytes, count > 0 && ends[count - 1] > 0, "bytes");
    std::vector<Vocabulary::Entry> entries(count);
    for (std::size_t i = 0, begin = 0; i < count; begin = ends[i], ++i) {
      if (ends[i] < begin || ends[i] > ends[count - 1]) {
        throw Refusal(TD_ERROR_INVALID_ARGUMENT, "ends/" + std::to_string(i), "must be ascending");
      }
      entries[i].bytes.assign(bytes == nullptr ? "" : bytes + begin, ends[i] - begin);
      if (types != nullptr) entries[i].type = static_cast<tooldecode::TokenType>(types[i]);
    }
    return new td_vocabulary{make_tokens(Vocabulary(entries), nullptr, options)};
  });
}
void td_vocabulary_free(td_vocabulary* vocabulary) {
  delete vocabulary;
}
size_t td_vocabulary_size(const td_vocabulary* vocabulary) {
  return vocabulary == nullptr ? 0 : vocabulary->tokens->index.vocabulary().size();
}
size_t td_vocabulary_mask_words(const td_vocabulary* vocabulary) {
  return tooldecode::mask_word_count(td_vocabulary_size(vocabulary));
}
uint64_t td_vocabulary_hash(const td_vocabulary* vocabulary) {
  return vocabulary == nullptr ? 0 : vocabulary->tokens->index.vocabulary().hash();
}
td_code td_vocabulary_bytes(const td_vocabulary* vocabulary, int32_t token, td_text* bytes,
                            td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const tooldecode::Vocabulary& tokens = tokens_of(vocabulary).index.vocabulary();
    require(bytes, "bytes");
    if (token < 0 || static_cast<std::size_t>(token) >= tokens.size()) {
      throw tooldecode::Error(tooldecode::Errc::unknown_token, "token", token,
                              "must be an id of the vocabulary");
    }
    const std::string_view text = tokens.bytes(token);
    *bytes                      = {text.data(), text.size()};
    return TD_OK;
  });
}
td_code td_vocabulary_end_tokens(const td_vocabulary* vocabulary, const int32_t** tokens,
                                 size_t* count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const auto ends = tokens_of(vocabulary).index.vocabulary().end_tokens();
    require(tokens, "tokens");
    require(count, "count");
    *tokens = ends.data();
    *count  = ends.size();
    return TD_OK;
  });
}
td_code td_vocabulary_encode(const td_vocabulary* vocabulary, td_text text, int32_t* tokens,
                             size_t capacity, size_t* count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const auto& tokenizer = tokens_of(vocabulary).tokenizer;
    if (!tokenizer) {
      throw Refusal(TD_ERROR_INVALID_ARGUMENT, "vocabulary", "must be of a file, with a tokenizer");
    }
    const auto all = tokenizer->encode(view(text, "text"), {.parse_special = true});
    return give_all(std::span<const std::int32_t>(all), tokens, capacity, count, "tokens");
  });
}

const char* td_format_name(size_t index) {
  try {
    const auto& all = tooldecode::named_formats();
    return index < all.size() ? all[index].name.c_str() : nullptr;
  } catch (...) {
    return nullptr;
  }
}

td_code td_constraint_make(const td_vocabulary* vocabulary, const td_specification* specification,
                           td_constraint** out, td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    const Tokens& tokens = tokens_of(vocabulary);
    const Specification copy(specification);
    return new td_constraint{{vocabulary->tokens, copy.build(tokens.index, nullptr)}};
  });
}
size_t td_constraint_bytes(const td_constraint* constraint) {
  try {
    return constraint == nullptr ? 0 : constraint->shared.constraint().bytes();
  } catch (...) {
    return 0;
  }
}
td_code td_constraint_renew(const td_constraint* constraint, td_constraint** out,
                            td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] { return new td_constraint{shared_of(constraint).renewed()}; });
}
void td_constraint_free(td_constraint* constraint) {
  delete constraint;
}

int32_t td_state_equal(const td_state* one, const td_state* other) {
  if (one == nullptr || other == nullptr) return one == other;
  return one->words[0] == other->words[0] && one->words[1] == other->words[1];
}
uint64_t td_state_hash(const td_state* state) {
  if (state == nullptr) return 0;
  return tooldecode::core::hash_combine(state->words[0], state->words[1]);
}

td_code td_initial(const td_constraint* constraint, td_state* state, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const Constrained& shared = shared_of(constraint);
    require(state, "state");
    *state = Constrained::give(shared.initial());
    return TD_OK;
  });
}
td_code td_advance(const td_constraint* constraint, const td_state* state, int32_t token,
                   td_state* next, td_error** error) {
  return td_advance_tokens(constraint, state, &token, 1, next, error);
}
td_code td_advance_tokens(const td_constraint* constraint, const td_state* state,
                          const int32_t* tokens, size_t count, td_state* next, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    const auto all = tokens_from(tokens, count);
    require(next, "next");
    const auto [last, allowed] = shared.follow(from, all);
    if (allowed < count) return TD_NOT_ALLOWED;
    *next = Constrained::give(last);
    return TD_OK;
  });
}
td_code td_advance_bytes(const td_constraint* constraint, const td_state* state, td_text bytes,
                         td_state* next, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    const std::string_view text = view(bytes, "bytes");
    require(next, "next");
    const auto last = shared.advance_bytes(from, text);
    if (!last) return TD_NOT_ALLOWED;
    *next = Constrained::give(*last);
    return TD_OK;
  });
}
td_code td_validate(const td_constraint* constraint, const td_state* state, const int32_t* tokens,
                    size_t count, size_t* allowed, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    const auto all = tokens_from(tokens, count);
    require(allowed, "allowed");
    *allowed = shared.follow(from, all).second;
    return TD_OK;
  });
}
td_code td_is_accepting(const td_constraint* constraint, const td_state* state, int32_t* accepting,
                        td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    require(accepting, "accepting");
    *accepting = shared.constraint().is_accepting(from) ? 1 : 0;
    return TD_OK;
  });
}
td_code td_is_finished(const td_constraint* constraint, const td_state* state, int32_t* finished,
                       td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    require(finished, "finished");
    *finished = shared.constraint().is_finished(from) ? 1 : 0;
    return TD_OK;
  });
}
td_code td_constraint_not_enforced(const td_constraint* constraint, char* bytes, size_t capacity,
                                   size_t* count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    const Constrained& shared = shared_of(constraint);
    std::string lines;
    if (shared.calls()) {
      for (const tooldecode::tools::Note& note : shared.calls()->tools().notes()) {
        if (tooldecode::tools::is_given_up(note.reading)) {
          lines += note.tool + '\t' + note.text + '\n';
        }
      }
    }
    return give_all(std::span<const char>(lines), bytes, capacity, count, "bytes");
  });
}
td_code td_explain_refusal(const td_constraint* constraint, td_text text, td_refusal** out,
                           td_error** error) {
  using namespace tooldecode::c_interface;
  if (out != nullptr) *out = nullptr;
  return call(error, [&] {
    const Constrained& shared = shared_of(constraint);
    require(out, "out");
    const auto refused = shared.explain_refusal(view(text, "text"));
    if (!refused) return TD_OK;
    *out = new td_refusal{refused->at, refused->text(), refused->json().text()};
    return TD_NOT_ALLOWED;
  });
}
size_t td_refusal_at(const td_refusal* refusal) {
  return refusal == nullptr ? 0 : refusal->at;
}
const char* td_refusal_text(const td_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->text.c_str();
}
const char* td_refusal_json(const td_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->json.c_str();
}
void td_refusal_free(td_refusal* refusal) {
  delete refusal;
}
td_code td_forced_bytes(const td_constraint* constraint, const td_state* state, char* bytes,
                        size_t capacity, size_t* count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    const std::string forced = shared.constraint().jump_forward(from);
    return give_all(std::span<const char>(forced), bytes, capacity, count, "bytes");
  });
}
td_code td_forced_tokens(const td_constraint* constraint, const td_state* state, td_text before,
                         int32_t* tokens, size_t capacity, size_t* count, td_error** error) {
  using namespace tooldecode::c_interface;
  return call_at(constraint, state, error, [&](const Constrained& shared, auto from) {
    const std::string_view text = view(before, "before");
    const auto& forced          = shared.tokens().forced;
    const auto all = forced ? (*forced)(shared.constraint(), from, text) : shared.only_tokens(from);
    return give_all(std::span<const std::int32_t>(all), tokens, capacity, count, "tokens");
  });
}

td_code td_pool_make(size_t threads, td_pool** out, td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    constexpr std::size_t most = 4096;
    if (threads > most) {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, "threads", threads,
                              "must be at most " + std::to_string(most));
    }
    return new td_pool{Pool(threads)};
  });
}
void td_pool_free(td_pool* pool) {
  delete pool;
}

td_code td_compilation_start(td_pool* pool, const td_vocabulary* vocabulary,
                             const td_specification* specification, td_compilation** out,
                             td_error** error) {
  using namespace tooldecode::c_interface;
  return make(out, error, [&] {
    require(pool, "pool");
    require(vocabulary, "vocabulary");
    auto handle    = std::make_unique<td_compilation>();
    handle->shared = std::make_shared<Compilation>(vocabulary->tokens, specification);
    pool->shared.start(handle->shared);
    return handle.release();
  });
}
td_code td_compilation_poll(const td_compilation* compilation, td_error** error) {
  using namespace tooldecode::c_interface;
  return call(error, [&] {
    require(compilation, "compilation");
    return compilation->shared->wait(0) != nullptr ? TD_OK : TD_PENDING;
  });
}
td_code td_compilation_wait(const td_compilation* compilation, int64_t milliseconds,
                            td_constraint** out, td_error** error) {
  using namespace tooldecode::c_interface;
  if (out != nullptr) *out = nullptr;
  return call(error, [&] {
    require(compilation, "compilation");
    require(out, "out");
    const Constrained* built = compilation->shared->wait(milliseconds);
    if (built == nullptr) return TD_PENDING;
    *out = new td_constraint{*built};
    return TD_OK;
  });
}
void td_compilation_cancel(td_compilation* compilation) {
  if (compilation != nullptr) compilation->shared->cancel();
}
void td_compilation_free(td_compilation* compilation) {
  td_compilation_cancel(compilation);
  delete compilation;
}

}  // extern "C"
