#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "server/api_error.h"

namespace whimbrel::wire {

/// The field that a refusal names, after a look at its status and message; "taken" where there is
/// none, "500" where a client would see a failure of the server.
inline std::string refused_field(const std::function<void()>& parse) {
  try {
    parse();
    return "taken";
  } catch (const http::ApiException& exception) {
    EXPECT_EQ(http::status_of(exception.error().kind), 400) << exception.what();
    EXPECT_NE(exception.error().message.find("got "), std::string::npos) << exception.what();
    EXPECT_LT(exception.error().message.size(), 400U);
    return exception.error().param;
  } catch (const std::exception& exception) {
    return std::string("500: ") + exception.what();
  }
}

}  // namespace whimbrel::wire
