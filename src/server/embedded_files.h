#pragma once

#include <string_view>

// Files of this folder that are compiled in (cmake/whimbrel_embed.cmake), byte by byte.

namespace whimbrel::http {

extern const std::string_view openapi_file;  // openapi.json
extern const std::string_view page_html;     // page/index.html
extern const std::string_view page_script;   // page/app.js
extern const std::string_view page_style;    // page/app.css

}  // namespace whimbrel::http
