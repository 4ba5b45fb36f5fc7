#ifndef PINFOLD_CCRYPT_H
#define PINFOLD_CCRYPT_H
#include <crypt.h>
#include <stdlib.h>
#include <string.h>
#endif
