# Number formats, problems, digests, statuses and the bounded reader.
foreach(module status numfmt quantise problem operands document)
  hone_test(core ${module} LINK hone_core)
endforeach()

# Minutes: all 2^32 floats against the CUDA toolkit's host code, whose header comes with the CUDA headers.
if(EXISTS ${CUDA_INCLUDE_DIR}/cuda_fp8.h)
  hone_test(core numfmt_all LINK hone_core Threads::Threads SOURCES core/toolkit_fp8.c LABELS slow TIMEOUT 3600)
  target_link_libraries(test_core_numfmt_all PRIVATE hone_cuda_headers)
  set_source_files_properties(core/toolkit_fp8.c PROPERTIES COMPILE_OPTIONS "-Wno-conversion;-Wno-pedantic")
else()
  message(STATUS "SKIP core/numfmt_all: no cuda_fp8.h in ${CUDA_INCLUDE_DIR}")
endif()
