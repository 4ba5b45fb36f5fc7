#ifndef PINFOLD_CEXPAT_H
#define PINFOLD_CEXPAT_H
#include <expat.h>
#include <string.h>
#endif
