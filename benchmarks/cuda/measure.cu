#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <cuda_profiler_api.h>

#include <tooldecode/cuda/device.cuh>

#include "measure.hpp"

namespace cuda_benchmark {

namespace {

using tooldecode::cuda::check;

class Event {
 public:
  Event() { check(cudaEventCreate(&event_)); }
  Event(const Event&)            = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream)); }
  [[nodiscard]] double microseconds_since(const Event& start) const {
    check(cudaEventSynchronize(event_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Graph {
 public:
  template <class Work>
  Graph(cudaStream_t stream, Work work) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream, &graph));
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&graph_, graph, 0));
    check(cudaGraphDestroy(graph));
  }
  Graph(const Graph&)            = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { static_cast<void>(cudaGraphExecDestroy(graph_)); }

  void replay(cudaStream_t stream) { check(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

int Setup::sets(std::size_t bytes_per_set, std::size_t maximum) const {
  const std::size_t needed = 4 * cache_bytes / bytes_per_set + 1;
  return static_cast<int>(
      std::clamp<std::size_t>(needed, 1, std::clamp<std::size_t>(maximum, 1, 512)));
}

Timing time_calls(const Setup& setup, int sets, const Call& call) {
  constexpr double microseconds_of_graph = 3000, long_graph = 50'000;
  constexpr int max_calls = 2000;
  Event start, end;
  const auto time_work = [&](auto work) {
    start.record(setup.stream);
    work();
    end.record(setup.stream);
    return end.microseconds_since(start);
  };
  const auto call_all = [&] {
    for (int set = 0; set < sets; ++set) call(set, setup.stream);
  };
  call_all();  // loads the kernels
  if (setup.is_profile) {
    check(cudaDeviceSynchronize());
    check(cudaProfilerStart());
    call(0, setup.stream);
    check(cudaDeviceSynchronize());
    check(cudaProfilerStop());
    return {};
  }
  const double round = std::max(time_work(call_all), 1.0);
  const int rounds   = setup.is_small ? 1
                                      : std::clamp(static_cast<int>(microseconds_of_graph / round), 1,
                                                   std::max(1, max_calls / sets));
  Graph graph(setup.stream, [&] {
    for (int i = 0; i < rounds; ++i) call_all();
  });
  const int replays = setup.is_small ? 1 : round * rounds > long_graph ? 5 : 25;
  const int warm_up = setup.is_small ? 0 : 2;
  std::vector<double> samples;
  for (int i = 0; i < warm_up + replays; ++i) {
    const double microseconds = time_work([&] { graph.replay(setup.stream); });
    if (i >= warm_up) samples.push_back(microseconds / (rounds * sets));
  }
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size();
  const double median     = samples[count / 2];
  return {.microseconds = median,
          .spread       = (samples[count - 1 - count / 4] - samples[count / 4]) / median};
}

void require(bool met, const std::string& what) {
  if (!met) throw std::runtime_error(what);
}

void require_close(std::span<const double> got, std::span<const double> reference, double tolerance,
                   std::string_view what) {
  require(got.size() == reference.size() && !got.empty(),
          std::string(what) + ": nothing to compare");
  double error = 0, length = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = got[i] - reference[i];
    error += difference * difference;
    length += reference[i] * reference[i];
  }
  const double relative = std::sqrt(error / length);
  require(relative <= tolerance,  // false for NaN too
          std::string(what) + ": relative error " + std::to_string(relative));
}

}  // namespace cuda_benchmark
