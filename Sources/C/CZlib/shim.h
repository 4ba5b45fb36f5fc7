#ifndef PINFOLD_CZLIB_H
#define PINFOLD_CZLIB_H
#include <zlib.h>
#endif
