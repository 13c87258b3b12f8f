#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

/// A key, and a certificate that it signed itself, in a folder of the test's.
class Certificate {
 public:
  Certificate() : folder_(testing::TempDir() + "whimbrel_tls_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    FILE* key_out = std::fopen(key_file().c_str(), "w");
    PEM_write_PrivateKey(key_out, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(key_out);
    FILE* certificate_out = std::fopen(certificate_file().c_str(), "w");
    PEM_write_X509(certificate_out, certificate);
    std::fclose(certificate_out);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~Certificate() { std::filesystem::remove_all(folder_); }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  std::string key_file() const { return folder_ + "/key.pem"; }
  std::string certificate_file() const { return folder_ + "/certificate.pem"; }

 private:
  std::string folder_;
};

/// Sends bytes over TLS, and gives all that comes until the server closes.
std::string exchange_over_tls(uint16_t port, const std::string& bytes) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  BIO* connection = BIO_new_ssl_connect(context);
  BIO_set_conn_hostname(connection, ("127.0.0.1:" + std::to_string(port)).c_str());
  std::string answer;
  if (BIO_write(connection, bytes.data(), static_cast<int>(bytes.size())) > 0) {
    char piece[4096];
    for (int count = BIO_read(connection, piece, sizeof piece); count > 0;
         count = BIO_read(connection, piece, sizeof piece)) {
      answer.append(piece, static_cast<size_t>(count));
    }
  }
  BIO_free_all(connection);
  SSL_CTX_free(context);
  return answer;
}

TEST(Tls, serves_requests_and_streams) {
  const Certificate certificate;
  TestServer server(
      {public_route(
           "POST", "/a", [](const ExchangePtr& e) { e->respond({.body = e->request().body}); }
       ),
       public_route(
           "GET",
           "/s",
           [](const ExchangePtr& e) {
             e->start_stream({});
             e->write("data: 1\n\n");
             e->finish();
           }
       )},
      {.tls_cert = certificate.certificate_file(), .tls_key = certificate.key_file()}
  );
  EXPECT_TRUE(server->url().starts_with("https://127.0.0.1:"));
  const std::string body(300'000, 'x');
  EXPECT_TRUE(exchange_over_tls(server.port(), post("/a", body, "Connection: close\r\n"))
                  .ends_with("\r\n\r\n" + body));
  EXPECT_TRUE(exchange_over_tls(server.port(), ask("GET", "/s", "Connection: close\r\n"))
                  .ends_with("data: 1\n\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(exchange_over_tls(server.port(), "GET / HTTP/1.1\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(server.all_ended());
  EXPECT_TRUE(server->drain(seconds(30)));
}

TEST(Tls, a_client_that_speaks_plainly_or_not_at_all_is_closed) {
  const Certificate certificate;
  TestServer server(
      {public_route("GET", "/", answer("{}"))},
      {.limits = {.header_time = milliseconds(200)},
       .tls_cert = certificate.certificate_file(),
       .tls_key = certificate.key_file()}
  );
  RawClient plain(server.port());
  plain.send(ask("GET", "/"));
  const std::optional<std::string> got = plain.receive_all();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->find("HTTP/1.1"), std::string::npos);
  RawClient silent(server.port());
  EXPECT_EQ(silent.receive_all(), "");
  EXPECT_TRUE(
      exchange_over_tls(server.port(), ask("GET", "/", "Connection: close\r\n")).ends_with("{}")
  );
}

}  // namespace
}  // namespace whimbrel::http::test
