/// \file
/// Stream, and CapturedGraph: work on a stream that is captured once and launched often.
#pragma once

#include <utility>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>

namespace tooldecode::cuda {

/// Owns a stream, which does not wait for the default stream, nor that for it.
///
/// \par Threads     a value of one owner
/// \par Errors      Error{device_failure} from the constructor and `wait`
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  Stream(const Stream&)            = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Owns a graph of the work that a function enqueues. The memory that the work refers to must
/// outlive it.
///
/// \par Complexity  construction calls the function once, and runs nothing
/// \par Threads     a value of one owner
/// \par Errors      Error{device_failure}, and what the function throws
class CapturedGraph {
 public:
  /// \param enqueue  enqueue(stream) must not wait for the device
  template <class Enqueue>
  CapturedGraph(const Stream& stream, Enqueue enqueue) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    try {
      enqueue(stream.get());
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream.get(), &graph));
      if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
      throw;
    }
    check(cudaStreamEndCapture(stream.get(), &graph));
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check(status);
  }
  CapturedGraph(CapturedGraph&& other) noexcept
      : executable_(std::exchange(other.executable_, nullptr)) {}
  CapturedGraph& operator=(CapturedGraph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  CapturedGraph(const CapturedGraph&)            = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() {
    if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
  }

  void launch(const Stream& stream) const { check(cudaGraphLaunch(executable_, stream.get())); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tooldecode::cuda
