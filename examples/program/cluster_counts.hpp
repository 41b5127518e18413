/// \file
/// ClusterCounts: what asking several engines as one took.
#pragma once

#include <cstddef>
#include <string>

namespace program {

/// What an EngineCluster had to do.
struct ClusterCounts {
  std::size_t requests = 0;
  std::size_t retries  = 0;
  std::size_t moved    = 0;  ///< retries on another engine
  std::size_t retold   = 0;  ///< outputs told again to the engine of a retry
  std::string first_failure{};
};

}  // namespace program
