#include "base/socket_pair.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace whimbrel {

std::array<int, 2> open_socket_pair(std::string_view where) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    throw Error(Fault::io, where, "opening a socket failed: {}", std::strerror(errno));
  }
  for (const int end : ends) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
    const int on = 1;
    setsockopt(end, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  }
  return ends;
}

}  // namespace whimbrel
