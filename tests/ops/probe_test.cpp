// The probes of the machine: what they give must be possible, and complete.

#include "ops/cpu/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/cores.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/probe_kernels.h"

namespace whimbrel::ops {
namespace {

bool is_here(cpu::Isa isa) {
  return std::ranges::count(cpu::available_isas(), isa) != 0;
}

TEST(BandwidthProbe, measures_and_then_repeats_what_was_best) {
  BandwidthProbe probe(size_t{8} << 20);
  const ReadBandwidth first = probe.measure();
  EXPECT_GT(first.gb_s, 0.1);
  EXPECT_GE(first.threads, 1);
  EXPECT_LE(first.threads, usable_cores());
  const ReadBandwidth second = probe.measure();
  EXPECT_EQ(second.pattern, first.pattern);
  EXPECT_EQ(second.threads, first.threads);
}

TEST(ArithmeticPeaks, name_each_kind_once_and_are_positive) {
  std::set<std::string_view> kinds;
  const std::vector<ArithmeticPeak> peaks = measure_arithmetic();
  for (const ArithmeticPeak& peak : peaks) {
    EXPECT_TRUE(kinds.insert(peak.kind).second) << peak.kind;
    EXPECT_GT(peak.one_thread, 0) << peak.kind;
    EXPECT_GT(peak.all_threads, 0) << peak.kind;
  }
  EXPECT_TRUE(kinds.contains("plain"));
  EXPECT_EQ(kinds.contains("avx512_vnni"), is_here(cpu::Isa::avx512));
  EXPECT_EQ(kinds.contains("amx_bf16"), is_here(cpu::Isa::amx));
  EXPECT_TRUE(fastest_floating(peaks).floating);
}

TEST(ArithmeticPeaks, the_fastest_is_the_fastest_floating_one) {
  const std::vector<ArithmeticPeak> peaks = {
      {"slow", true, 1, 2}, {"integers", false, 8, 16}, {"fast", true, 2, 4}
  };
  EXPECT_EQ(fastest_floating(peaks).kind, "fast");
}

TEST(ReadKernels, read_every_byte) {
  constexpr size_t kArea = 8 * 16384;  // what the largest pattern reads side by side
  constexpr size_t kBytes = kArea + 3 * 4096;
  alignas(64) static unsigned char data[kBytes + 8192] = {};  // prefetches may run on behind
  for (const size_t at : {size_t{0}, size_t{63}, size_t{20000}, kArea - 1, kArea, kBytes - 1}) {
    data[at] = 1;
    EXPECT_NE(read_plain(data, kBytes), 0U);
#if defined(__x86_64__)
    if (is_here(cpu::Isa::avx2)) {
      EXPECT_NE(read_avx2(data, kBytes), 0U);
      EXPECT_NE(read_avx2_prefetch(data, kBytes), 0U);
    }
    if (is_here(cpu::Isa::avx512)) {
      EXPECT_NE(read_avx512(data, kBytes), 0U);
      EXPECT_NE(read_avx512_prefetch(data, kBytes), 0U);
      EXPECT_NE(read_avx512_streams(data, kBytes), 0U);
      EXPECT_NE(read_avx512_panels(data, kBytes), 0U);
    }
#endif
    data[at] = 0;
    EXPECT_EQ(read_plain(data, kBytes), 0U);
  }
}

}  // namespace
}  // namespace whimbrel::ops
