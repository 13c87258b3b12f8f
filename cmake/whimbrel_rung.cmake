# whimbrel_rung(NAME USES TARGET...): the library of folder src/NAME and the folders in it,
# whimbrel_NAME. Target all_verify_interface_header_sets compiles each header alone, but for those
# named *-inl.h, which are parts of the one file that includes them.
function(whimbrel_rung name)
  cmake_parse_arguments(rung "" "" "USES" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h ${folder}/*/*.h)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$")
  whimbrel_instruction_sets(${sources})
  add_library(whimbrel_${name} STATIC ${sources})
  set_target_properties(
    whimbrel_${name} PROPERTIES LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON
  )
  target_sources(
    whimbrel_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${headers}
  )
  target_link_libraries(whimbrel_${name} PUBLIC ${rung_USES})
endfunction()

# A file named *_ISA.cpp is compiled for that instruction set; who calls into it asks the processor
# first.
set(whimbrel_avx2_flags -mavx2 -mfma -mavxvnni)
set(whimbrel_avx512_flags -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16)
set(whimbrel_amx_flags -mamx-tile -mamx-int8 -mamx-bf16)
function(whimbrel_instruction_sets)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    return()
  endif()
  foreach(source ${ARGN})
    if(source MATCHES "_(avx2|avx512|amx)\\.cpp$")
      set_source_files_properties(
        ${source} PROPERTIES COMPILE_OPTIONS "${whimbrel_${CMAKE_MATCH_1}_flags}"
      )
    endif()
  endforeach()
endfunction()
