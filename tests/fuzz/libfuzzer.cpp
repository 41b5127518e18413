// All targets as one libFuzzer program: `fuzz --target=regex corpus/regex`. With `--judge`, texts
// of schemas are compared with the slow validator too.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fuzz/fuzz.hpp>
#include <fuzz/targets.hpp>

namespace {
const tooldecode::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--target=";
  tooldecode::fuzz::judges_schemas  = false;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument == "--judge") tooldecode::fuzz::judges_schemas = true;
    if (!argument.starts_with(option)) continue;
    chosen = tooldecode::fuzz::find_target(argument.substr(option.size()));
  }
  if (chosen != nullptr) return 0;
  std::fputs("which target?\n", stderr);
  for (const auto& target : tooldecode::fuzz::targets) {
    std::fprintf(stderr, "  %s%s\n", option.data(), target.name.data());
  }
  std::exit(1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return chosen->run(data, size);
}
