/* replaced by this folder's first file */ typedef int runtime_placeholder;
