#pragma once

#include <cstddef>
#include <cstdint>

namespace whimbrel::ops {

/// Reads every byte once; `bytes` is a multiple of 4096. What it returns only keeps the compiler
/// from leaving the loads out.
using ReadKernel = uint64_t (*)(const unsigned char* data, size_t bytes);

/// Does `rounds` rounds of one kind of multiply-adds, all operands in registers -> their number.
using MacKernel = uint64_t (*)(uint64_t rounds);

uint64_t read_plain(const unsigned char* data, size_t bytes);
uint64_t mac_plain(uint64_t rounds);

#if defined(__x86_64__)
// Each only where its instruction set is there (probe.cpp asks).
uint64_t read_avx2(const unsigned char* data, size_t bytes);
uint64_t read_avx2_prefetch(const unsigned char* data, size_t bytes);
uint64_t read_avx512(const unsigned char* data, size_t bytes);
uint64_t read_avx512_prefetch(const unsigned char* data, size_t bytes);
uint64_t read_avx512_streams(const unsigned char* data, size_t bytes);
uint64_t read_avx512_panels(const unsigned char* data, size_t bytes);

uint64_t mac_avx2_fma(uint64_t rounds);
uint64_t mac_avx2_maddubs(uint64_t rounds);
uint64_t mac_avxvnni(uint64_t rounds);
uint64_t mac_avx512_fma(uint64_t rounds);
uint64_t mac_avx512_vnni(uint64_t rounds);
uint64_t mac_avx512_bf16(uint64_t rounds);

uint64_t mac_amx_bf16(uint64_t rounds);
uint64_t mac_amx_int8(uint64_t rounds);
#endif

}  // namespace whimbrel::ops
