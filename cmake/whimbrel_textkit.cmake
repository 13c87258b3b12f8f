# textkit: the Rust crate, built by cargo into a static library that C++ links.
find_program(CARGO cargo HINTS ${CMAKE_SOURCE_DIR}/.venv/rust REQUIRED)

# Outside the clone, so that a second clone on one machine builds only the crate itself again.
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(cache_home $ENV{XDG_CACHE_HOME})
else()
  set(cache_home $ENV{HOME}/.cache)
endif()
set(WHIMBREL_CARGO_TARGET_DIR ${cache_home}/whimbrel/cargo-target CACHE PATH
    "Folder of cargo's build products")

set(textkit_dir ${CMAKE_SOURCE_DIR}/textkit)
set(textkit_library ${CMAKE_BINARY_DIR}/textkit/libtextkit.a)
file(GLOB_RECURSE textkit_sources CONFIGURE_DEPENDS ${textkit_dir}/src/*.rs)
add_custom_command(
  OUTPUT ${textkit_library}
  COMMAND ${CMAKE_COMMAND} -DCARGO=${CARGO} -DMANIFEST=${textkit_dir}/Cargo.toml
          -DTARGET_DIR=${WHIMBREL_CARGO_TARGET_DIR} -DLIBRARY=${textkit_library}
          -P ${CMAKE_CURRENT_LIST_DIR}/build_textkit.cmake
  DEPENDS ${textkit_sources} ${textkit_dir}/Cargo.toml ${textkit_dir}/Cargo.lock
          ${CMAKE_CURRENT_LIST_DIR}/build_textkit.cmake
  COMMENT "Building textkit with cargo"
  USES_TERMINAL VERBATIM
)
add_custom_target(textkit_build DEPENDS ${textkit_library})

add_library(textkit STATIC IMPORTED GLOBAL)
set_target_properties(
  textkit PROPERTIES IMPORTED_LOCATION ${textkit_library}
                     INTERFACE_INCLUDE_DIRECTORIES ${textkit_dir}/include
)
target_link_libraries(textkit INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
add_dependencies(textkit textkit_build)
