#include "base/build_info.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "build_identity.h"

#if defined(__linux__)
#include <elf.h>
#include <link.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#endif

namespace whimbrel {

namespace {

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

#if defined(__linux__)

size_t padded(size_t size) {
  return (size + 3) / 4 * 4;
}

/// The GNU build-id in one segment of notes, or nothing.
std::span<const uint8_t> find_build_id(std::span<const uint8_t> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof(note));
    const size_t name = sizeof(note);
    const size_t content = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
        std::memcmp(notes.data() + name, "GNU", sizeof("GNU")) == 0) {
      return notes.subspan(content, note.n_descsz);
    }
    notes = notes.subspan(content + padded(note.n_descsz));
  }
  return {};
}

int read_program_id(dl_phdr_info* program, size_t, void* id) {
  for (const ElfW(Phdr) & header : std::span(program->dlpi_phdr, program->dlpi_phnum)) {
    if (header.p_type == PT_NOTE) {
      const auto* notes = reinterpret_cast<const uint8_t*>(program->dlpi_addr + header.p_vaddr);
      *static_cast<std::string*>(id) += hex(find_build_id({notes, header.p_memsz}));
    }
  }
  return 1;  // the program comes first; its libraries are of no interest
}

std::string read_build_id() {
  std::string id;
  dl_iterate_phdr(read_program_id, &id);
  return id;
}

#elif defined(__APPLE__)

std::string read_build_id() {
  const auto* header = reinterpret_cast<const mach_header_64*>(_dyld_get_image_header(0));
  const auto* bytes = reinterpret_cast<const uint8_t*>(header + 1);
  for (uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* command = reinterpret_cast<const load_command*>(bytes);
    if (command->cmd == LC_UUID) {
      return hex(reinterpret_cast<const uuid_command*>(bytes)->uuid);
    }
    bytes += command->cmdsize;
  }
  return {};
}

#else

std::string read_build_id() {
  return {};
}

#endif

}  // namespace

const BuildInfo& build_info() {
  static const BuildInfo info = [] {
    const std::string id = read_build_id();
    return BuildInfo{
        .version = WHIMBREL_VERSION,
        .commit = WHIMBREL_COMMIT,
        .dirty = WHIMBREL_DIRTY != 0,
        .build_id = id.empty() ? "unknown" : id,
        .compiler = WHIMBREL_COMPILER,
        .flags = WHIMBREL_FLAGS,
        .mlx = WHIMBREL_MLX_VERSION,
    };
  }();
  return info;
}

}  // namespace whimbrel
