# Safetensors files, checkpoints, their conversion and checks.
hone_test(convert safetensors LINK hone_convert)
hone_test(convert hostile LINK hone_convert)
hone_test(convert fold_tile LINK hone_convert)
hone_test(convert convert LINK hone_convert PkgConfig::JANSSON SOURCES convert/build.c LABELS unit threads)
