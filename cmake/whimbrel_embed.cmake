# whimbrel_embed(TARGET HEADER NAME FILE [NAME FILE]...): compiles files into a target as constants
# NAME of type std::string_view in namespace whimbrel::http, which HEADER declares. FILE is a path
# below src/.
function(whimbrel_embed target header)
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs name file)
    set(source ${CMAKE_BINARY_DIR}/embedded/${name}.cpp)
    add_custom_command(
      OUTPUT ${source}
      COMMAND
        ${CMAKE_COMMAND} -D input=${CMAKE_SOURCE_DIR}/src/${file} -D output=${source}
        -D name=${name} -D header=${header} -P ${CMAKE_SOURCE_DIR}/cmake/write_embedded.cmake
      DEPENDS ${CMAKE_SOURCE_DIR}/src/${file} ${CMAKE_SOURCE_DIR}/cmake/write_embedded.cmake
      COMMENT "Embedding ${file}"
      VERBATIM
    )
    target_sources(${target} PRIVATE ${source})
  endwhile()
endfunction()
