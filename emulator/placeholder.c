/* replaced by this folder's first file */ typedef int emulator_placeholder;
