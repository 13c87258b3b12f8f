# videokit: the program whimbrel-video, which decodes videos in a process of its own. It links FFmpeg
# and libseccomp, and nothing of ours does; the target videokit is the header that both sides share.
set(videokit_dir ${CMAKE_SOURCE_DIR}/videokit)
add_library(videokit INTERFACE)
target_include_directories(videokit INTERFACE ${videokit_dir}/include)

# whimbrel_video_helper(NAME [SOURCE...]): the program, or a test's variant of it.
function(whimbrel_video_helper name)
  file(GLOB sources CONFIGURE_DEPENDS ${videokit_dir}/src/*.cpp)
  add_executable(${name} ${sources} ${ARGN})
  # Its limit of memory and its filter of system calls leave no room for a sanitizer.
  foreach(property COMPILE_OPTIONS LINK_OPTIONS)
    get_target_property(options ${name} ${property})
    if(options)
      list(FILTER options EXCLUDE REGEX "sanitize")
      set_target_properties(${name} PROPERTIES ${property} "${options}")
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE ${videokit_dir}/src)
  target_link_libraries(${name} PRIVATE videokit PkgConfig::ffmpeg)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_libraries(${name} PRIVATE PkgConfig::seccomp)
  endif()
endfunction()

whimbrel_video_helper(whimbrel-video)
set_target_properties(whimbrel-video PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
install(TARGETS whimbrel-video DESTINATION libexec/whimbrel)
