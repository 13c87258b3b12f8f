# What the binary can say about itself: a header written at every build, and only when it changed, so
# that a commit recompiles src/base/build_info.cpp and nothing else.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
get_directory_property(options COMPILE_OPTIONS)
list(FILTER options EXCLUDE REGEX "^-W")
string(JOIN " " flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} -std=c++20 ${options})

set(identity_dir ${CMAKE_BINARY_DIR}/identity)
add_custom_target(
  whimbrel_identity
  BYPRODUCTS ${identity_dir}/build_identity.h
  COMMAND
    ${CMAKE_COMMAND} -D source_dir=${CMAKE_SOURCE_DIR} -D output=${identity_dir}/build_identity.h
    -D "version=${PROJECT_VERSION}" -D "mlx=${MLX_VERSION}" -D "flags=${flags}"
    -D "compiler=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -P ${CMAKE_SOURCE_DIR}/cmake/write_build_identity.cmake
  COMMENT "Reading the commit"
  VERBATIM
)
add_dependencies(whimbrel_base whimbrel_identity)
target_include_directories(whimbrel_base PRIVATE ${identity_dir})
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # A hash over the program's contents: a different binary always has another one.
  target_link_options(whimbrel_base INTERFACE -Wl,--build-id=sha1)
endif()
