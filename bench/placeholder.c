/* replaced by this folder's first file */ typedef int bench_placeholder;
