/* tile_end.h - closes the code generation that vector.h opened. */
#if TENSOR_LEVEL > 1
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
