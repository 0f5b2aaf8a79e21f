# The store, its generations and the kernel cache.
foreach(module store default generation hostile)
  hone_test(cache ${module} LINK hone_cache SOURCES cache/scratch.c)
endforeach()
hone_test(cache kernel_cache LINK hone_cache SOURCES cache/scratch.c LABELS unit threads)
# Processes and crashes: minutes on a slow disk.
foreach(module writers damage)
  hone_test(cache ${module} LINK hone_cache SOURCES cache/scratch.c LABELS rel TIMEOUT 600)
endforeach()
