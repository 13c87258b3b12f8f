#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/access_log.h"

namespace whimbrel::http {

/// Counts of observations by upper bound. Not for several threads at once.
class Histogram {
 public:
  /// `bounds`: rising; one more for all beyond is kept.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  /// Observations at most as large as each bound, then all.
  std::vector<uint64_t> cumulative_counts() const;
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

/// One number of a metric, and what it is of.
struct Sample {
  Labels labels = {};
  double value = 0;
};

enum class MetricKind { counter, gauge };

struct Metric {
  std::string name = {};
  std::string help = {};
  MetricKind kind = MetricKind::counter;
  std::vector<Sample> samples = {};
};

struct HistogramMetric {
  std::string name = {};
  std::string help = {};
  std::vector<std::pair<Labels, Histogram>> samples = {};
};

/// Prometheus' text format, version 0.0.4.
std::string prometheus_text(
    const std::vector<Metric>& metrics, const std::vector<HistogramMetric>& histograms = {}
);

inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

/// A server's numbers as metrics `whimbrel_http_…`.
std::vector<Metric> http_metrics(const HttpCounters& counters);

}  // namespace whimbrel::http
