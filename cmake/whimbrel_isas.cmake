# Flags of the translation units that are compiled for one instruction set each (<name>_<isa>.cpp in
# src/ops/cpu and tests/ops/simd). The rest of the program is compiled for any CPU of the architecture.
set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512)
set(isa_flags_scalar "")
set(isa_flags_neon -march=armv8.2-a+dotprod)
set(isa_flags_avx2 ${avx2})
set(isa_flags_avxvnni ${avx2} -mavxvnni)
set(isa_flags_avx512 ${avx512})
set(isa_flags_avx512bf16 ${avx512} -mavx512bf16)
set(isa_flags_amx ${avx512} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16)

set(all_isas scalar neon avx2 avxvnni avx512 avx512bf16 amx)
set(own_isas scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND own_isas avx2 avxvnni avx512 avx512bf16 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND own_isas neon)
endif()

# Kernels are compiled with these flags everywhere, debug builds and sanitizers included: without
# inlining they are a hundred times slower.
set(kernel_flags -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports what its own header of AVX-512 leaves undefined on purpose.
  list(APPEND kernel_flags -Wno-uninitialized)
endif()

# What a kernel means is written once, so the undefined-behaviour sanitizer sees it in the scalar
# units; in vectors unrolled a hundred times it takes minutes more a unit to compile.
set(vector_flags "")
if("${WHIMBREL_SANITIZE}" MATCHES "undefined")
  set(vector_flags -fno-sanitize=undefined)
endif()

# whimbrel_isa_units(VARIABLE): takes other architectures' units from the list of sources, and gives
# this one's their flags for targets of the calling folder.
function(whimbrel_isa_units variable)
  set(kept ${${variable}})
  foreach(isa ${all_isas})
    set(units ${kept})
    list(FILTER units INCLUDE REGEX "/[a-z0-9_]+_${isa}\\.cpp$")
    set(flags ${kernel_flags} ${isa_flags_${isa}})
    if(NOT isa STREQUAL "scalar")
      list(APPEND flags ${vector_flags})
    endif()
    if(isa IN_LIST own_isas)
      set_source_files_properties(${units} PROPERTIES COMPILE_OPTIONS "${flags}")
    else()
      list(REMOVE_ITEM kept ${units})
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()
