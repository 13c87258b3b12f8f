# The programs that decode what strangers send, each in a process of its own: whimbrel-video (FFmpeg,
# and nothing of ours) and whimbrel-picture (the decoders of src/media, and nothing else of it). The
# targets sandbox and videokit are the headers that both sides share.
set(sandbox_dir ${CMAKE_SOURCE_DIR}/sandbox)
set(videokit_dir ${CMAKE_SOURCE_DIR}/videokit)
set(picturekit_dir ${CMAKE_SOURCE_DIR}/picturekit)
add_library(sandbox INTERFACE)
target_include_directories(sandbox INTERFACE ${sandbox_dir}/include)
add_library(videokit INTERFACE)
target_include_directories(videokit INTERFACE ${videokit_dir}/include)
target_link_libraries(videokit INTERFACE sandbox)

# whimbrel_decoder(NAME SOURCE...): a program that locks itself in before it reads a byte.
function(whimbrel_decoder name)
  file(GLOB sources CONFIGURE_DEPENDS ${sandbox_dir}/src/*.cpp)
  add_executable(${name} ${sources} ${ARGN})
  # Its limit of memory and its filter of system calls leave no room for a sanitizer.
  foreach(property COMPILE_OPTIONS LINK_OPTIONS)
    get_target_property(options ${name} ${property})
    if(options)
      list(FILTER options EXCLUDE REGEX "sanitize")
      set_target_properties(${name} PROPERTIES ${property} "${options}")
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE ${sandbox_dir}/src)
  target_link_libraries(${name} PRIVATE sandbox)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_libraries(${name} PRIVATE PkgConfig::seccomp)
  endif()
endfunction()

# whimbrel_video_decoder(NAME [SOURCE...]): whimbrel-video, or a test's variant of it.
function(whimbrel_video_decoder name)
  file(GLOB sources CONFIGURE_DEPENDS ${videokit_dir}/src/*.cpp)
  whimbrel_decoder(${name} ${sources} ${ARGN})
  target_link_libraries(${name} PRIVATE videokit PkgConfig::ffmpeg)
endfunction()

# whimbrel_picture_decoder(NAME [SOURCE...]): whimbrel-picture, or a test's variant of it.
function(whimbrel_picture_decoder name)
  set(sources composite decode_error decode_gif decode_jpeg decode_png decode_webp exif image_format)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/src/media/)
  list(TRANSFORM sources APPEND .cpp)
  whimbrel_decoder(${name} ${picturekit_dir}/src/main.cpp ${sources} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE PkgConfig::images fmt::fmt)
endfunction()

whimbrel_video_decoder(whimbrel-video)
whimbrel_picture_decoder(whimbrel-picture)
set_target_properties(
  whimbrel-video whimbrel-picture PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
)
install(TARGETS whimbrel-video whimbrel-picture DESTINATION libexec/whimbrel)
