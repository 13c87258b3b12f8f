# Libraries from outside. Versions: MLX by tools/requirements.txt, the rest by the system.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(Boost 1.81 REQUIRED)  # Beast and Asio: headers only
pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(edit REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(images REQUIRED IMPORTED_TARGET libjpeg libpng libwebp)

pkg_check_modules(ffmpeg REQUIRED IMPORTED_TARGET libavformat libavcodec libavutil libswscale)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
endif()

find_library(GIF_LIBRARY gif REQUIRED)
target_link_libraries(PkgConfig::images INTERFACE ${GIF_LIBRARY})

# MLX comes as a Python wheel; its own CMake config says where it is.
set(WHIMBREL_MLX_VERSION 0.32.4)
set(WHIMBREL_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "Python that has the mlx wheel")
if(NOT MLX_DIR)
  execute_process(
    COMMAND ${WHIMBREL_PYTHON} -m mlx --cmake-dir
    OUTPUT_VARIABLE mlx_root
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
  )
  set(MLX_DIR ${mlx_root}/share/cmake/MLX CACHE PATH "Folder of MLXConfig.cmake" FORCE)
endif()
find_package(MLX CONFIG REQUIRED)
if(NOT MLX_VERSION VERSION_EQUAL WHIMBREL_MLX_VERSION)
  message(FATAL_ERROR
    "MLX ${WHIMBREL_MLX_VERSION} is needed, found ${MLX_VERSION} in ${MLX_DIR}; run tools/bootstrap")
endif()

add_library(mlx_runtime INTERFACE)
# System headers: our warnings are about our code.
target_include_directories(mlx_runtime SYSTEM INTERFACE ${MLX_INCLUDE_DIRS})
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The wheel carries netlib's reference BLAS, 40 times slower than OpenBLAS. The loader takes the
  # first definition of cblas_sgemm, so OpenBLAS has to stand ahead of libmlx in every program.
  find_library(OPENBLAS_LIBRARY openblas REQUIRED)
  target_link_libraries(
    mlx_runtime INTERFACE -Wl,--no-as-needed ${OPENBLAS_LIBRARY} -Wl,--as-needed
  )
endif()
target_link_libraries(mlx_runtime INTERFACE mlx Threads::Threads)
