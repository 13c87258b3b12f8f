# Flags of the translation units in src/ops/cpu that are compiled for one instruction set each
# (kernels_<isa>.cpp). The rest of the program is compiled for any CPU of the architecture.
set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512)
set(isa_flags_scalar "")
set(isa_flags_neon -march=armv8.2-a+dotprod)
set(isa_flags_avx2 ${avx2})
set(isa_flags_avxvnni ${avx2} -mavxvnni)
set(isa_flags_avx512 ${avx512})
set(isa_flags_avx512bf16 ${avx512} -mavx512bf16)
set(isa_flags_amx ${avx512} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16)

# Kernels are compiled with these flags everywhere, debug builds and sanitizers included: without
# inlining they are a hundred times slower.
set(kernel_flags -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND kernel_flags -Wno-uninitialized)  # gcc 12 complains about its own intrinsics
endif()

file(GLOB kernel_units CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cpu/*_*.cpp)
foreach(unit ${kernel_units})
  string(REGEX REPLACE ".*_([a-z0-9]+)\\.cpp$" "\\1" isa ${unit})
  if(DEFINED isa_flags_${isa})
    set_source_files_properties(${unit} PROPERTIES COMPILE_OPTIONS "${kernel_flags};${isa_flags_${isa}}")
  endif()
endforeach()
