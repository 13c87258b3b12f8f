#include "ops/cpu/isa.h"

#include <algorithm>
#include <array>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/error.h"

namespace whimbrel::ops::cpu {

namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "scalar", "neon", "avx2", "avxvnni", "avx512", "avx512bf16", "amx"
};

#if defined(__x86_64__)

/// Asks the kernel for the tiles' registers; a process has to, once.
bool tiles_granted() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

struct CpuidLeaf {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

CpuidLeaf cpuid(unsigned leaf, unsigned subleaf) {
  CpuidLeaf found;
  __asm__ volatile("cpuid"
                   : "=a"(found.eax), "=b"(found.ebx), "=c"(found.ecx), "=d"(found.edx)
                   : "a"(leaf), "c"(subleaf));
  return found;
}

// What __builtin_cpu_supports of the oldest supported compilers does not know.
bool has_avxvnni() {
  return cpuid(0, 0).eax >= 7 && (cpuid(7, 1).eax & (1U << 4)) != 0;
}

bool has_f16c() {
  return (cpuid(1, 0).ecx & (1U << 29)) != 0;
}

bool has_amx() {
  constexpr unsigned kBf16AndTilesAndInt8 = (1U << 22) | (1U << 24) | (1U << 25);
  return cpuid(0, 0).eax >= 7 && (cpuid(7, 0).edx & kBf16AndTilesAndInt8) == kBf16AndTilesAndInt8;
}

std::vector<Isa> find_isas() {
  std::vector<Isa> found = {Isa::scalar};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) {
    return found;
  }
  found.push_back(Isa::avx2);
  if (has_avxvnni()) {
    found.push_back(Isa::avxvnni);
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512vnni")) {
    return found;
  }
  found.push_back(Isa::avx512);
  if (!__builtin_cpu_supports("avx512bf16")) {
    return found;
  }
  found.push_back(Isa::avx512bf16);
  if (has_amx() && tiles_granted()) {
    found.push_back(Isa::amx);
  }
  return found;
}

#elif defined(__aarch64__)

bool has_dot_products() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return true;  // as every Mac has
#endif
}

std::vector<Isa> find_isas() {
  std::vector<Isa> found = {Isa::scalar};
  if (has_dot_products()) {
    found.push_back(Isa::neon);
  }
  return found;
}

#else

std::vector<Isa> find_isas() {
  return {Isa::scalar};
}

#endif

std::string names_of(const std::vector<Isa>& isas) {
  std::string names;
  for (const Isa isa : isas) {
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  return names;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return kNames[static_cast<size_t>(isa)];
}

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = find_isas();
  return isas;
}

Isa choose_isa(std::string_view requested) {
  const std::vector<Isa>& offered = available_isas();
  if (requested.empty()) {
    return offered.back();
  }
  const auto named = [requested](Isa isa) { return isa_name(isa) == requested; };
  const auto found = std::ranges::find_if(offered, named);
  if (found == offered.end()) {
    throw Error(
        Fault::usage,
        "WHIMBREL_ISA",
        "got \"{}\", expected one that this CPU offers: {}",
        requested,
        names_of(offered)
    );
  }
  return *found;
}

}  // namespace whimbrel::ops::cpu
