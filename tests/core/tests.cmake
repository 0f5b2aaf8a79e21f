# Number formats, problems, digests, statuses and the bounded reader.
foreach(module numfmt quantise document)
  hone_test(core ${module} LINK hone_core)
endforeach()
