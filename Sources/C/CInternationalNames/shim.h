#ifndef PINFOLD_CINTERNATIONALNAMES_H
#define PINFOLD_CINTERNATIONALNAMES_H
#include <idn2.h>

// The flags are an enumeration, but the function takes an integer.
static const int pinfold_IDN2_LOOKUP = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;
#endif
