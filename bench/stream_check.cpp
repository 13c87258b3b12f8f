// A second opinion on the read bandwidth that `whimbrel bench` measures, after the manner of STREAM
// (J. McCalpin): three arrays of doubles far larger than the caches, static slices, best of ten
// passes; a sum in place of STREAM's four kernels, because decoding only reads. Shares nothing with
// whimbrel's own probe.
//
//   g++ -O3 -march=native -fopenmp -ffast-math bench/stream_check.cpp -o stream_check &&
//   ./stream_check

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main() {
  constexpr long kDoubles = 64L << 20;  // 512 MiB an array
  constexpr int kPasses = 10;
  std::vector<double> arrays[3];
  for (std::vector<double>& array : arrays) {
    array.resize(kDoubles);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < kDoubles; ++i) {
      array[i] = 1;
    }
  }
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double* data = arrays[pass % 3].data();
    double sum = 0;
    const double begin = omp_get_wtime();
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < kDoubles; ++i) {
      sum += data[i];
    }
    const double seconds = omp_get_wtime() - begin;
    if (sum != static_cast<double>(kDoubles)) {
      std::printf("wrong sum\n");
      return 1;
    }
    best = std::max(best, kDoubles * sizeof(double) / seconds / 1e9);
  }
  std::printf("read %.2f GB/s, %d threads\n", best, omp_get_max_threads());
}
