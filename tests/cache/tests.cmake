# The store, its generations and the kernel cache.
foreach(module store generation hostile kernel_cache)
  hone_test(cache ${module} LINK hone_cache SOURCES cache/scratch.c)
endforeach()
# Processes and crashes: minutes on a slow disk.
foreach(module writers damage)
  hone_test(cache ${module} LINK hone_cache SOURCES cache/scratch.c LABELS rel TIMEOUT 600)
endforeach()
