// What code compiled with -fsanitize=thread calls for each access; here it reports to the
// emulator's Races. Do not compile this file with that flag, and do not link the sanitizer's
// library.
#include <cstdint>
#include <cstring>

#include <support/simt/simt.hpp>

namespace {

const bool is_watching = [] {
  simt::races.is_watching = true;
  simt::races.watch(simt::shared_memories, sizeof simt::shared_memories, true);
  return true;
}();

void see(const void* memory, std::size_t bytes, simt::Access kind) {
  simt::see_access(memory, bytes, kind);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define SIMT_ACCESSES(bytes)                          \
  void __tsan_read##bytes(void* at) {                 \
    see(at, bytes, simt::Access::read);               \
  }                                                   \
  void __tsan_write##bytes(void* at) {                \
    see(at, bytes, simt::Access::write);              \
  }                                                   \
  void __tsan_unaligned_read##bytes(void* at) {       \
    see(at, bytes, simt::Access::read);               \
  }                                                   \
  void __tsan_unaligned_write##bytes(void* at) {      \
    see(at, bytes, simt::Access::write);              \
  }                                                   \
  void __tsan_read_write##bytes(void* at) {           \
    see(at, bytes, simt::Access::write);              \
  }                                                   \
  void __tsan_unaligned_read_write##bytes(void* at) { \
    see(at, bytes, simt::Access::write);              \
  }
SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)
#undef SIMT_ACCESSES

void __tsan_read_range(void* at, unsigned long bytes) {
  see(at, bytes, simt::Access::read);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  see(at, bytes, simt::Access::write);
}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  see(from, bytes, simt::Access::read);
  see(to, bytes, simt::Access::write);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  see(from, bytes, simt::Access::read);
  see(to, bytes, simt::Access::write);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int byte, unsigned long bytes) {
  see(to, bytes, simt::Access::write);
  return std::memset(to, byte, bytes);
}

// For the host's code: guards of static objects, counters of shared ones.
std::uint8_t __tsan_atomic8_load(const volatile std::uint8_t* at, int) {
  return *at;
}
std::int32_t __tsan_atomic32_load(const volatile std::int32_t* at, int) {
  return *at;
}
std::int32_t __tsan_atomic32_fetch_add(volatile std::int32_t* at, std::int32_t x, int) {
  return __atomic_fetch_add(at, x, __ATOMIC_SEQ_CST);
}

}  // extern "C"
