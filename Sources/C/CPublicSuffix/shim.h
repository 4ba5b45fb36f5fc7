#ifndef PINFOLD_CPUBLICSUFFIX_H
#define PINFOLD_CPUBLICSUFFIX_H
#include <libpsl.h>

// libpsl defines these as macros with expressions, which Swift does not import.
static const int pinfold_PSL_TYPE_REGISTRY = PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE;
static const int pinfold_PSL_TYPE_COMPANY = PSL_TYPE_PRIVATE | PSL_TYPE_NO_STAR_RULE;
#endif
