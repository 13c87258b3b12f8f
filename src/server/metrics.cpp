#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

namespace whimbrel::http {

namespace {

prometheus::ClientMetric labelled(const Labels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) {
    metric.label.push_back({name, value});
  }
  return metric;
}

prometheus::MetricFamily family_of(const Metric& metric) {
  const bool is_counter = metric.kind == MetricKind::counter;
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  for (const Sample& sample : metric.samples) {
    prometheus::ClientMetric line = labelled(sample.labels);
    (is_counter ? line.counter.value : line.gauge.value) = sample.value;
    family.metric.push_back(std::move(line));
  }
  return family;
}

prometheus::ClientMetric metric_of(const Labels& labels, const Histogram& histogram) {
  prometheus::ClientMetric line = labelled(labels);
  const std::vector<uint64_t> counts = histogram.cumulative_counts();
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    line.histogram.bucket.push_back({counts[i], histogram.bounds()[i]});
  }
  line.histogram.sample_count = counts.back();
  line.histogram.sample_sum = histogram.sum();
  return line;
}

prometheus::MetricFamily family_of(const HistogramMetric& metric) {
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = prometheus::MetricType::Histogram;
  for (const auto& [labels, histogram] : metric.samples) {
    family.metric.push_back(metric_of(labels, histogram));
  }
  return family;
}

Metric single(const char* name, const char* help, MetricKind kind, uint64_t value) {
  return {
      .name = name, .help = help, .kind = kind, .samples = {{.value = static_cast<double>(value)}}
  };
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

std::vector<uint64_t> Histogram::cumulative_counts() const {
  std::vector<uint64_t> cumulative;
  uint64_t count = 0;
  for (const uint64_t more : counts_) {
    cumulative.push_back(count += more);
  }
  return cumulative;
}

std::string prometheus_text(
    const std::vector<Metric>& metrics, const std::vector<HistogramMetric>& histograms
) {
  std::vector<prometheus::MetricFamily> families;
  for (const Metric& metric : metrics) {
    families.push_back(family_of(metric));
  }
  for (const HistogramMetric& metric : histograms) {
    families.push_back(family_of(metric));
  }
  return prometheus::TextSerializer().Serialize(families);
}

std::vector<Metric> http_metrics(const HttpCounters& counters) {
  using enum MetricKind;
  Metric outcomes = {
      .name = "whimbrel_http_requests_ended_total", .help = "Requests by how they ended."
  };
  for (const auto& [outcome, requests] : counters.requests_by_outcome) {
    outcomes.samples.push_back(
        {{{"outcome", std::string(name_of(outcome))}}, static_cast<double>(requests)}
    );
  }
  Metric answers = {
      .name = "whimbrel_http_answers_total",
      .help = "Requests by route and status; status 0: no answer was begun."
  };
  for (const auto& [key, requests] : counters.requests_by_route) {
    answers.samples.push_back(
        {{{"route", key.first}, {"status", std::to_string(key.second)}},
         static_cast<double>(requests)}
    );
  }
  return {
      single(
          "whimbrel_http_connections_total",
          "Connections accepted.",
          counter,
          counters.connections_accepted
      ),
      single(
          "whimbrel_http_connections_refused_total",
          "Connections beyond the bound.",
          counter,
          counters.connections_refused
      ),
      single(
          "whimbrel_http_accept_failures_total",
          "Connections that could not be accepted.",
          counter,
          counters.accept_failures
      ),
      single(
          "whimbrel_http_internal_failures_total",
          "Exceptions that ended a connection.",
          counter,
          counters.internal_failures
      ),
      single("whimbrel_http_connections", "Connections open.", gauge, counters.connections_open),
      single("whimbrel_http_requests_total", "Requests begun.", counter, counters.requests_begun),
      single("whimbrel_http_requests", "Requests open.", gauge, counters.requests_open),
      single(
          "whimbrel_http_body_bytes_total", "Bytes of request bodies.", counter, counters.body_bytes
      ),
      single("whimbrel_http_sent_bytes_total", "Bytes sent.", counter, counters.sent_bytes),
      outcomes,
      answers
  };
}

}  // namespace whimbrel::http
