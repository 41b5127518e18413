// expected-error: tooldecode needs C..20: compile with -std=c..20
// expected-lines: 30
// bad-option: -std=c++17
#include <tooldecode/tooldecode.hpp>
