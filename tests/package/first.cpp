#include <iostream>

#include <tooldecode/tooldecode.hpp>

const void* address_seen_by_second();

int main() {
  std::cout << "tooldecode " << tooldecode::version << '\n';
  return address_seen_by_second() == &tooldecode::version ? 0 : 1;
}
