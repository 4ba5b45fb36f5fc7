#ifndef PINFOLD_CARES_H
#define PINFOLD_CARES_H
#include <ares.h>
#endif
