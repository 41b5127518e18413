/// \file
/// send_now: writes to a socket what it takes without a wait.
#pragma once

#include <cstddef>

#include <sys/socket.h>
#include <sys/types.h>

namespace program {

/// Where the system has no MSG_NOSIGNAL, such as macOS, writing to a closed socket does not end the
/// process either.
inline void ignore_closed_end([[maybe_unused]] int socket) {
#ifndef MSG_NOSIGNAL
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

/// Returns how many bytes were written, or -1 and errno.
inline ssize_t send_now(int socket, const char* text, std::size_t size) {
#ifdef MSG_NOSIGNAL
  return ::send(socket, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
#else
  return ::send(socket, text, size, MSG_DONTWAIT);
#endif
}

}  // namespace program
