#pragma once

#include <set>
#include <string>

#include "tests/server/serve.h"

namespace whimbrel::http::test {

/// Whether every path of the server, in every spelling and by every method, wants the key, but for
/// those that are public. `key` is one of the server's.
inline void expect_guarded(
    uint16_t port,
    const std::vector<Route>& routes,
    const std::set<std::string>& public_paths,
    const std::string& key
) {
  const std::vector<std::string> wrong_keys = {
      "",
      "Authorization: Bearer wrong\r\n",
      "Authorization: Bearer " + key + "x\r\n",
      "Authorization: Bearer " + key.substr(1) + "\r\n",
      "Authorization: Bearer\r\n",
      "Authorization: Basic " + key + "\r\n",
      "Authorization: " + key + "\r\n",
      "x-api-key: wrong\r\n",
      "x-api-key:\r\n",
      "Authorization: Bearer " + key + "\r\nx-api-key: wrong\r\n",
      "Authorization: Bearer wrong\r\nx-api-key: " + key + "\r\n",
      "Authorization: Basic wrong\r\nx-api-key: " + key + "\r\n",
  };
  for (const Route& route : routes) {
    std::string upper = route.path;
    for (char& c : upper) {
      c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    const std::vector<std::string> spellings = {
        route.path,
        route.path + "/",
        "/" + route.path,
        "/." + route.path,
        "/x/.." + route.path,
        "/%2e" + route.path,
        route.path + "%00",
        route.path + ";x",
        "/%" + fmt::format("{:02x}", static_cast<int>(route.path.back())) + route.path,
        upper
    };
    for (const std::string& path : spellings) {
      const bool is_public = public_paths.contains(path);
      for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "TRACE"}) {
        for (const std::string& fields : wrong_keys) {
          RawClient client(port);
          client.send(ask(method, path, fields + "Connection: close\r\n"));
          const auto got = client.receive_head();
          ASSERT_TRUE(got) << method << " " << path;
          if (is_public) {
            EXPECT_NE(got->status, 401) << method << " " << path << "\n" << fields;
          } else {
            EXPECT_EQ(got->status, 401) << method << " " << path << "\n" << fields;
          }
        }
      }
      const auto allowed =
          request_once(port, ask("GET", path, "x-api-key: " + key + "\r\nConnection: close\r\n"));
      EXPECT_NE(allowed->status, 401) << path;
      if (path != route.path) {
        EXPECT_EQ(allowed->status, 404) << path;
      }
    }
  }
}

}  // namespace whimbrel::http::test
