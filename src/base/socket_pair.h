#pragma once

#include <array>
#include <string_view>

namespace whimbrel {

/// The two ends of a local stream socket, to talk to a process that is about to be started. Neither
/// survives an exec, and where the system allows it neither raises SIGPIPE. Throws
/// Error(Fault::io, where).
std::array<int, 2> open_socket_pair(std::string_view where);

}  // namespace whimbrel
