/* replaced by this folder's first file */ typedef int models_placeholder;
