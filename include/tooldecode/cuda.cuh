/// \file
/// The kernels, for users; the library never includes it. FrequencyRanks on the device, which needs Thrust and
/// with it seconds of compile time, is <tooldecode/cuda/frequency_ranks.cuh>.
#pragma once

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>
