// Measures the CUDA kernels against the time to move the memory that they must move, at the copy
// bandwidth of the same run, and against cuBLAS and CUB. Results are verified before they are
// timed. run.sh builds it, runs it with the tests and compares with PyTorch too.
//
//   benchmark_cuda [--json FILE] [--commit TEXT] [--driver TEXT] [--date TEXT] [--command TEXT]
//   [--made-by JSON] [--small] [--only TEXT] [--profile]
//
// FILE is rewritten after each kernel, so that a run that ends early keeps its measurements.
// `--small` uses sizes for memory checkers; its times mean nothing. `--only` measures what has TEXT
// in its name. `--profile` calls each kernel once, between cudaProfilerStart and cudaProfilerStop,
// for `ncu --profile-from-start off`, and prints no times.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <tooldecode/cuda/device.cuh>

#include "peers.hpp"
#include "questions.hpp"

namespace {

using namespace cuda_benchmark;
using tooldecode::cuda::check;

struct Options {
  std::string json;
  std::string commit;
  std::string driver;
  std::string date;
  std::string command = "benchmark_cuda";
  std::string made_by;
  std::string only;
  bool is_small   = false;
  bool is_profile = false;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view flag = arguments[i];
    std::string* value          = flag == "--json"      ? &options.json
                                  : flag == "--commit"  ? &options.commit
                                  : flag == "--driver"  ? &options.driver
                                  : flag == "--date"    ? &options.date
                                  : flag == "--command" ? &options.command
                                  : flag == "--made-by" ? &options.made_by
                                  : flag == "--only"    ? &options.only
                                                        : nullptr;
    if (flag == "--small") {
      options.is_small = true;
    } else if (flag == "--profile") {
      options.is_profile = true;
    } else if (value != nullptr && i + 1 < count) {
      *value = arguments[++i];
    } else {
      std::fprintf(stderr,
                   "usage: benchmark_cuda [--json FILE] [--commit TEXT] [--driver TEXT] "
                   "[--date TEXT] [--command TEXT] [--made-by JSON] [--small] "
                   "[--only TEXT] [--profile]\n");
      std::exit(2);
    }
  }
  return options;
}

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

int run(const Options& options) {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0));
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime));
  check(cudaDriverGetVersion(&driver));
  const Report::Origin origin{.machine = device.name,
                              .cuda    = version(runtime) + ", driver for " + version(driver),
                              .driver  = options.driver,
                              .cublas  = Cublas::version(),
                              .cub     = CubSort::version(),
                              .date    = options.date,
                              .commit  = options.commit,
                              .command = options.command,
                              .made_by = options.made_by};

  Setup setup{.cache_bytes = static_cast<std::size_t>(device.l2CacheSize),
              .is_small    = options.is_small,
              .is_profile  = options.is_profile};
  check(cudaStreamCreate(&setup.stream));
  setup.ceilings = setup.is_profile ? Ceilings{1, 1, 1} : measure_ceilings(setup);
  const auto& c  = setup.ceilings;
  std::printf("%s, CUDA %s: copies %.0f GB/s (read and written), reads %.0f GB/s, ", device.name,
              origin.cuda.c_str(), c.copy_bandwidth / 1e3, c.read_bandwidth / 1e3);
  std::printf("BF16 products %.0f TFLOP/s\n", c.matmul_rate / 1e6);
  std::printf(
      "floor: the bytes that must be read and written at the copy bandwidth; for attention also its\n"
      "       operations at the rate of BF16 products, if they take longer\n");
  if (!Cublas::is_available()) std::printf("SKIPPED: cuBLAS, not found when this was built\n");

  Report report(c, options.only);
  for (const auto ask :
       {ask_pruned_head, ask_masked_softmax, ask_tree_attention, ask_draft_round}) {
    ask(setup, report);
    if (!options.json.empty()) report.write(options.json, origin);
  }
  if (!options.is_profile) report.print_verdicts();
  return report.has_failures() ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  int devices           = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was measured\n");
    return 3;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
