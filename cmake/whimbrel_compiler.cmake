# Compiler flags that hold for every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the clone, so that a second clone on one machine hits the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE}
  )
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports both falsely inside the standard library at -O2 and above.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized)
endif()

if(WHIMBREL_SANITIZE)
  add_compile_options(
    -fsanitize=${WHIMBREL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
  )
  add_link_options(-fsanitize=${WHIMBREL_SANITIZE})
endif()
