#include "engine/bench_rows.h"

#include <algorithm>
#include <numeric>

#include "engine/bench_statistics.h"

namespace whimbrel {

namespace {

/// Tokens in a cache that a decode's step attends to, on average over the steps.
double mean_context(const BenchCell& cell) {
  return cell.depth + (cell.tokens + 1) / 2.0;
}

/// Tokens that one sample stands for.
int tokens_of_sample(const BenchCell& cell) {
  return cell.kind == BenchKind::decode ? cell.rows : cell.tokens;
}

double macs_of_sample(const BenchCell& cell, const ModelWork& work, int64_t patches) {
  const double tower = work.patch_macs * static_cast<double>(patches);
  switch (cell.kind) {
    case BenchKind::prefill:
      return prefill_macs(work, cell.tokens, cell.depth);
    case BenchKind::decode:
      return cell.rows * (cell.doubled ? 2 : 1) *
             (work.layer_macs + work.head_macs + work.attention_macs * mean_context(cell));
    case BenchKind::tower:
      return tower;
    case BenchKind::first_token:
      return tower + prefill_macs(work, cell.tokens, cell.depth);
  }
  return 0;
}

/// Tokens a second of each repetition.
std::vector<double> repetition_rates(const BenchSamples& samples) {
  std::vector<double> rates;
  for (const std::vector<double>& times : samples.ms) {
    const double total = std::accumulate(times.begin(), times.end(), 0.0);
    const auto count = static_cast<double>(times.size());
    rates.push_back(tokens_of_sample(samples.cell) * count * 1000 / total);
  }
  return rates;
}

BenchRow timed_row(const BenchSamples& measured) {
  BenchRow row{.cell = measured.cell, .test = test_name(measured.cell), .samples = {}};
  for (const std::vector<double>& times : measured.ms) {
    row.samples.insert(row.samples.end(), times.begin(), times.end());
  }
  row.repetitions = static_cast<int>(measured.ms.size());
  const Statistics all = statistics(row.samples);
  row.ms = all.median;
  row.ms_min = all.min;
  row.ms_max = all.max;
  row.ms_mean = all.mean;
  row.ms_stddev = all.stddev;
  row.peak_memory = measured.peak_memory;
  return row;
}

void add_rates(BenchRow& row, const BenchSamples& measured) {
  if (row.cell.kind != BenchKind::prefill && row.cell.kind != BenchKind::decode) {
    return;
  }
  const Statistics rates = statistics(repetition_rates(measured));
  row.tok_s = tokens_of_sample(row.cell) * 1000 / row.ms;
  row.tok_s_mean = rates.mean;
  row.tok_s_stddev = rates.stddev;
}

void add_bytes(BenchRow& row, const ModelWork& work, double read_gb_s) {
  if (row.cell.kind != BenchKind::decode) {
    return;
  }
  const double step =
      step_bytes(work, row.cell.rows, mean_context(row.cell)) * (row.cell.doubled ? 2 : 1);
  row.bytes_per_token = step / row.cell.rows;
  row.bandwidth_fraction = step / (row.ms / 1000) / (read_gb_s * 1e9);
}

bool same_curve(const BenchCell& a, const BenchCell& b) {
  return a.kind == b.kind && a.tokens == b.tokens && a.rows == b.rows &&
         a.behind_image == b.behind_image && a.doubled == b.doubled;
}

void add_deltas(std::vector<BenchRow>& rows, const ModelWork& work, double read_gb_s) {
  for (BenchRow& row : rows) {
    if (row.cell.kind != BenchKind::decode) {
      continue;
    }
    const BenchRow* nearest = &row;
    for (const BenchRow& other : rows) {
      if (same_curve(other.cell, row.cell) && other.cell.depth < nearest->cell.depth) {
        nearest = &other;
      }
    }
    const double tokens = row.cell.rows * (mean_context(row.cell) - mean_context(nearest->cell));
    row.delta_ms = row.ms - nearest->ms;
    row.delta_floor_ms = tokens * static_cast<double>(work.kv_bytes) / (read_gb_s * 1e9) * 1000;
  }
}

}  // namespace

double BenchProbe::read_gb_s() const {
  std::vector<double> values;
  for (const ops::ReadBandwidth& read : reads) {
    values.push_back(read.gb_s);
  }
  return statistics(values).median;
}

std::vector<ops::ArithmeticPeak> BenchProbe::median_peaks() const {
  std::vector<ops::ArithmeticPeak> medians = peaks.front();
  for (size_t kind = 0; kind < medians.size(); ++kind) {
    std::vector<double> one;
    std::vector<double> all;
    for (const std::vector<ops::ArithmeticPeak>& measured : peaks) {
      one.push_back(measured[kind].one_thread);
      all.push_back(measured[kind].all_threads);
    }
    medians[kind].one_thread = statistics(one).median;
    medians[kind].all_threads = statistics(all).median;
  }
  return medians;
}

std::vector<BenchRow> bench_rows(
    const std::vector<BenchSamples>& samples,
    const ModelWork& work,
    const BenchProbe& probe,
    int64_t patches
) {
  const double read_gb_s = probe.read_gb_s();
  const double peak = ops::fastest_floating(probe.median_peaks()).all_threads;
  std::vector<BenchRow> rows;
  for (const BenchSamples& measured : samples) {
    BenchRow row = timed_row(measured);
    add_rates(row, measured);
    add_bytes(row, work, read_gb_s);
    row.peak_fraction = macs_of_sample(row.cell, work, patches) / (row.ms / 1000) / (peak * 1e9);
    rows.push_back(std::move(row));
  }
  add_deltas(rows, work, read_gb_s);
  return rows;
}

}  // namespace whimbrel
