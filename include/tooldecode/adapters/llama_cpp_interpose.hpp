/// \file
/// Defines llama.cpp's functions that make grammar samplers, over this library's automata. Include
/// it in one file of a shared library that programs load before libllama; the CMake target
/// tooldecode_llama is that library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/adapters/llama_cpp_grammar.hpp>
#include <tooldecode/version.hpp>

#include <dlfcn.h>
#include <llama.h>

namespace tooldecode::llama_cpp::interpose {

/// The cache of a vocabulary; those that were used last are kept.
inline std::shared_ptr<const GrammarCache> cache_of(const llama_vocab* vocab) {
  constexpr std::size_t most = 4;
  static std::mutex mutex;
  static std::list<std::shared_ptr<const GrammarCache>> caches;  // most recently used first
  const std::lock_guard lock(mutex);
  for (auto cache = caches.begin(); cache != caches.end(); ++cache) {
    if (!(*cache)->is_of(vocab)) continue;
    caches.splice(caches.begin(), caches, cache);
    return caches.front();
  }
  caches.push_front(std::make_shared<const GrammarCache>(vocab));
  if (caches.size() > most) caches.pop_back();
  return caches.front();
}

/// Says on stderr that this library is in use.
inline void say_once() {
  static std::atomic<bool> said = false;
  if (said.exchange(true)) return;
  std::fprintf(stderr, "tooldecode %s: enforces this program's grammars\n", version.data());
}

/// Whether TOOLDECODE_REQUIRED_CALLS is set, and not to 0: a required call then has no text before
/// it.
inline bool requires_calls_alone() {
  const char* const given = std::getenv("TOOLDECODE_REQUIRED_CALLS");
  return given != nullptr && *given != '\0' && std::string_view(given) != "0";
}

/// Null if there is no grammar, or if it is refused; the reason is then on stderr.
inline llama_sampler* make(const llama_vocab* vocab, const char* grammar, const char* root,
                           const std::optional<GrammarTriggers>& triggers) {
  if (grammar == nullptr || *grammar == '\0' || root == nullptr) return nullptr;
  try {
    const std::string read       = triggers || !requires_calls_alone()
                                       ? std::string(grammar)
                                       : without_text_before_calls(grammar);
    llama_sampler* const sampler = make_grammar_sampler(cache_of(vocab)->get(read, root), triggers);
    say_once();
    return sampler;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tooldecode: llama.cpp enforces this grammar itself: %s\n", error.what());
    return nullptr;
  }
}

/// The function of a name in the next library, which is libllama.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace tooldecode::llama_cpp::interpose

extern "C" {

// A text that is no grammar, or that this library refuses, is llama.cpp's to judge.

LLAMA_API llama_sampler* llama_sampler_init_grammar(const llama_vocab* vocab,
                                                    const char* grammar_str,
                                                    const char* grammar_root) {
  using namespace tooldecode::llama_cpp::interpose;
  if (auto* const made = make(vocab, grammar_str, grammar_root, std::nullopt)) return made;
  static const auto own = next<decltype(llama_sampler_init_grammar)>("llama_sampler_init_grammar");
  return own == nullptr ? nullptr : own(vocab, grammar_str, grammar_root);
}

LLAMA_API llama_sampler* llama_sampler_init_grammar_lazy_patterns(
    const llama_vocab* vocab, const char* grammar_str, const char* grammar_root,
    const char** trigger_patterns, std::size_t num_trigger_patterns,
    const llama_token* trigger_tokens, std::size_t num_trigger_tokens) {
  using namespace tooldecode::llama_cpp::interpose;
  tooldecode::llama_cpp::GrammarTriggers triggers;
  triggers.patterns.assign(trigger_patterns, trigger_patterns + num_trigger_patterns);
  triggers.tokens.assign(trigger_tokens, trigger_tokens + num_trigger_tokens);
  if (auto* const made = make(vocab, grammar_str, grammar_root, triggers)) return made;
  static const auto own = next<decltype(llama_sampler_init_grammar_lazy_patterns)>(
      "llama_sampler_init_grammar_lazy_patterns");
  return own == nullptr ? nullptr
                        : own(vocab, grammar_str, grammar_root, trigger_patterns,
                              num_trigger_patterns, trigger_tokens, num_trigger_tokens);
}

}  // extern "C"
