# Number formats, problems, packed and folded scales, digests, statuses and the bounded reader.
foreach(module status numfmt quantise fold_mxfp4 pack_scales fold document index_schedule)
  hone_test(core ${module} LINK hone_core)
endforeach()
foreach(module problem problem_defaults problem_moe problem_topk problem_mqa problem_prepare operands record)
  hone_test(core ${module} LINK hone_core SOURCES core/parsed.c)
endforeach()
hone_test(core fold_report LINK hone_core SOURCES core/fold_data.c)

# Minutes: all 2^32 floats against the CUDA toolkit's host code. Its header includes others that a toolkit has and the
# vendor's wheels have not.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES ${CUDA_INCLUDE_DIR})
check_c_source_compiles("#include <cuda_fp8.h>\nint main(void) { return 0; }" HONE_HAVE_TOOLKIT_FP8)
unset(CMAKE_REQUIRED_INCLUDES)
if(HONE_HAVE_TOOLKIT_FP8)
  hone_test(core numfmt_all LINK hone_core Threads::Threads SOURCES core/toolkit_fp8.c LABELS slow TIMEOUT 3600)
  target_link_libraries(test_core_numfmt_all PRIVATE hone_cuda_headers)
  set_source_files_properties(core/toolkit_fp8.c PROPERTIES COMPILE_OPTIONS "-Wno-conversion;-Wno-pedantic")
else()
  message(STATUS "SKIP core/numfmt_all: cuda_fp8.h of ${CUDA_INCLUDE_DIR} does not compile by itself")
endif()
