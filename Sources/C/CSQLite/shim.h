#ifndef PINFOLD_CSQLITE_H
#define PINFOLD_CSQLITE_H
#include <sqlite3.h>
#endif
