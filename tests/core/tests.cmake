# Number formats, problems, digests, statuses and the bounded reader.
foreach(module status numfmt quantise problem operands document)
  hone_test(core ${module} LINK hone_core)
endforeach()
