# Safetensors files, checkpoints, their conversion and checks.
foreach(module safetensors hostile fold_tile)
  hone_test(convert ${module} LINK hone_convert)
endforeach()
set(scene convert/build.c convert/scene.c)
hone_test(convert convert LINK hone_convert SOURCES ${scene} LABELS unit threads)
hone_test(convert shards LINK hone_convert SOURCES ${scene} LABELS unit threads)
hone_test(convert requantise LINK hone_convert SOURCES ${scene})
hone_test(convert check LINK hone_convert SOURCES ${scene})
