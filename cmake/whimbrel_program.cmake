# The program build/whimbrel, and what `cmake --install` puts under a prefix:
#   bin/whimbrel  lib/whimbrel/ (MLX)  share/whimbrel/models/  share/doc/whimbrel/
if(EXISTS ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
  add_executable(whimbrel src/cli/main.cpp)
  target_link_libraries(whimbrel PRIVATE whimbrel_cli)
  set_target_properties(
    whimbrel PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    INSTALL_RPATH $<IF:$<PLATFORM_ID:Darwin>,@loader_path,$ORIGIN>/../lib/whimbrel/mlx/lib
  )
  add_dependencies(whimbrel whimbrel-video whimbrel-picture)
  install(TARGETS whimbrel DESTINATION bin)
endif()

# libmlx finds the libraries that came with it relative to itself: the wheel's layout is kept.
get_filename_component(site_packages ${MLX_LIBRARY_DIRS}/../.. ABSOLUTE)
file(GLOB mlx_bundled_libraries ${site_packages}/mlx*.libs)
install(DIRECTORY ${MLX_LIBRARY_DIRS} DESTINATION lib/whimbrel/mlx)
install(DIRECTORY ${mlx_bundled_libraries} DESTINATION lib/whimbrel)

install(DIRECTORY models/tiny-qwen2-5-vl-4bit DESTINATION share/whimbrel/models)
install(DIRECTORY docs/ DESTINATION share/doc/whimbrel/docs)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/whimbrel)
install(FILES examples/shapes.png DESTINATION share/doc/whimbrel/examples)
