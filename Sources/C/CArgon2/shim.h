#ifndef PINFOLD_CARGON2_H
#define PINFOLD_CARGON2_H
#include <argon2.h>
#endif
