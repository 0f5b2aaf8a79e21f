# Questions to a device, real or emulated (scripts/device-check.sh), and what hardware answered once.
file(GLOB probe_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/device/kernels/*.cu)
add_library(hone_probes STATIC device/golden.c device/probe.c device/probe_inputs.c device/probe_tensor.c)
target_link_libraries(hone_probes PUBLIC hone_runtime)
hone_embed(hone_probes probe_kernels ${probe_kernels})
add_executable(hone-device-check device/device_check.c)
target_link_libraries(hone-device-check PRIVATE hone_probes)
add_dependencies(hone-device-check hone_emu hone-worker)
