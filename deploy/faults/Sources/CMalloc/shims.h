// malloc_trim and mallinfo2, which Glibc's module does not have.
#include <malloc.h>
