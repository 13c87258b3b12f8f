#pragma once

#include <string_view>

// Files of this folder that are compiled in (cmake/whimbrel_embed.cmake), byte by byte.

namespace whimbrel::http {

extern const std::string_view kOpenApiFile;  // openapi.json
extern const std::string_view kPageHtml;     // page/index.html
extern const std::string_view kPageScript;   // page/app.js
extern const std::string_view kPageStyle;    // page/app.css

}  // namespace whimbrel::http
