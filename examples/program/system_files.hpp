/// \file
/// find_line, peak_memory_bytes: read the system's own files.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace program {

/// The text after `key` and separators in the first line of a file that begins with it, or
/// "unknown".
inline std::string find_line(const std::string& path, std::string_view key,
                             std::string_view separators) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(separators, key.size());
    const std::size_t end   = line.find_last_not_of("\" \t");
    if (begin != std::string::npos && end >= begin) return line.substr(begin, end + 1 - begin);
  }
  return "unknown";
}

/// The peak resident memory of this process; 0 if the system does not report it.
///
/// getrusage is not used: it also counts the copy of the parent process before this program was
/// executed.
inline std::size_t peak_memory_bytes() {
  const std::string kilobytes = find_line("/proc/self/status", "VmHWM:", "\t ");
  return 1024 * static_cast<std::size_t>(std::strtoull(kilobytes.c_str(), nullptr, 10));
}

}  // namespace program
