// What a decoder that an attacker has taken over might do: part of variants of whimbrel-video and
// whimbrel-picture that only tests build. The file's last bytes name the attempt. Each must end the
// process; where one comes back, the file goes on to be decoded, is none, and is refused for that.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace sandbox {

void try_to_break_out(std::string_view bytes) {
  if (bytes.ends_with("open")) {
    open("/etc/passwd", O_RDONLY);
  } else if (bytes.ends_with("connect")) {
    socket(AF_INET, SOCK_STREAM, 0);
  } else if (bytes.ends_with("exec")) {
    execl("/bin/true", "true", nullptr);
  } else if (bytes.ends_with("fork")) {
    fork();
  } else if (bytes.ends_with("executable memory")) {
    mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  } else if (bytes.ends_with("write elsewhere")) {
    if (write(STDERR_FILENO, "x", 1) != 1) {
      std::abort();
    }
  } else if (bytes.ends_with("2 GiB")) {
    void* memory =
        mmap(nullptr, size_t{2} << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      __builtin_trap();  // unlike abort, no system call
    }
  } else if (bytes.ends_with("endless loop")) {
    for (;;) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // a loop that a compiler keeps
    }
  } else if (bytes.ends_with("silence")) {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }
}

}  // namespace sandbox
