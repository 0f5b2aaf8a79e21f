# Other tuners' files: what is written, what is read back, and what is refused.
foreach(module files hostile)
  hone_test(exchange ${module} LINK hone_exchange SOURCES cache/scratch.c exchange/sample.c)
endforeach()
hone_test(exchange atomic LINK hone_exchange SOURCES cache/scratch.c exchange/sample.c LABELS rel)
hone_test(exchange engine LINK hone_exchange SOURCES cache/scratch.c)
