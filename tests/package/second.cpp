#include <tooldecode/tooldecode.hpp>

const void* address_seen_by_second();

const void* address_seen_by_second() {
  return &tooldecode::version;
}
