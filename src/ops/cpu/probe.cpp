#include "ops/cpu/probe.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>

#include "base/cores.h"
#include "base/error.h"
#include "ops/cpu/isa.h"
#include "ops/cpu/probe_kernels.h"

namespace whimbrel::ops {

namespace {

struct ReadPattern {
  std::string_view name;
  ReadKernel run;
};

struct MacKind {
  std::string_view name;
  bool floating;
  MacKernel run;
};

[[maybe_unused]] bool offers(cpu::Isa isa) {
  return std::ranges::count(cpu::available_isas(), isa) != 0;
}

std::vector<ReadPattern> read_patterns() {
  std::vector<ReadPattern> patterns = {{"plain", read_plain}};
#if defined(__x86_64__)
  if (offers(cpu::Isa::avx2)) {
    patterns.push_back({"avx2", read_avx2});
    patterns.push_back({"avx2_prefetch", read_avx2_prefetch});
  }
  if (offers(cpu::Isa::avx512)) {
    patterns.push_back({"avx512", read_avx512});
    patterns.push_back({"avx512_prefetch", read_avx512_prefetch});
    patterns.push_back({"avx512_streams", read_avx512_streams});
    patterns.push_back({"avx512_panels", read_avx512_panels});
  }
#endif
  return patterns;
}

std::vector<MacKind> mac_kinds() {
  std::vector<MacKind> kinds = {{"plain", true, mac_plain}};
#if defined(__x86_64__)
  const auto add_if = [&kinds](cpu::Isa isa, MacKind kind) {
    if (offers(isa)) {
      kinds.push_back(kind);
    }
  };
  add_if(cpu::Isa::avx2, {"avx2_fma", true, mac_avx2_fma});
  add_if(cpu::Isa::avx2, {"avx2_maddubs", false, mac_avx2_maddubs});
  add_if(cpu::Isa::avxvnni, {"avx_vnni", false, mac_avxvnni});
  add_if(cpu::Isa::avx512, {"avx512_fma", true, mac_avx512_fma});
  add_if(cpu::Isa::avx512, {"avx512_vnni", false, mac_avx512_vnni});
  add_if(cpu::Isa::avx512bf16, {"avx512_bf16", true, mac_avx512_bf16});
  add_if(cpu::Isa::amx, {"amx_bf16", true, mac_amx_bf16});
  add_if(cpu::Isa::amx, {"amx_int8", false, mac_amx_int8});
#endif
  return kinds;
}

using Clock = std::chrono::steady_clock;

/// Runs `work(thread)` on that many threads, started together -> seconds from the first one's
/// start to the last one's end, by their own clocks: this thread may sleep through all of it.
double seconds_on(int threads, const std::function<void(int)>& work) {
  std::barrier ready(threads);
  std::vector<Clock::time_point> begins(static_cast<size_t>(threads));
  std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
  std::vector<std::jthread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&, i] {
      ready.arrive_and_wait();
      begins[static_cast<size_t>(i)] = Clock::now();
      work(i);
      ends[static_cast<size_t>(i)] = Clock::now();
    });
  }
  pool.clear();  // joins
  const auto first = *std::ranges::min_element(begins);
  const auto last = *std::ranges::max_element(ends);
  return std::chrono::duration<double>(last - first).count();
}

/// Memory in huge pages where the system gives some, written to, so that pages are really there.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : mapped_(bytes + kHugePage) {
    map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) {
      throw Error(
          Fault::memory,
          "bandwidth probe",
          "got no {} MiB for a buffer to read, expected them to be free; end other programs",
          mapped_ >> 20
      );
    }
    const auto address = reinterpret_cast<uintptr_t>(map_);
    data_ = reinterpret_cast<unsigned char*>((address + kHugePage - 1) / kHugePage * kHugePage);
#if defined(MADV_HUGEPAGE)
    madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    std::memset(data_, 1, bytes);
  }
  ~Buffer() { munmap(map_, mapped_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const unsigned char* data() const { return data_; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;

  size_t mapped_;
  void* map_;
  unsigned char* data_;
};

/// Bytes a second of the best of some passes, a slice for each thread.
double best_pass(const Buffer& buffer, size_t bytes, const ReadPattern& pattern, int threads) {
  constexpr int kPasses = 4;
  constexpr size_t kPage = 4096;
  const size_t slice = bytes / static_cast<size_t>(threads) / kPage * kPage;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = seconds_on(threads, [&](int thread) {
      [[maybe_unused]] volatile uint64_t sink =
          pattern.run(buffer.data() + static_cast<size_t>(thread) * slice, slice);
    });
    best = std::max(best, static_cast<double>(slice) * threads / seconds);
  }
  return best;
}

/// 1, 2, 4 and so on, and all.
std::vector<int> thread_counts() {
  const int all = usable_cores();
  std::vector<int> counts;
  for (int count = 1; count < all; count *= 2) {
    counts.push_back(count);
  }
  counts.push_back(all);
  return counts;
}

/// Multiply-adds a second of all threads together, the best of some runs of a few milliseconds.
double mac_rate(const MacKind& kind, int threads) {
  constexpr double kLeastSeconds = 0.005;
  constexpr int kRuns = 3;
  uint64_t rounds = 1 << 10;
  double best = 0;
  for (int run = 0; run < kRuns;) {
    std::vector<uint64_t> macs(static_cast<size_t>(threads), 0);
    const double seconds = seconds_on(threads, [&](int thread) {
      macs[static_cast<size_t>(thread)] = kind.run(rounds);
    });
    if (seconds < kLeastSeconds) {
      rounds *= 2;
      continue;
    }
    best = std::max(best, static_cast<double>(macs[0]) * threads / seconds);
    ++run;
  }
  return best;
}

}  // namespace

ReadBandwidth BandwidthProbe::measure() {
  const Buffer buffer(bytes_);
  const bool first = best_.threads == 0;
  ReadBandwidth fastest;
  for (const ReadPattern& pattern : read_patterns()) {
    for (const int threads : thread_counts()) {
      if (first || (pattern.name == best_.pattern && threads == best_.threads)) {
        const double gb_s = best_pass(buffer, bytes_, pattern, threads) / 1e9;
        fastest = gb_s > fastest.gb_s ? ReadBandwidth{gb_s, pattern.name, threads} : fastest;
      }
    }
  }
  return best_ = fastest;
}

std::vector<ArithmeticPeak> measure_arithmetic() {
  std::vector<ArithmeticPeak> peaks;
  for (const MacKind& kind : mac_kinds()) {
    peaks.push_back({
        .kind = kind.name,
        .floating = kind.floating,
        .one_thread = mac_rate(kind, 1) / 1e9,
        .all_threads = mac_rate(kind, usable_cores()) / 1e9,
    });
  }
  return peaks;
}

const ArithmeticPeak& fastest_floating(const std::vector<ArithmeticPeak>& peaks) {
  const auto rank = [](const ArithmeticPeak& peak) {
    return peak.floating ? peak.all_threads : -1.0;
  };
  return *std::ranges::max_element(peaks, {}, rank);
}

}  // namespace whimbrel::ops
