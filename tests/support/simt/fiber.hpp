/// \file
/// Fiber: a separate call stack that runs until it switches to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace simt {

#if defined(__x86_64__)
// Saves the registers that a call must keep, switches stacks and returns on the other one. 30 times
// as fast as swapcontext, which makes a system call for signals.
extern "C" void simt_switch_stack(void** from, void* to);
asm(R"(
.text
.weak simt_switch_stack
.type simt_switch_stack,@function
simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch_stack, .-simt_switch_stack
)");
#endif

/// A stack, or the thread's stack if the fiber was not started.
class Fiber {
 public:
  static constexpr std::size_t stack_bytes = std::size_t{1} << 17;

  Fiber()                        = default;
  Fiber(const Fiber&)            = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (stack_ != nullptr) munmap(stack_, stack_bytes);
  }

  /// Makes the fiber begin with `entry` at its next switch; `entry` must not return.
  void start(void (*entry)()) {
    if (stack_ == nullptr) {
      void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) std::abort();
      stack_ = static_cast<std::byte*>(memory);
    }
#if defined(SIMT_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(stack_, stack_bytes);  // left by an abandoned run
    fake_stack_ = nullptr;
#endif
#if defined(__x86_64__)
    auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + stack_bytes) - 1;  // as after a call
    *--top    = reinterpret_cast<std::uintptr_t>(entry);
    for (int saved = 0; saved < 6; ++saved) *--top = 0;
    pointer_ = top;
#else
    getcontext(&context_);
    context_.uc_stack         = {};
    context_.uc_stack.ss_sp   = stack_;
    context_.uc_stack.ss_size = stack_bytes;
    makecontext(&context_, entry, 0);
#endif
  }

  /// Switches to another fiber; returns when something switches back.
  void switch_to(Fiber& other) {
#if defined(SIMT_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(&fake_stack_, other.bottom(), other.size());
#endif
#if defined(__x86_64__)
    simt_switch_stack(&pointer_, other.pointer_);
#else
    swapcontext(&context_, &other.context_);
#endif
    arrive();
  }

  /// An entry must call this first.
  void arrive() {
#if defined(SIMT_ADDRESS_SANITIZER)
    const void* from = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack_, &from, &size);
    if (own_thread_bottom == nullptr) {
      own_thread_bottom = from;  // the first switch comes from the thread's own stack
      own_thread_size   = size;
    }
#endif
  }

 private:
#if defined(SIMT_ADDRESS_SANITIZER)
  [[nodiscard]] const void* bottom() const {
    return stack_ != nullptr ? stack_ : own_thread_bottom;
  }
  [[nodiscard]] std::size_t size() const {
    return stack_ != nullptr ? stack_bytes : own_thread_size;
  }

  static inline const void* own_thread_bottom = nullptr;
  static inline std::size_t own_thread_size   = 0;
  void* fake_stack_                           = nullptr;
#endif
#if defined(__x86_64__)
  void* pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
  std::byte* stack_ = nullptr;
};

}  // namespace simt
