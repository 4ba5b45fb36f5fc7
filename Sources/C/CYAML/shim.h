#ifndef PINFOLD_CYAML_H
#define PINFOLD_CYAML_H
#include <yaml.h>
#endif
