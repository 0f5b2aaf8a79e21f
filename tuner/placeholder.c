/* replaced by this folder's first file */ typedef int tuner_placeholder;
