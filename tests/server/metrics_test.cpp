#include "server/metrics.h"

#include <gtest/gtest.h>

namespace whimbrel::http {
namespace {

TEST(Metrics, are_prometheus_text) {
  const Metric metric = {
      .name = "a_total", .help = "Help.", .samples = {{{{"route", "/v1\"\\\n"}}, 3}, {{}, 0.5}}
  };
  EXPECT_EQ(
      prometheus_text({metric}),
      "# HELP a_total Help.\n# TYPE a_total counter\n"
      "a_total{route=\"/v1\\\"\\\\\\n\"} 3\na_total 0.5\n"
  );
}

TEST(Metrics, a_histogram_counts_up_to_each_bound) {
  Histogram histogram({1, 2.5});
  for (const double value : {0.5, 1.0, 2.0, 7.0}) {
    histogram.observe(value);
  }
  EXPECT_EQ(histogram.cumulative_counts(), (std::vector<uint64_t>{2, 3, 4}));
  EXPECT_EQ(
      prometheus_text({}, {{.name = "a_seconds", .help = "Help.", .samples = {{{}, histogram}}}}),
      "# HELP a_seconds Help.\n# TYPE a_seconds histogram\n"
      "a_seconds_count 4\na_seconds_sum 10.5\n"
      "a_seconds_bucket{le=\"1\"} 2\na_seconds_bucket{le=\"2.5\"} 3\n"
      "a_seconds_bucket{le=\"+Inf\"} 4\n"
  );
}

TEST(Metrics, of_http_say_every_counter) {
  HttpCounters counters;
  counters.requests_begun = 7;
  counters.requests_by_outcome[Outcome::client_left] = 2;
  counters.requests_by_route[{"/health", 200}] = 5;
  const std::string text = prometheus_text(http_metrics(counters));
  EXPECT_NE(text.find("\nwhimbrel_http_requests_total 7\n"), std::string::npos);
  EXPECT_NE(
      text.find("\nwhimbrel_http_requests_ended_total{outcome=\"client_left\"} 2\n"),
      std::string::npos
  );
  EXPECT_NE(
      text.find("\nwhimbrel_http_answers_total{route=\"/health\",status=\"200\"} 5\n"),
      std::string::npos
  );
}

}  // namespace
}  // namespace whimbrel::http
