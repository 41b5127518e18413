#define CATCH_CONFIG_RUNNER  // compiles Catch2 2; Catch2 3 is a library and ignores this
#include <support/catch.hpp>

int main(int argc, char* argv[]) {
  return Catch::Session().run(argc, argv);
}
