// The global allocation functions of a test that makes allocations fail.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <dlfcn.h>
#include <execinfo.h>
#include <support/failing_memory.hpp>

namespace tooldecode::test {

namespace {

std::atomic<std::size_t> allocated{0};

// nlohmann's JSON allocates in its destructor; a failure there terminates the program.
bool is_in_destructor_of_json() noexcept {
  std::array<void*, 32> callers{};
  const int count = backtrace(callers.data(), static_cast<int>(callers.size()));
  for (int i = 0; i < count; ++i) {
    Dl_info caller{};
    if (dladdr(callers[static_cast<std::size_t>(i)], &caller) != 0 && caller.dli_sname != nullptr &&
        std::strstr(caller.dli_sname, "json_value7destroy") != nullptr) {
      return true;
    }
  }
  return false;
}

}  // namespace

thread_local FailingMemory::Plan FailingMemory::plan_;

FailingMemory::FailingMemory() : outer_(plan_) {
  plan_ = {};
}

FailingMemory::FailingMemory(std::size_t at, Failure failure) : outer_(plan_) {
  std::set_terminate(say_which);
  plan_ = {.until_end = failure == Failure::until_end, .at = at};
}

FailingMemory::~FailingMemory() {
  plan_ = outer_;
}

std::size_t FailingMemory::allocations() noexcept {
  return plan_.allocations;
}

bool FailingMemory::has_failed() noexcept {
  return plan_.failed;
}

std::size_t FailingMemory::blocks() noexcept {
  return allocated.load(std::memory_order_relaxed);
}

void FailingMemory::end_failures() noexcept {
  plan_.at = 0;
}

bool FailingMemory::fails() noexcept {
  if (!plan_.counts) return false;
  ++plan_.allocations;
  if (plan_.at == 0 || plan_.allocations < plan_.at) return false;
  if (plan_.failed && !plan_.until_end) return false;
  if (is_in_destructor_of_json()) return false;  // the next allocation fails
  plan_.failed = true;
  return true;
}

void FailingMemory::say_which() noexcept {
  plan_.counts = false;
  std::fprintf(stderr, "std::terminate: allocation %zu has failed, %s\n", plan_.at,
               plan_.until_end ? "and all behind it" : "alone");
  std::array<void*, 64> callers{};
  backtrace_symbols_fd(callers.data(), backtrace(callers.data(), 64), 2);
  std::abort();
}

FailingMemory::Counting::Counting() noexcept {
  plan_.counts = true;
}

FailingMemory::Counting::~Counting() {
  plan_.counts = false;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (FailingMemory::fails()) return nullptr;
  if (size == 0) size = 1;
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (block != nullptr) allocated.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void release(void* block) noexcept {
  if (block == nullptr) return;
  allocated.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

}  // namespace tooldecode::test

namespace {

void* allocate_or_throw(std::size_t size, std::size_t alignment = 1) {
  void* block = tooldecode::test::allocate(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return tooldecode::test::allocate(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return tooldecode::test::allocate(size, 1);
}
void operator delete(void* block) noexcept {
  tooldecode::test::release(block);
}
void operator delete[](void* block) noexcept {
  tooldecode::test::release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  tooldecode::test::release(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
  tooldecode::test::release(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  tooldecode::test::release(block);
}
