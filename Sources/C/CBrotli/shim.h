#ifndef PINFOLD_CBROTLI_H
#define PINFOLD_CBROTLI_H
#include <brotli/decode.h>
#include <brotli/encode.h>
#endif
