# whimbrel_rung(NAME USES TARGET...): the library of folder src/NAME and of those below it,
# whimbrel_NAME. Target all_verify_interface_header_sets compiles each header alone; files named
# *-inl.h are parts of one translation unit and never stand alone.
function(whimbrel_rung name)
  cmake_parse_arguments(rung "" "" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.h)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$")
  whimbrel_isa_units(sources)
  add_library(whimbrel_${name} STATIC ${sources})
  set_target_properties(
    whimbrel_${name} PROPERTIES LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON
  )
  target_sources(
    whimbrel_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${headers}
  )
  target_link_libraries(whimbrel_${name} PUBLIC ${rung_USES})
endfunction()
