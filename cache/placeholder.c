/* replaced by this folder's first file */ typedef int cache_placeholder;
