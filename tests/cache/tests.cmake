# The store, its generations and the kernel cache.
foreach(module store generation kernel_cache)
  hone_test(cache ${module} LINK hone_cache SOURCES cache/scratch.c)
  target_include_directories(test_cache_${module} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cache)
endforeach()
