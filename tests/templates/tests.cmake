hone_test(templates expression LINK hone_templates)
hone_test(templates manifest LINK hone_templates SOURCES templates/fixture.c templates/manifest_base.c)
hone_test(templates manifest_plan LINK hone_templates SOURCES templates/fixture.c templates/manifest_base.c)
hone_test(templates space LINK hone_templates SOURCES templates/fixture.c)
hone_test(templates expression_python LINK hone_templates)
hone_test(templates space_import LINK hone_templates)
hone_test(templates contract LINK hone_templates hone_models)
hone_test(templates expert_tiles LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c templates/device_header.c)
hone_test(templates expert_k LINK hone_emulator hone_core ${CMAKE_DL_LIBS} SOURCES emulator/ptx_bench.c templates/device_header.c)

# Kernels: one config of each row here, many under the slow label.
hone_test(templates kernels LINK hone_runtime SOURCES templates/kernels.c TIMEOUT 300)
hone_test(templates mutants LABELS unit release-only LINK hone_runtime SOURCES templates/kernels.c templates/mutants.c TIMEOUT 300)
hone_run(templates kernels_wide test_templates_kernels LABELS slow TIMEOUT 3600 SET HONE_KERNEL_DRAWS=32)

# Proof on emulated GPUs: one config of each row here, many under the slow label.
hone_test(templates proof LABELS unit release-only LINK hone_bench SOURCES templates/kernels.c templates/mutants.c templates/faults.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_proof hone_emu)
hone_test(templates block_scale LABELS unit release-only LINK hone_bench SOURCES templates/kernels.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_block_scale hone_emu hone-worker)
hone_run(templates block_scale_wide test_templates_block_scale LABELS slow TIMEOUT 3600 SET HONE_KERNEL_DRAWS=48)
# Scales moved there against the host's.
hone_test(templates scales LINK hone_bench SOURCES templates/kernels.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_scales hone_emu hone-worker)
# Routers' choices against a plain walk.
hone_test(templates routes LINK hone_bench SOURCES templates/kernels.c templates/proof.c bench/naive_moe_rows.c TIMEOUT 600)
add_dependencies(test_templates_routes hone_emu hone-worker)
hone_run(templates routes_many test_templates_routes LABELS slow TIMEOUT 3600 SET HONE_ROUTES=10000)
# Rows of scores against a full sort.
hone_test(templates topk LABELS unit release-only LINK hone_bench SOURCES templates/kernels.c templates/mutants.c templates/faults.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_topk hone_emu hone-worker)
hone_run(templates topk_many test_templates_topk LABELS slow TIMEOUT 7200 SET HONE_TOPK_ROWS=10080 HONE_TOPK_ORDERS=20 HONE_TOPK_FAULTS=1)
# Faults in what makes an indexer's queries and keys ready.
hone_test(templates prepare LABELS unit release-only LINK hone_bench SOURCES templates/kernels.c templates/mutants.c templates/faults.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_prepare hone_emu hone-worker)
hone_run(templates prepare_all test_templates_prepare LABELS slow TIMEOUT 3600 SET HONE_PREPARE_FAULTS=1)
# KV caches written and read back.
hone_test(templates records LABELS unit release-only LINK hone_bench SOURCES templates/kernels.c templates/proof.c TIMEOUT 600)
add_dependencies(test_templates_records hone_emu hone-worker)
hone_run(templates proof_wide test_templates_proof LABELS slow TIMEOUT 7200 SET HONE_PROOF_DRAWS=32)

# Machine code of the wgmma product: minutes of NVRTC.
hone_test(templates static LINK hone_bench SOURCES templates/kernels.c templates/static_cases.c LABELS slow TIMEOUT 3600
  SET HONE_KERNEL_DRAWS=48)
add_dependencies(test_templates_static hone-worker)
hone_run(templates order_of_every_m test_templates_proof LABELS slow TIMEOUT 3600 SET HONE_ORDER_STEP=1)

# Whole spaces in shards: HONE_SHARD=i/n runs the i-th of n, each some ten thousand compiles divided by n.
hone_test(templates whole LINK hone_bench SOURCES templates/kernels.c LABELS slow TIMEOUT 7200 SET HONE_SHARD=0/500)
hone_run(templates whole_pairs test_templates_whole LABELS slow TIMEOUT 14400 SET HONE_PAIRS=1)
add_dependencies(test_templates_whole hone-worker)
