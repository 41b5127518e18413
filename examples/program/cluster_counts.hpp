/// \file
/// ClusterCounts: counters of an EngineCluster.
#pragma once

#include <cstddef>
#include <string>

namespace program {

struct ClusterCounts {
  std::size_t requests = 0;
  std::size_t retries  = 0;
  std::size_t moved    = 0;  ///< retries on another engine
  std::size_t retold   = 0;  ///< outputs announced again to the engine of a retry
  std::string first_failure{};
};

}  // namespace program
