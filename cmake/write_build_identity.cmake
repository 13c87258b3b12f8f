# cmake -D source_dir= -D output= -D version= -D mlx= -D flags= -D compiler= -P write_build_identity.cmake
# Writes `output` only when it changed. Outside a git checkout the commit is "unknown".
function(git result)
  # The owner of a checkout in a container is often somebody else.
  execute_process(
    COMMAND git -c safe.directory=* -C ${source_dir} ${ARGN}
    OUTPUT_VARIABLE text
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status
  )
  if(NOT status STREQUAL "0")
    set(text "unknown")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(commit "unknown")
set(dirty 0)
# An empty prefix: the folder is the checkout's own root, not an unpacked copy inside another one.
git(prefix rev-parse --show-prefix)
if(prefix STREQUAL "")
  git(commit rev-parse --verify HEAD)
  git(changes status --porcelain)
  if(NOT changes STREQUAL "")
    set(dirty 1)
  endif()
endif()

foreach(name version commit compiler flags mlx)
  string(REPLACE "\\" "\\\\" ${name} "${${name}}")
  string(REPLACE "\"" "\\\"" ${name} "${${name}}")
endforeach()
file(
  CONFIGURE
  OUTPUT ${output}
  CONTENT
    [[#pragma once
#define WHIMBREL_VERSION "@version@"
#define WHIMBREL_COMMIT "@commit@"
#define WHIMBREL_DIRTY @dirty@
#define WHIMBREL_COMPILER "@compiler@"
#define WHIMBREL_FLAGS "@flags@"
#define WHIMBREL_MLX_VERSION "@mlx@"
]]
  @ONLY
)
