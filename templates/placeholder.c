/* replaced by this folder's first file */ typedef int templates_placeholder;
